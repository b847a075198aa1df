import HTTPSemantics

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
