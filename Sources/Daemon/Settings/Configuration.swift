package import CachePolicy
package import HTTPSemantics
package import Mapping

/// All settings: the config file, overridden by the command line's flags.
///
/// Plain values with their defaults; sizes are in bytes. What a setting means is said with its key, in `Keys+….swift`.
/// `ConfigFile` makes them from YAML and has checked them, so nothing needs to be checked again.
package struct Configuration: Sendable, Equatable {
    /// The addresses for upstreams without addresses of their own.
    package var listen: [Address] = [.tcp(host: "127.0.0.1", port: 8787)]
    package var admin: [Address] = [.tcp(host: "127.0.0.1", port: 8788)]
    /// The number of worker loops; nil means one for each core, at most four.
    package var workers: Int?
    package var mode: Mode = .auto
    package var store = Store()
    package var memory = Memory()
    package var limits = Limits()
    package var live = Live()
    package var log = Log()
    package var accessLog = AccessLog()
    package var slowRequests: Duration = .zero
    package var fleet: Fleet?
    /// In the order of the file.
    package var upstreams: [Upstream] = []

    package init() {}

    package enum Mode: String, Sendable, CaseIterable {
        case auto, online, offline
    }

    package struct Store: Sendable, Equatable {
        /// The path of the file; nil for `Defaults.storePath`.
        package var path: String?
        /// The group that may read the file; nil to leave that to the folder's permissions and the owner.
        package var group: String?
        package var maximumSize = 1 << 30
        package var batchDelay: Duration = .milliseconds(20)
        package var withhold: Duration = .milliseconds(50)
        package var queueSize = 64 << 20
        package var readers = 4
        package var changes = 100_000
    }

    package struct Memory: Sendable, Equatable {
        package var maximumSize = 64 << 20
    }

    /// Limits on what clients and upstreams may send, and how long Larder waits for them; sizes in bytes.
    package struct Limits: Sendable, Equatable {
        /// Those of clients.
        package var http = HTTPLimits()
        /// Those of requests to upstreams.
        package var upstream = UpstreamOptions()
        package var document = 16 << 20
        package var objects = 50_000
        package var relayWindow = 1 << 20
        package var drain: Duration = .seconds(10)
    }

    package struct Live: Sendable, Equatable {
        package var streams = 2048
        package var interval: Duration = .seconds(15)
        package var heartbeat: Duration = .seconds(15)
        package var retry: Duration = .seconds(2)

        /// How often streams are looked at: often enough for short intervals and heartbeats, too.
        package var tick: Duration { min(.milliseconds(200), interval, heartbeat) }
    }

    package struct AccessLog: Sendable, Equatable {
        /// The format; nil for the destination's own.
        package var format: Format?
        /// The file; nil for standard error.
        package var file: String?

        package init() {}

        package enum Format: String, Sendable, CaseIterable {
            case off, short, common, json
        }
    }

    package struct Log: Sendable, Equatable {
        package var level: Level = .info

        package enum Level: String, Sendable, CaseIterable {
            case trace, debug, info, notice, warning, error
        }
    }

    /// How requests are sent to one upstream: the daemon's `limits:`, and the upstream's own keys.
    package func options(for upstream: Upstream) -> UpstreamOptions {
        var options = limits.upstream
        (options.caFile, options.proxy, options.http2) = (upstream.caFile, upstream.proxy, upstream.http2)
        options.timeouts = options.timeouts.applying(upstream.timeouts)
        options.maxPerCredential = upstream.budget.atOnce
        return options
    }
}

extension Configuration {
    /// One REST origin and its settings.
    package struct Upstream: Sendable, Equatable {
        package var name = ""
        package var url = UpstreamURL()
        /// A path such as `/github`, without a final slash; empty if the upstream has addresses of its own.
        package var prefix = ""
        /// Further paths, below the prefix, at which programs expect the API.
        package var aliases: [PathAlias] = []
        /// Its own addresses; empty if it is served at the daemon's.
        package var listen: [Address] = []
        package var credential: Credential?
        /// The fields and parameters that identify the principal, as `PrincipalWords`.
        package var principal = Self.defaultPrincipal
        package var context = ContextFields.usual
        /// How a response stored for one principal may become another's, too.
        package var validateAcross: ValidateAcross = .off
        package var etag = EntityTagRecipe()
        package var shared = false
        package var targets = CachePolicySettings().targets
        package var cookies: Cookies = .drop
        package var cors: [String] = []
        package var origin: OriginHandling = .drop
        package var rewriteLinks = false
        package var hosts: [String] = []
        package var caFile: String?
        package var proxy = UpstreamOptions().proxy
        package var http2 = UpstreamOptions().http2
        /// Whether a body that must not be transformed stays in its content coding; a recording has all bodies decoded.
        package private(set) var keepsFixedCodings = true
        package var heuristic: Duration = .seconds(CachePolicySettings().heuristicMaximum)
        /// The lifetime of responses that say nothing of caching; nil to leave it to the heuristic.
        package var freshUnsaid: Duration?
        package var staleIfError: Duration = .forever
        /// How long a client waits for a response if a stored one may be served stale.
        package var patience: Duration = .seconds(2)
        var timeouts = UpstreamTimeouts.Changes()
        package var lag = ResponseLag()
        package var backOff: BackOff = .resource
        package var budget = BudgetRules()
        /// How the upstream signs its deliveries; nil if it is not known.
        package var webhookSignature: Webhook.Signature?
        /// The paths at which it says that objects have changed, in the order of the file.
        package var webhooks: [Webhook] = []
        package var models: [ModelDeclaration] = []
        /// The rules for 2xx responses: their content and caching.
        package var routes: [Route] = []
        /// The rules for all other responses.
        package var errors: [Route] = []

        package static let defaultPrincipal = [PrincipalWords.auto]

        package enum BackOff: String, Sendable, CaseIterable {
            case resource, credential, never
        }

        package enum ValidateAcross: String, Sendable, CaseIterable {
            case off, computed, etag
        }

        package enum Cookies: String, Sendable, CaseIterable {
            case drop, replay
        }
    }

    /// One rule over paths.
    package struct Route: Sendable, Equatable {
        package var declaration = RouteDeclaration(path: "")
        package var body: BodyRule?
        /// Members of the object that are taken from captures of the path.
        var object: [Binding] = []
        package var overrides = CacheOverrides()
        /// What a POST to it reads by; nil if it is a write.
        package var read: ReadingPost?
        package var patience: Duration?
        package var timeouts = UpstreamTimeouts.Changes()
        package var match = RequestMatching()
        /// Paths whose responses a write to this one invalidates; their captures are those of `declaration`.
        var invalidates: [RoutePattern] = []
        var deletes = true

        struct Binding: Sendable, Equatable {
            var key: String
            var capture: String
        }
    }

    /// The settings for a daemon that records: every request goes upstream, nothing is held back, and nothing stored or shared is
    /// used.
    package var asksAlways: Configuration {
        var settings = self
        settings.mode = .online
        settings.fleet = nil
        for index in settings.upstreams.indices { settings.upstreams[index].askAlways() }
        return settings
    }
}

/// What is known of a POST that only reads, as `read:` of its route says.
package enum ReadingPost: String, Sendable, CaseIterable {
    /// Every one with a JSON body reads.
    case json = "true"
    /// One whose body has GraphQL queries, and nothing but queries, reads.
    case graphQL = "graphql"
}

/// A path at which programs reach another path of the same upstream; both without a final slash, empty for the root.
package struct PathAlias: Sendable, Equatable {
    package var path: String
    package var target: String
}

extension Configuration.Upstream {
    fileprivate mutating func askAlways() {
        backOff = .never
        keepsFixedCodings = false
        var rest = Configuration.Route()
        rest.declaration.path = "**"
        if !routes.contains(where: { $0.declaration == rest.declaration }) { routes.append(rest) }
        for index in routes.indices {
            routes[index].overrides = CacheOverrides()
            routes[index].overrides.cache = .never
            routes[index].read = nil
            // Whatever method or status a rule has, the last one applies to the rest.
            if routes[index].declaration != rest.declaration { routes[index].declaration.fallsThrough = true }
        }
    }
}
