import Mapping

extension Settings {
    /// One REST origin and all that is known of it.
    struct Upstream: Sendable, Equatable {
        var name = ""
        var url = UpstreamURL()
        /// `/github`, no slash at its end; empty when the upstream has its addresses to itself.
        var prefix = ""
        /// Addresses of its own; empty when it is served at the daemon's.
        var listen: [Address] = []
        var credential: Credential?
        /// What says whose data is asked for, as `PrincipalWords`.
        var principal = Self.defaultPrincipal
        /// Header fields that choose the representation; `*-Version` is a pattern.
        var context = Self.defaultContext
        /// Whether RFC 9111 is read as a shared cache reads it.
        var shared = false
        /// Targeted cache-control fields heeded before `Cache-Control`, first match wins (RFC 9213).
        var targets = ["Larder-Cache-Control"]
        var cookies: Cookies = .drop
        /// Origins of web pages that may ask.
        var cors: [String] = []
        var origin: Origin = .drop
        var rewriteLinks = false
        /// Further host names under which clients may ask for it.
        var hosts: [String] = []
        /// PEM file of certificate authorities in place of the system's.
        var caFile: String?
        var proxy: Proxy = .environment
        var http2 = true
        /// The longest freshness guessed from `Last-Modified`; zero for none.
        var heuristic: Duration = .seconds(86_400)
        /// How stale an answer may be that stands in for a failing upstream.
        var staleIfError: Duration = .forever
        var lag = ResponseLag()
        var backOff: BackOff = .resource
        var models: [ModelDeclaration] = []
        /// What 2xx answers hold and how they are cached.
        var routes: [Route] = []
        /// What all other answers hold.
        var errors: [Route] = []

        static let defaultPrincipal = [PrincipalWords.auto]
        static let defaultContext = ["Accept", "Accept-Language", "*-Version", "Time-Zone"]

        /// What a rate limit with `Retry-After` holds back.
        enum BackOff: String, Sendable, CaseIterable {
            case resource, credential, never
        }

        enum Cookies: String, Sendable, CaseIterable {
            case drop, replay
        }

        /// What the upstream sees in `Origin`.
        enum Origin: Sendable, Equatable {
            /// Nothing.
            case drop
            /// What the client sent.
            case pass
            /// This, on every request.
            case replace(String)
        }

        enum Proxy: Sendable, Equatable {
            /// `https_proxy`, `no_proxy` and so on.
            case environment
            case none
            case url(String)
        }
    }

    /// What Larder adds to requests of clients that bring no credential.
    struct Credential: Sendable, Equatable {
        var header = "Authorization"
        /// The file it was read from.
        var from = ""
        /// Put before the file's content, with a space: `Bearer`.
        var scheme: String?
        /// Whether it also serves POST, PUT, PATCH and DELETE.
        var writes = false
        /// The field's value, as it is sent.
        var value = Secret()
    }

    /// One rule over paths.
    struct Route: Sendable, Equatable {
        var declaration = RouteDeclaration(path: "")
        /// What the body holds; nil when nothing is said.
        var body: BodyRule?
        /// Members of the object that captures of the path give.
        var object: [Binding] = []
        var overrides = Overrides()
        /// Paths whose answers a write of this one makes worthless; their captures are those of `declaration`.
        var invalidates: [RoutePattern] = []
        /// Whether a DELETE that was carried out has deleted the object that it speaks of.
        var deletes = true

        struct Binding: Sendable, Equatable {
            var key: String
            var capture: String
        }
    }
}

extension Settings {
    /// Where a route departs from the upstream's word on caching; nil leaves it.
    struct Overrides: Sendable, Equatable {
        /// Freshness lifetime in place of the upstream's.
        var fresh: Duration?
        /// How long past freshness an answer may be served while it is asked for anew.
        var stale: Duration?
        var cache: Cache?
        /// Freshness lifetime of answers such as 404 and 410, where they name none.
        var negative: Duration?
        var vary = Vary()
        var key = Key()

        /// What becomes of the answer's `Vary`.
        struct Vary: Sendable, Equatable {
            /// Request fields that select no variant, though it names them.
            var ignore: [String] = []
        }

        /// Which spellings of a URL are one.
        struct Key: Sendable, Equatable {
            /// Whether the order of query parameters with different names says nothing.
            var sort = false
            /// Names of query parameters that say nothing; `*` stands for any text.
            var ignore: [String] = []
        }

        enum Cache: String, Sendable, CaseIterable {
            /// Nothing is stored, and nothing that was stored is served.
            case never
            /// Stored and served even where the upstream forbids it; see `StatusFacts.takesRouteLifetime`.
            case force
        }
    }
}

/// A value that neither logs nor errors show.
struct Secret: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    var bytes: [UInt8] = []

    var description: String { "[secret]" }
    var debugDescription: String { description }
    var customMirror: Mirror { Mirror(self, children: []) }
}

extension Duration {
    /// A hundred years, written `forever`.
    static let forever: Duration = .seconds(100 * 365 * 86_400)

    /// Whole seconds, as caching rules count.
    var seconds: Int64 { components.seconds }
}
