import HTTPSemantics
import Yams

/// The keys at the top of the file, and those of the daemon's own sections.
extension ConfigDraft: ConfigSection {
    static let keys: [ConfigKey<ConfigDraft>] = documented([
        """
        Files to start from, relative to this one's folder, or presets by name, such as github. This file is merged \
        over them, key by key, also within upstreams, models, properties and routes. A key without a value removes \
        theirs.
        """: ConfigKey("include", .list(.text), fallback: "[]") { _, _, _ in
            // The files are merged before any key is read.
        },
        """
        Where programs reach Larder: HOST:PORT, or unix:PATH, or a list of them. The long form gives a socket its \
        permissions: { address: "unix:/run/larder/larder.sock", mode: "0660", group: larder }.
        """: .addresses("listen", \.settings.listen),
        """
        Where the admin side listens, for the commands, the dashboard and metrics: an address or a list. On a Unix socket \
        its permissions decide who may use it, { address: "unix:/run/larder/admin.sock", mode: "0660", group: larder }; \
        over TCP it requires the token in admin.token beside the store.
        """: .addresses("admin", \.settings.admin),
        "Event loops that serve clients. A single one asks the upstream, too. Default: one per core, at most four.":
            .value("workers", .integer(1...64), \.settings.workers, example: "2") { $1.integer($0, in: 1...64) }
            .readAtStart(\.settings.workers),
        """
        auto: ask the upstream for what is not stored or not fresh; while it cannot be reached, serve at once what a failure \
        would bring, and look each second whether it is back. online: the same, but send every request. offline: never ask the \
        upstream; serve what is stored, fresh or stale. `larder mode` changes it while the daemon runs.
        """: .choice("mode", \.settings.mode),
        "The file that stores objects and responses.": .section("store", \.settings.store),
        "Responses that are kept ready in memory.": .section("memory", \.settings.memory),
        "Limits on what clients and upstreams may send. What exceeds one is refused with the status named.":
            .section("limits", \.settings.limits),
        "How long Larder waits for clients and upstreams.":
            .section("timeouts", \.settings.limits, keys: Configuration.Limits.timeouts),
        "Responses that are followed as they change (Larder-Live: on).": .section("live", \.settings.live),
        "What is written to standard error, and so to the journal.": .section("log", \.settings.log),
        """
        A line for each request. short: for people. common: Apache's format. json: with cache status, cache key and the \
        upstream's time. off: none. Default: short if standard error is a terminal, else off. Credentials in URLs are \
        redacted. The long form names a file: { format: json, file: /var/log/larder/access.log }.
        """: .section("access_log", \.settings.accessLog, orValueOf: "format"),
        "Requests that take longer than this are logged as warnings, except streams. 0s turns this off.":
            .duration("slow_requests", \.settings.slowRequests, in: .zero ... .seconds(86_400)),
        """
        Other Larders that share responses and writes with this one, through a server of the Redis protocol. See docs/fleet.md.
        """: .fleet,
        "The REST APIs that Larder serves, each under a name of your choice.": .upstreams,
        """
        The types of object that responses contain. Members that are declared as properties are shared by all responses that \
        show the object; all others stay with their response.
        """: .models(\.models),
        """
        What the responses under a path contain, and how they are cached. Paths are written without prefix and base path. \
        In each component a literal wins over "#" (digits), "#" over "*" (anything), and "*" over "**" (all that \
        follows); the order of the rules does not matter.
        """: .routes(\.routes),
        "The same for responses that are not 2xx, without the keys on caching and captures.": .errors(\.errors),
    ])
}

extension Configuration.Store: ConfigSection {
    static let keys: [ConfigKey<Configuration.Store>] = documented([
        """
        The file. Default: larder.db in $STATE_DIRECTORY under systemd, else in $XDG_CACHE_HOME/larder, else in \
        ~/.cache/larder. A relative path counts from the folder that Larder is started in. admin.token is kept beside it.
        """: .file("path", \.path, example: "/var/lib/larder/larder.db").readAtStart(\.path),
        """
        A group that may read the file (mode 0640). Without it, only the owner can read a store whose folder is open to \
        others.
        """: .text("group", \.group, example: "larder").readAtStart(\.group),
        "The most disk space it may use. The least recently used documents are removed first.":
            .size("maximum_size", \.maximumSize, in: 4 << 20...1 << 50),
        "Longest wait before a response is committed together with others, if no client waits for it.":
            .duration("batch_delay", \.batchDelay, in: .zero ... .seconds(5)),
        """
        The longest delay of a response's last byte while its objects are committed, so that all other responses show \
        them, too. It usually takes one or two milliseconds.
        """: .duration("withhold", \.withhold, in: .zero ... .seconds(60)),
        "How many bytes of responses may wait to be committed. Beyond it, new ones are kept in memory only.":
            .size("queue_size", \.queueSize, in: 1 << 20...1 << 34),
        "Connections that read the file.": .integer("readers", \.readers, in: 1...64).readAtStart(\.readers),
        """
        How many changes of objects are kept, so that a client of /changes can continue where it was; the oldest are \
        removed first. Each takes a byte or two, all together at most a sixteenth of the file. 0 keeps none and turns \
        /changes off.
        """: .integer("changes", \.changes, in: 0...100_000_000).readAtStart(\.changes),
    ])
}

extension Configuration.Memory: ConfigSection {
    static let keys: [ConfigKey<Configuration.Memory>] = documented([
        "The most memory they may use. 0 keeps none.": .size("maximum_size", \.maximumSize, in: 0...1 << 40)
    ])
}

extension Configuration.Limits: ConfigSection {
    static let keys: [ConfigKey<Configuration.Limits>] = documented([
        "A request's target (path and query). Longer ones: 414.": .size("target", \.http.maxTarget, in: 256...1 << 20),
        "A request's head. Larger ones: 431.": .size("head", \.http.maxHead, in: 1 << 10...1 << 20),
        "Header fields of a request. More: 431.": .integer("fields", \.http.maxFields, in: 8...10_000),
        "A request's body, which is passed on as it is received. Larger ones: 413.":
            .size("body", \.http.maxBody, in: 0...1 << 40),
        """
        Client connections at a time. For one more, the longest idle one is closed, or else one whose request has not \
        arrived completely. If there is none, it gets 503. The admin side has a limit of its own.
        """: .integer("connections", \.http.maxConnections, in: 1...1_000_000),
        "A response's body after decompression. Longer ones are passed on, but not stored.":
            .size("document", \.document, in: 1 << 10...1 << 30),
        """
        Objects in one response. One that contains more is stored as received and shares none of its objects; any write \
        to its upstream removes it. Each object takes about a kilobyte of memory until it is stored.
        """: .integer("objects", \.objects, in: 100...10_000_000),
        "How many bytes a client may lag behind a response that is still arriving. Then it is disconnected.":
            .size("relay_window", \.relayWindow, in: 16 << 10...1 << 30),
        "The head of an upstream's response. Larger ones: 502.":
            .size("upstream_head", \.upstream.maxHeadBytes, in: 4 << 10...1 << 24),
        """
        Requests of one client to one upstream at a time, each on a connection of its own unless the upstream supports \
        HTTP/2. A client is a credential and an address; all clients together may have a quarter more. Further requests \
        wait for their turn, at most half a minute.
        """: .integer("upstream_connections", \.upstream.maxConnectionsPerHost, in: 1...1000),
        """
        The same for requests whose body is still arriving when they are sent. They are counted separately, so that slow \
        uploads do not block other requests.
        """: .integer("upstream_uploads", \.upstream.maxUploads, in: 1...1000),
        """
        Bytes a second. While requests wait for their turn, those that were slower than this for ten seconds are ended: \
        uploads with 408, responses by a reset. 0 ends none.
        """: .size("minimum_rate", \.upstream.minimumRate, in: 0...1 << 30),
    ])

    static let range: ClosedRange<Duration> = .milliseconds(1) ... .seconds(86_400)

    static let timeouts: [ConfigKey<Configuration.Limits>] = documented([
        "To connect to the upstream, TLS included.": .duration("connect", \.upstream.timeouts.connect, in: range),
        "From the end of a request to the upstream's first byte.":
            .duration("first_byte", \.upstream.timeouts.firstByte, in: range),
        "Between two pieces of an upstream's response.": .duration("stall", \.upstream.timeouts.stall, in: range),
        "For a client to send a request's head. Then: 408.": .duration("request_head", \.http.headTimeout, in: range),
        "Between two pieces of a client's request body. Then: 408.":
            .duration("request_body", \.http.bodyIdle, in: range),
        "For a client's connection without a request.": .duration("idle", \.http.idle, in: range),
        "For a client to read the next piece of its response.": .duration("write_stall", \.http.writeStall, in: range),
        "For requests in flight, and for responses that are still to be stored, when the daemon stops.":
            .duration("drain", \.drain, in: .zero ... .seconds(3600)),
    ])
}

extension UpstreamTimeouts.Changes: ConfigSection {
    static let keys: [ConfigKey<UpstreamTimeouts.Changes>] = documented([
        "To connect to the upstream, TLS included.":
            .duration("connect", \.connect, in: Configuration.Limits.range, example: "2s"),
        "From the end of a request to the upstream's first byte.":
            .duration("first_byte", \.firstByte, in: Configuration.Limits.range, example: "2m"),
        "Between two pieces of an upstream's response.":
            .duration("stall", \.stall, in: Configuration.Limits.range, example: "1m"),
    ])
}

extension Configuration.Live: ConfigSection {
    static let keys: [ConfigKey<Configuration.Live>] = documented([
        "Streams at a time. More: 503.": .integer("streams", \.streams, in: 0...1_000_000),
        """
        A document that is followed is fetched again when it becomes stale, but no sooner than this after its last fetch.
        """: .duration("interval", \.interval, in: .milliseconds(10) ... .seconds(86_400)),
        "The longest silence of a stream. Then it sends a comment, which reveals connections that are gone.":
            .duration("heartbeat", \.heartbeat, in: .milliseconds(10) ... .seconds(3600)),
        "How long clients should wait before they reconnect; sent to them as `retry`.":
            .duration("retry", \.retry, in: .milliseconds(1) ... .seconds(3600)),
    ])
}

extension Configuration.AccessLog: ConfigSection {
    static let keys: [ConfigKey<Configuration.AccessLog>] = documented([
        "off, short, common or json. Default: json in a file.": .choice("format", \.format, example: "json"),
        "The file. It is opened anew at SIGUSR1, as logrotate needs it. Default: standard error.":
            .file("file", \.file, example: "/var/log/larder/access.log"),
    ])
}

extension Configuration.Log: ConfigSection {
    static let keys: [ConfigKey<Configuration.Log>] = documented([
        "Messages of this level and above are written.": .choice("level", \.level)
    ])
}
