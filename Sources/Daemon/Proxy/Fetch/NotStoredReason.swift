import Basics
import CachePolicy
import HTTPSemantics
import HTTPServer
import Mapping
package import Store
import Upstream

/// Why a response was not stored: the rule, and who decided it.
package struct NotStoredReason: Error, Sendable, Equatable {
    /// Whose rule it is.
    package enum Decider: String, Sendable {
        case upstream, config, request
        /// HTTP's own rules.
        case standard
        /// An event within Larder.
        case larder
    }

    /// The rule as a token for programs, such as `no-store` or `too-large`.
    package var rule: String
    package var decidedBy: Decider
    /// The reason in words, such as "the request had a body".
    package var text: String

    init(_ rule: String, _ decidedBy: Decider, _ text: String) {
        (self.rule, self.decidedBy, self.text) = (rule, decidedBy, text)
    }

    static let eventStream = Self("event-stream", .upstream, "it is a stream of events, which has no end to wait for")
    static let garbled = Self("garbled", .upstream, "its head is malformed")
    static let odd = Self("garbled", .upstream, "it is not in its content coding, or bytes follow the end of that")
    static let invalidated = Self("invalidated", .larder, "a write or a clean made it outdated on its way")
    static let unwritable = Self("unwritable", .larder, "the store cannot take it now; larder status says why")
    static let olderIsBetter = Self("error", .standard, "an error does not take the place of a good stored response")
    static let graphQLErrors = Self("graphql-errors", .upstream, "it is no GraphQL result with data and without errors")
    static let part = Self("partial", .standard, "it is a part that fits no stored response")

    /// - Parameter defect: why a response that ended in order is not shown to be whole; nil for one that did not.
    static func truncated(_ defect: UpstreamError?) -> Self {
        guard case .unprovenEnd(let reason) = defect else { return Self("truncated", .upstream, "its body broke off") }
        return Self("unproven-end", .upstream, "its body may be cut: \(reason.rawValue)")
    }

    static func tooLarge(limit: Int) -> Self {
        Self("too-large", .config, "it is larger than limits.document, \(limit) bytes")
    }

    /// Why no response to a request may be stored, whatever it contains; nil if one may.
    package static func refusal(of request: ProxyRequest) -> Self? {
        if request.overrides.cache == .never {
            return Self("never-by-route", .config, "its route says cache: never")
        }
        guard request.message.method == "GET"
        else { return Self("method", .standard, "responses to \(request.message.method) are not stored") }
        if request.directives.noStore {
            return Self("request-no-store", .request, "the request said Cache-Control: no-store")
        }
        if request.message.body != nil { return Self("request-body", .request, "the request had a body") }
        guard request.isShareable || request.isForParts else {
            return Self(
                "request-condition",
                .request,
                "the request had conditions or ranges that only the origin evaluates"
            )
        }
        return nil
    }

    /// Why the cache policy forbids to store a response.
    init(_ reason: Storability.Reason, _ fields: Fields, of request: ProxyRequest) {
        let settings = request.upstream.policySettings
        let field = TargetedDirectives.find(in: fields, targets: settings.targets)?.field ?? "Cache-Control"
        let said = fields.combined(field.lowercased()).map { "\(field): \($0.prefix(200))" } ?? "no \(field)"
        switch reason {
        case .noStore: self.init(reason.rawValue, .upstream, "the upstream said \(said)")
        case .isPrivate:
            self.init(
                reason.rawValue,
                .upstream,
                "the upstream said \(said), and the config reads it as a shared cache (shared: true)"
            )
        case .authorization:
            self.init(
                reason.rawValue,
                .config,
                "the request had a credential, the config says shared: true, and the upstream permits no storing (\(said))"
            )
        case .varyAny: self.init(reason.rawValue, .upstream, "the upstream said Vary: *")
        case .notExplicit:
            self.init(
                reason.rawValue,
                .standard,
                "the upstream gave it no lifetime (\(said)), and its status has none by default"
            )
        case .notUnderstood:
            self.init(reason.rawValue, .upstream, "its status is not understood, and the upstream said \(said)")
        case .momentaryStatus: self.init(reason.rawValue, .standard, "its status holds for its own request only")
        case .interim, .notModified: self.init(reason.rawValue, .standard, "its status is not that of a whole response")
        case .partial: self = .part
        case .method: self.init(reason.rawValue, .standard, "responses to \(request.message.method) are not stored")
        case .requestNoStore, .neverByRoute:
            self = Self.refusal(of: request) ?? Self(reason.rawValue, .config, "the config forbids it")
        }
    }
}

/// The latest response to each URL that was not stored, for `explain`.
///
/// Bounded; a value for one thread.
package struct NotStoredReasons {
    package struct Note: Sendable {
        package let reason: NotStoredReason
        package let status: Int
        /// Seconds since 1970.
        package let time: Int64
        package let principal: PrincipalID
        package let context: String
    }

    private struct Place: Hashable {
        let upstream: UpstreamKey
        let url: String

        init(_ key: CacheKey) { (upstream, url) = (key.upstream, key.url) }
    }

    private var notes = BoundedTable<Place, Note>(limit: 1_024)
    private static let urlLimit = 2_048

    subscript(key: CacheKey) -> Note? { notes[Place(key)] }

    mutating func record(_ reason: NotStoredReason, status: Int, of request: ProxyRequest, at time: Int64) {
        let key = request.key
        guard request.message.method == "GET", key.url.utf8.count <= Self.urlLimit else { return }
        let (principal, context) = (key.principal, key.context)
        notes[Place(key)] = Note(reason: reason, status: status, time: time, principal: principal, context: context)
    }

    /// Forgets a URL, because a response to it was stored.
    mutating func forget(_ key: CacheKey) { notes[Place(key)] = nil }

    mutating func forget(_ invalidation: Invalidation, _ label: PrincipalLabels) {
        notes.removeAll { invalidation.covers($0.url, of: $0.upstream, principal: label($1.principal)) }
    }
}
