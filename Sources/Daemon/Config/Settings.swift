/// All that the daemon was told: the config file, with the command line's flags over it.
///
/// Plain values with their defaults. `ConfigFile` makes them from YAML and has
/// checked them; nothing here has to be checked again.
struct Settings: Sendable, Equatable {
    /// The addresses that serve upstreams which have none of their own.
    var listen: [Address] = [.tcp(host: "127.0.0.1", port: 8787)]
    var admin: Address = .tcp(host: "127.0.0.1", port: 8788)
    /// Worker loops; nil is one per core, four at most.
    var workers: Int?
    var mode: Mode = .online
    var store = Store()
    var memory = Memory()
    var limits = Limits()
    var timeouts = Timeouts()
    var live = Live()
    var log = Log()
    /// In the order of the file.
    var upstreams: [Upstream] = []

    /// Whether the upstream may be asked.
    enum Mode: String, Sendable, CaseIterable {
        case online, offline
    }

    /// The object store's file.
    struct Store: Sendable, Equatable {
        /// The file; nil is `Defaults.storePath`.
        var path: String?
        /// The group that may read the file; nil: nobody but its owner, or whom the folder lets in.
        var group: String?
        /// Bytes the file may take; least recently used documents go first.
        var maximumSize = 1 << 30
        /// How long a batch of answers may wait for company before it is committed.
        var batchDelay: Duration = .milliseconds(5)
        /// How long the end of an answer waits until what it tells of objects is committed.
        var withhold: Duration = .milliseconds(50)
        /// Bytes of answers that may wait to be committed.
        var queueSize = 64 << 20
        /// Connections that read.
        var readers = 4
        /// Changes of objects that are kept for `/changes`.
        var changes = 100_000
    }

    /// The tier of ready answers.
    struct Memory: Sendable, Equatable {
        /// Bytes it may take.
        var maximumSize = 64 << 20
    }

    /// Bounds on what clients and upstreams may send; sizes in bytes.
    struct Limits: Sendable, Equatable {
        /// Request target; 414 above.
        var target = 8 << 10
        /// Request head; 431 above.
        var head = 32 << 10
        /// Field lines of a request; 431 above.
        var fields = 100
        /// Request body; 413 above.
        var body = 1 << 30
        /// Client connections at a time; 503 above.
        var connections = 4096
        /// Decoded body of an answer that may be stored; longer ones are passed on only.
        var document = 16 << 20
        /// Objects that are taken out of one response; one that contains more is stored as it came.
        var objects = 50_000
        /// How far a client may fall behind the answer it shares before it is cut off.
        var relayWindow = 1 << 20
        /// Head of an upstream's answer; 502 above.
        var upstreamHead = 256 << 10
        /// Requests of one client to one upstream at a time, uploads apart.
        var upstreamConnections = 256
        /// Uploads of one client to one upstream at a time.
        var upstreamUploads = 128
        /// Bytes a second below which a request is ended while others wait for its place.
        var minimumRate = 1 << 10
    }

    /// How long to wait for whom.
    struct Timeouts: Sendable, Equatable {
        /// Connection to the upstream, TLS included.
        var connect: Duration = .seconds(5)
        /// From the request's last byte to the answer's first.
        var firstByte: Duration = .seconds(30)
        /// Between two reads of an upstream's answer.
        var stall: Duration = .seconds(30)
        /// A client's request head; 408 after.
        var requestHead: Duration = .seconds(10)
        /// Between two reads of a client's request body; 408 after.
        var requestBody: Duration = .seconds(30)
        /// A client's connection between requests.
        var idle: Duration = .seconds(75)
        /// A client that takes no byte of its answer.
        var writeStall: Duration = .seconds(60)
        /// Requests in flight when the daemon is told to stop.
        var drain: Duration = .seconds(10)
    }

    /// Streams of events that stay open.
    struct Live: Sendable, Equatable {
        /// Streams at a time; 503 above.
        var streams = 2048
        /// The least time between two requests for one document that nobody made but a stream which follows it.
        var interval: Duration = .seconds(15)
        /// The longest silence.
        var heartbeat: Duration = .seconds(15)
        /// What a client is told to wait before it comes back after a break.
        var retry: Duration = .seconds(2)
    }

    /// What is written to standard error.
    struct Log: Sendable, Equatable {
        var level: Level = .info

        enum Level: String, Sendable, CaseIterable {
            case trace, debug, info, notice, warning, error
        }
    }
}
