/// The cache key of a document: upstream, principal, representation and URL.
public struct CacheKey: Hashable, Sendable {
    public var upstream: UpstreamKey
    public var principal: PrincipalID
    /// The requested representation, as one text.
    public var context: String
    /// Path and query in the canonical spelling of the cache key, credentials redacted.
    public var url: String

    /// Creates a key from its four parts.
    public init(upstream: UpstreamKey, principal: PrincipalID, context: String, url: String) {
        (self.upstream, self.principal, self.context, self.url) = (upstream, principal, context, url)
    }

    /// The method of the requests with such a URL: only that of a POST has a fragment, the digest of its body.
    public static func method(ofURL url: String) -> String { url.utf8.contains(UInt8(ascii: "#")) ? "POST" : "GET" }
}
