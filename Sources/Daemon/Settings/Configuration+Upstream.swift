package import CachePolicy
import HTTPSemantics
package import Mapping

extension Configuration {
    /// One REST origin and all that is known of it.
    package struct Upstream: Sendable, Equatable {
        package var name = ""
        package var url = UpstreamURL()
        /// `/github`, no slash at its end; empty when the upstream has its addresses to itself.
        package var prefix = ""
        /// Addresses of its own; empty when it is served at the daemon's.
        package var listen: [Address] = []
        package var credential: Credential?
        /// What says whose data is asked for, as `PrincipalWords`.
        package var principal = Self.defaultPrincipal
        /// Header fields that choose the representation; `*-Version` is a pattern.
        package var context = ContextFields.usual
        /// Whether RFC 9111 is read as a shared cache reads it.
        package var shared = false
        /// Targeted cache-control fields heeded before `Cache-Control`, first match wins (RFC 9213).
        package var targets = ["Larder-Cache-Control"]
        package var cookies: Cookies = .drop
        /// Origins of web pages that may ask.
        package var cors: [String] = []
        package var origin: OriginHandling = .drop
        package var rewriteLinks = false
        /// Further host names under which clients may ask for it, as `Host` spells them; `https://` before one says that a proxy
        /// in front serves it by HTTPS.
        package var hosts: [String] = []
        /// PEM file of certificate authorities in place of the system's.
        package var caFile: String?
        package var proxy: Proxy = .environment
        package var http2 = true
        /// The longest freshness guessed from `Last-Modified`; zero for none.
        package var heuristic: Duration = .seconds(86_400)
        /// How stale a response may be that stands in for a failing upstream.
        package var staleIfError: Duration = .forever
        package var lag = ResponseLag()
        package var backOff: BackOff = .resource
        package var models: [ModelDeclaration] = []
        /// What 2xx answers hold and how they are cached.
        package var routes: [Route] = []
        /// What all other responses hold.
        package var errors: [Route] = []

        package static let defaultPrincipal = [PrincipalWords.auto]

        /// What a rate limit with `Retry-After` holds back.
        package enum BackOff: String, Sendable, CaseIterable {
            case resource, credential, never
        }

        package enum Cookies: String, Sendable, CaseIterable {
            case drop, replay
        }

        package enum Proxy: Sendable, Equatable {
            /// `https_proxy`, `no_proxy` and so on.
            case environment
            case none
            case url(String)
        }
    }

    /// What Larder adds to requests of clients that bring no credential.
    package struct Credential: Sendable, Equatable {
        package var header = "Authorization"
        /// The file it was read from.
        var from = ""
        /// Put before the file's content, with a space: `Bearer`.
        var scheme: String?
        /// Whether it also serves POST, PUT, PATCH and DELETE.
        package var writes = false
        /// The field's value, as it is sent.
        package var value = Secret()
    }

    /// One rule over paths.
    package struct Route: Sendable, Equatable {
        package var declaration = RouteDeclaration(path: "")
        /// What the body holds; nil when nothing is said.
        package var body: BodyRule?
        /// Members of the object that captures of the path give.
        var object: [Binding] = []
        package var overrides = CacheOverrides()
        /// Which requests are one in a replay.
        package var match = RequestMatching()
        /// Paths whose responses a write of this one invalidates; their captures are those of `declaration`.
        var invalidates: [RoutePattern] = []
        /// Whether a DELETE that was carried out has deleted the object that it speaks of.
        var deletes = true

        package struct Binding: Sendable, Equatable {
            var key: String
            var capture: String
        }
    }
}

/// A value that neither logs nor errors show.
package struct Secret: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var bytes: [UInt8] = []

    package var description: String { "[secret]" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
