package import CachePolicy
import HTTPSemantics
package import Mapping

/// All settings: the config file, with the command line's flags over it.
///
/// Plain values with their defaults. `ConfigFile` makes them from YAML and has
/// checked them; nothing here has to be checked again.
package struct Configuration: Sendable, Equatable {
    /// The addresses that serve upstreams which have none of their own.
    package var listen: [Address] = [.tcp(host: "127.0.0.1", port: 8787)]
    /// The addresses of the admin side.
    package var admin: [Address] = [.tcp(host: "127.0.0.1", port: 8788)]
    /// Worker loops; nil is one per core, four at most.
    package var workers: Int?
    package var mode: Mode = .online
    package var store = Store()
    package var memory = Memory()
    package var limits = Limits()
    package var timeouts = Timeouts()
    package var live = Live()
    package var log = Log()
    package var accessLog = AccessLog()
    /// Requests that take longer are logged; zero for none.
    package var slowRequests: Duration = .zero
    /// In the order of the file.
    package var upstreams: [Upstream] = []

    package init() {}

    /// Whether the upstream may be asked.
    package enum Mode: String, Sendable, CaseIterable {
        case online, offline
    }

    /// The object store's file.
    package struct Store: Sendable, Equatable {
        /// The file; nil is `Defaults.storePath`.
        package var path: String?
        /// The group that may read the file; nil: nobody but its owner, or whom the folder lets in.
        package var group: String?
        /// Bytes the file may take; least recently used documents go first.
        package var maximumSize = 1 << 30
        /// How long a batch of responses may wait for company before it is committed.
        package var batchDelay: Duration = .milliseconds(5)
        /// How long the end of a response waits at most until its objects are committed.
        package var withhold: Duration = .milliseconds(50)
        /// Bytes of responses that may wait to be committed.
        package var queueSize = 64 << 20
        /// Connections that read.
        package var readers = 4
        /// Changes of objects that are kept for `/changes`.
        package var changes = 100_000
    }

    /// The tier of ready responses.
    package struct Memory: Sendable, Equatable {
        /// Bytes it may take.
        package var maximumSize = 64 << 20
    }

    /// Bounds on what clients and upstreams may send; sizes in bytes.
    package struct Limits: Sendable, Equatable {
        private static let http = HTTPLimits()

        /// Request target; 414 above.
        package var target = http.maxTarget
        /// Request head; 431 above.
        package var head = http.maxHead
        /// Field lines of a request; 431 above.
        package var fields = http.maxFields
        /// Request body; 413 above.
        package var body = http.maxBody
        /// Client connections at a time; 503 above.
        package var connections = http.maxConnections
        /// Decoded body of a response that may be stored; longer ones are passed on only.
        package var document = 16 << 20
        /// Objects that are taken out of one response; one that contains more is stored as it came.
        package var objects = 50_000
        /// How far a client may fall behind the response it shares before it is cut off.
        package var relayWindow = 1 << 20
        /// Head of an upstream's response; 502 above.
        package var upstreamHead = 256 << 10
        /// Requests of one client to one upstream at a time, uploads apart.
        package var upstreamConnections = 256
        /// Uploads of one client to one upstream at a time.
        package var upstreamUploads = 128
        /// Bytes a second below which a request is ended while others wait for its place.
        package var minimumRate = 1 << 10
    }

    /// How long to wait for whom.
    package struct Timeouts: Sendable, Equatable {
        private static let http = HTTPLimits()

        /// Connection to the upstream, TLS included.
        package var connect: Duration = .seconds(5)
        /// From the request's last byte to the response's first.
        package var firstByte: Duration = .seconds(30)
        /// Between two reads of an upstream's response.
        package var stall: Duration = .seconds(30)
        /// A client's request head; 408 after.
        package var requestHead = http.headTimeout
        /// Between two reads of a client's request body; 408 after.
        package var requestBody = http.bodyIdle
        /// A client's connection between requests.
        package var idle = http.idle
        /// A client that takes no byte of its response.
        package var writeStall = http.writeStall
        /// Requests in flight when the daemon stops.
        package var drain: Duration = .seconds(10)
    }

    /// Streams of events that stay open.
    package struct Live: Sendable, Equatable {
        /// Streams at a time; 503 above.
        package var streams = 2048
        /// The least time between two requests for one document that nobody made but a stream which follows it.
        package var interval: Duration = .seconds(15)
        /// The longest silence.
        package var heartbeat: Duration = .seconds(15)
        /// How long a client should wait before it reconnects.
        package var retry: Duration = .seconds(2)
    }

    /// What is written of each request.
    package struct AccessLog: Sendable, Equatable {
        /// Nil: that of the destination.
        package var format: Format?
        /// The file; nil is standard error.
        package var file: String?

        package init() {}

        package enum Format: String, Sendable, CaseIterable {
            case off, short, common, json
        }
    }

    /// What is written to standard error.
    package struct Log: Sendable, Equatable {
        package var level: Level = .info

        package enum Level: String, Sendable, CaseIterable {
            case trace, debug, info, notice, warning, error
        }
    }
}

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

extension Configuration {
    /// The same for a daemon that records: every request is asked, nothing is held back, and nothing that was stored counts.
    package var asksAlways: Configuration {
        var settings = self
        settings.mode = .online
        for index in settings.upstreams.indices { settings.upstreams[index].askAlways() }
        return settings
    }
}

extension Configuration.Upstream {
    fileprivate mutating func askAlways() {
        backOff = .never
        var rest = Configuration.Route()
        rest.declaration.path = "**"
        if !routes.contains(where: { $0.declaration == rest.declaration }) { routes.append(rest) }
        for index in routes.indices {
            routes[index].overrides = CacheOverrides()
            routes[index].overrides.cache = .never
            // Whatever method or status a rule names, the last one holds for the rest.
            if routes[index].declaration != rest.declaration { routes[index].declaration.fallsThrough = true }
        }
    }
}
