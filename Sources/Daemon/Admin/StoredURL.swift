import HTTPSemantics
import Proxy

/// A URL given to select documents, as the store has it.
struct StoredURL: Sendable {
    /// The upstream; nil if any may be meant.
    let upstream: String?
    /// Path and query, as in listings.
    let url: String

    /// Reads path and query, as in listings, or a URL of Larder's or an upstream's.
    ///
    /// A path is taken as it is: it may be stored for any upstream, or none may have it any more.
    init(_ text: String, of upstream: String?, in daemon: DaemonCore) throws {
        if text.hasPrefix("/") {
            (self.upstream, url) = (upstream, text)
            return
        }
        do throws(ImaginedRequestError) {
            let imagined = try ImaginedRequest("GET", text, of: daemon.upstreams, named: upstream, daemon.settings)
            (self.upstream, url) = (imagined.incoming.upstream.name, imagined.incoming.parts.url)
        } catch {
            throw ProblemDocument.badRequest(error.description)
        }
    }
}
