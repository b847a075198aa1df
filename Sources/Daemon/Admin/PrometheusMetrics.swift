import Basics
import CachePolicy
import Fleet
import Glibc
import HTTPSemantics
import Mapping
import Proxy
import Settings
import Store

/// One metric: its name, its kind, the sentence that explains it, and the source of its values.
struct Metric: Documented, Sendable {
    enum Kind: String, Sendable { case counter, gauge, histogram }

    struct Reading: Sendable {
        let metrics: Metrics
        let store: StoreStatistics
        let count: StoreCount
        let memory: (responses: Int, bytes: Int, evictions: Int)
        let process: ProcessFigures
        let mode: Mode
        let version: String
        var budgets = BudgetReport()
        /// Nil without a fleet.
        var fleet: FleetFigures?
        /// Now, in µs of the store's clock.
        var storeTime: Int64 = 0
    }

    struct Sample: Sendable {
        /// The suffix of the metric's name: `_bucket`, `_sum`, `_count` of a histogram.
        var suffix = ""
        var labels: [(String, String)] = []
        var value: Double

        fileprivate var order: String { labels.map(\.1).joined(separator: "\n") }
    }

    let name: String
    let kind: Kind
    var sentence = ""
    let samples: @Sendable (Reading) -> [Sample]

    init(_ kind: Kind, _ name: String, samples: @escaping @Sendable (Reading) -> [Sample]) {
        (self.kind, self.name, self.samples) = (kind, name, samples)
    }

    /// The value of one plain number; none if it is unknown.
    static func value(_ number: (some BinaryInteger)?) -> [Sample] { number.map { [Sample(value: Double($0))] } ?? [] }

    static let all: [Metric] = requests + live + upstreams + fleet + store + process

    private static let requests: [Metric] = documented([
        "Requests on the data side by their outcome.": Metric(.counter, "larder_requests_total") { reading in
            Outcome.allCases.map { outcome in
                let count = reading.metrics.total { $0.value(of: outcome) }
                return Sample(labels: [("outcome", outcome.rawValue)], value: Double(count))
            }
        },
        "Requests by upstream, the route in the config (other being without one), outcome and class of status; hits from memory by samples of one in \(RequestLog.sampleSize).":
            Metric(.counter, "larder_route_requests_total") { reading in
                routes(reading) { figures, labels in
                    figures.requests.map { kind, count in
                        let more = [("outcome", kind.outcome.rawValue), ("status", "\(kind.status)xx")]
                        return Sample(labels: labels + more, value: Double(count))
                    }.sorted { $0.order < $1.order }
                }
            },
        "Time from a request to the last byte of its response by the route in the config, other being without one; hits from memory, which are not timed, and streams apart.":
            Metric(.histogram, "larder_response_duration_seconds") { reading in
                routes(reading) { figures, labels in
                    figures.durations.count == 0 ? [] : buckets(figures.durations, labels: labels)
                }
            },
        "Lines of the access log that were not written: the disk was full, or they came too fast.":
            Metric(.counter, "larder_access_log_dropped_total") { value($0.metrics.accessLogDropped.value) },
        "Bytes of requests received from clients.":
            Metric(.counter, "larder_received_bytes_total") { value($0.metrics.total { $0.bytesReceived.value }) },
        "Bytes of responses sent to clients.":
            Metric(.counter, "larder_sent_bytes_total") { value($0.metrics.total { $0.bytesSent.value }) },
        "Connections accepted from clients.":
            Metric(.counter, "larder_connections_total") { value($0.metrics.total { $0.connectionsAccepted.value }) },
        "Connections of clients that are open.":
            Metric(.gauge, "larder_open_connections") { value($0.metrics.totalOpenConnections) },
        "1 for the mode the daemon is in, 0 for the others.": Metric(.gauge, "larder_mode") { reading in
            Mode.allCases.map { Sample(labels: [("mode", $0.rawValue)], value: $0 == reading.mode ? 1 : 0) }
        },
    ])

    private static let live: [Metric] = documented([
        "Open streams of live responses.":
            Metric(.gauge, "larder_live_streams") { value($0.metrics.live.streams.value) },
        "Documents that open streams follow.":
            Metric(.gauge, "larder_live_documents") { value($0.metrics.live.documents.value) },
        "Events of live responses, counted once for each stream.":
            Metric(.counter, "larder_live_events_total") { value($0.metrics.live.events.value) },
        "Streams of live responses that were cut off because their client did not read.":
            Metric(.counter, "larder_live_cut_off_total") { value($0.metrics.live.cutOff.value) },
    ])

    private static let upstreams: [Metric] = documented([
        "Requests to the upstream by their result.": Metric(.counter, "larder_upstream_requests_total") { reading in
            reading.metrics.allUpstreams.flatMap { upstream in
                upstream.metrics.allFinished.results.sorted { $0.key < $1.key }.map { result, count in
                    Sample(labels: [("upstream", upstream.name), ("result", result)], value: Double(count))
                }
            }
        },
        "Time from sending a request to the last byte of the upstream's response.":
            Metric(.histogram, "larder_upstream_duration_seconds") { reading in
                reading.metrics.allUpstreams.flatMap { upstream in
                    buckets(upstream.metrics.allFinished.latency, labels: [("upstream", upstream.name)])
                }
            },
        "Requests to the upstream that have not ended.":
            Metric(.gauge, "larder_upstream_in_flight") { perUpstream($0) { Double($0.inFlight.value) } },
        "1 if the last request got no response, else 0.":
            Metric(.gauge, "larder_upstream_unreachable") {
                perUpstream($0) { $0.health.unreachableSince == nil ? 0 : 1 }
            },
        "1 if several clients in a row got a stale response because none came within their patience, else 0.":
            Metric(.gauge, "larder_upstream_slow") { perUpstream($0) { $0.health.slowSince == nil ? 0 : 1 } },
        "1 if many of the latest responses were errors (5xx, or cut off), else 0.":
            Metric(.gauge, "larder_upstream_failing") { perUpstream($0) { $0.health.failingSince == nil ? 0 : 1 } },
        "Requests that are left of a rate limit, as the upstream's last response that named the limit said.":
            Metric(.gauge, "larder_upstream_ratelimit_remaining") { limits($0) { $0.remaining } },
        "Requests that a rate limit allows in a period.":
            Metric(.gauge, "larder_upstream_ratelimit_limit") { limits($0) { $0.limit } },
        "Requests that are left of a rate limit for a principal, of the \(budgetLimit) limits with the smallest share left.":
            Metric(.gauge, "larder_budget_remaining") { reading in
                reading.budgets.limits.prefix(budgetLimit).map { limit in
                    let labels = present([
                        ("upstream", limit.upstream), ("resource", limit.resource), ("principal", limit.principal),
                    ])
                    return Sample(labels: labels, value: Double(limit.remaining))
                }
            },
        "Requests that counted against a rate limit, by principal and by client program.":
            Metric(.counter, "larder_budget_spent_total") { reading in
                reading.budgets.totals.map { spender, requests in
                    let labels = present([
                        ("upstream", spender.upstream), ("resource", spender.resource),
                        ("principal", spender.principal), ("program", spender.program),
                    ])
                    return Sample(labels: labels, value: Double(requests))
                }
            },
        "Requests of clients that joined a fetch already under way.":
            Metric(.counter, "larder_coalesced_requests_total") { perUpstream($0) { Double($0.coalesced.value) } },
        "Responses after which Larder backed off: with Retry-After, or the last of a rate limit.":
            Metric(.counter, "larder_back_offs_total") { perUpstream($0) { Double($0.backOffs.value) } },
        "Requests that were not sent because Larder was backing off, those of live streams included.":
            Metric(.counter, "larder_held_back_requests_total") { perUpstream($0) { Double($0.heldBack.value) } },
        "Client requests that were not sent because the upstream could not be reached.":
            Metric(.counter, "larder_unreachable_requests_total") { perUpstream($0) { Double($0.unreachable.value) } },
    ])

    private static let store: [Metric] = documented([
        "Objects in the store.": Metric(.gauge, "larder_store_objects") { value($0.count.objects) },
        "Documents in the store.": Metric(.gauge, "larder_store_documents") { value($0.count.documents) },
        "Size of the store's files.": Metric(.gauge, "larder_store_bytes") { value($0.count.bytes) },
        "Responses ready in memory.": Metric(.gauge, "larder_memory_entries") { value($0.memory.responses) },
        "Memory used by ready responses.": Metric(.gauge, "larder_memory_bytes") { value($0.memory.bytes) },
        "Documents that made room for others, in memory and on disk.":
            Metric(.counter, "larder_evictions_total") { value($0.store.evicted + Int64($0.memory.evictions)) },
        "How often something in the store's file was found damaged.":
            Metric(.counter, "larder_store_damaged_total") { value($0.store.damaged) },
        "1 if another process keeps the store locked, or locks it again and again; the label says which one.":
            Metric(.gauge, "larder_store_locked") { reading in
                let holder = reading.store.lockHolder
                return [Sample(labels: holder.map { [("by", $0)] } ?? [], value: holder == nil ? 0 : 1)]
            },
        "Responses that wait to be written to the store.":
            Metric(.gauge, "larder_ingest_queue") { value($0.store.queued) },
        "Jobs of any kind that the store's writer has not begun.":
            Metric(.gauge, "larder_writer_queue") { value($0.store.queuedJobs) },
        "Time from a complete response to its commit.":
            Metric(.histogram, "larder_ingest_duration_seconds") { buckets($0.store.responseTimes, labels: []) },
        "Time that a commit took.":
            Metric(.histogram, "larder_commit_duration_seconds") { buckets($0.store.commitTimes, labels: []) },
        "Bytes of responses that were committed.":
            Metric(.counter, "larder_committed_bytes_total") { value($0.store.committedBytes) },
        "Jobs of the store's writer that were committed, by what they did.":
            Metric(.counter, "larder_committed_jobs_total") { reading in
                reading.store.jobs.sorted { $0.key < $1.key }.map { job, count in
                    Sample(labels: [("job", job)], value: Double(count))
                }
            },
        "Streams of /changes that are open.":
            Metric(.gauge, "larder_change_streams") { value($0.metrics.changeStreams.value) },
        "Streams of /changes cut off because their clients did not keep up.":
            Metric(.counter, "larder_change_streams_cut_total") { value($0.metrics.changeStreamsCut.value) },
        "Warnings about responses that did not fit their models or routes, each time one was given.":
            Metric(.counter, "larder_warnings_total") { value($0.store.warnings) },
    ])

    private static let process: [Metric] = documented([
        "Always 1; the label is the version.": Metric(.gauge, "larder_build_info") {
            [Sample(labels: [("version", $0.version)], value: 1)]
        },
        "Start time of the process in seconds since 1970.":
            Metric(.gauge, "process_start_time_seconds") { [Sample(value: $0.metrics.startTime)] },
        "User and system CPU time spent.":
            Metric(.counter, "process_cpu_seconds_total") { [Sample(value: $0.process.cpuSeconds)] },
        "Resident memory.": Metric(.gauge, "process_resident_memory_bytes") { value($0.process.residentBytes) },
        "Virtual memory.": Metric(.gauge, "process_virtual_memory_bytes") { value($0.process.virtualBytes) },
        "Open file descriptors.": Metric(.gauge, "process_open_fds") { value($0.process.openDescriptors) },
        "Limit of open file descriptors.": Metric(.gauge, "process_max_fds") { value($0.process.descriptorLimit) },
    ])

    private static let budgetLimit = 100

    private static func present(_ pairs: [(String, String?)]) -> [(String, String)] {
        pairs.compactMap { name, value in value.map { (name, $0.printable) } }
    }

    private static func perUpstream(_ reading: Reading, _ read: (UpstreamMetrics) -> Double) -> [Sample] {
        reading.metrics.allUpstreams.map { Sample(labels: [("upstream", $0.name)], value: read($0.metrics)) }
    }

    /// The samples of every route of every upstream; of requests without one as `other`.
    private static func routes(
        _ reading: Reading,
        _ samples: (RouteFigures, _ labels: [(String, String)]) -> [Sample]
    ) -> [Sample] {
        reading.metrics.allUpstreams.flatMap { upstream in
            upstream.metrics.allRoutes.flatMap { route, figures in
                samples(figures, [("upstream", upstream.name), ("route", route ?? RouteName.other)])
            }
        }
    }

    private static func limits(_ reading: Reading, _ read: (RateLimit) -> Int64?) -> [Sample] {
        reading.metrics.allUpstreams.flatMap { upstream in
            upstream.metrics.health.allLimits.compactMap { limit in
                let resource = limit.resource.map { [("resource", $0)] } ?? []
                return read(limit).map { Sample(labels: [("upstream", upstream.name)] + resource, value: Double($0)) }
            }
        }
    }

    static func buckets(_ histogram: Histogram, labels: [(String, String)]) -> [Sample] {
        var samples: [Sample] = []
        var total: UInt64 = 0
        for (index, count) in histogram.counts.enumerated() {
            total += count
            let bound = index < Histogram.bounds.count ? PrometheusText.number(Histogram.bounds[index]) : "+Inf"
            samples.append(Sample(suffix: "_bucket", labels: labels + [("le", bound)], value: Double(total)))
        }
        samples.append(Sample(suffix: "_sum", labels: labels, value: histogram.sum))
        samples.append(Sample(suffix: "_count", labels: labels, value: Double(total)))
        return samples
    }
}

extension Metric.Reading {
    init(_ daemon: DaemonCore) async throws(StoreError) {
        // A client may have its response a moment before the proxy's loop gives it to the store: this waits for the loop.
        let budgets = await daemon.proxy.budgets()
        let count = try await daemon.store.count()
        self.init(
            metrics: daemon.metrics,
            store: daemon.store.statistics,
            count: count,
            memory: daemon.proxy.cache.memory.statistics,
            process: .read(),
            mode: daemon.modes.current,
            version: daemon.version,
            budgets: budgets,
            fleet: daemon.fleet?.figures,
            storeTime: daemon.store.clock.now()
        )
    }
}

/// Metrics in Prometheus' text format, version 0.0.4.
enum PrometheusText {
    static let mediaType = "text/plain; version=0.0.4; charset=utf-8"

    /// The whole exposition; metrics without samples still have their description.
    static func write(_ metrics: [Metric], _ reading: Metric.Reading) -> String {
        var text = ""
        for metric in metrics {
            text += "# HELP \(metric.name) \(escaped(metric.sentence, quotes: false))\n"
            text += "# TYPE \(metric.name) \(metric.kind.rawValue)\n"
            for sample in metric.samples(reading) {
                text += metric.name + sample.suffix
                if !sample.labels.isEmpty {
                    let labels = sample.labels.map { name, value in "\(name)=\"\(escaped(value, quotes: true))\"" }
                    text += "{" + labels.joined(separator: ",") + "}"
                }
                text += " \(number(sample.value))\n"
            }
        }
        return text
    }

    /// Whole numbers without a fraction, others in the shortest form that reads back the same.
    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        if let whole = Int64(exactly: value) { return String(whole) }
        return String(value)
    }

    /// Backslash and line feed are escaped everywhere, quotes only in labels.
    private static func escaped(_ text: String, quotes: Bool) -> String {
        var result = ""
        for character in text.unicodeScalars {
            switch character {
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\"" where quotes: result += "\\\""
            default: result.unicodeScalars.append(character)
            }
        }
        return result
    }
}

/// Figures of this process from the kernel, as Prometheus defines them.
struct ProcessFigures: Sendable {
    var residentBytes: Int?
    var virtualBytes: Int?
    var openDescriptors: Int?
    var descriptorLimit: Int?
    var cpuSeconds: Double

    static func read() -> ProcessFigures {
        let memory = (try? FileBytes.read("/proc/self/statm", limit: 4096).bytes) ?? []
        let pages = String(decoding: memory, as: UTF8.self).split(separator: " ").prefix(2).compactMap { Int($0) }
        let pageSize = sysconf(Int32(_SC_PAGESIZE))
        var limit = rlimit()
        let hasLimit = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        return ProcessFigures(
            residentBytes: pages.count == 2 ? pages[1] * pageSize : nil,
            virtualBytes: pages.count == 2 ? pages[0] * pageSize : nil,
            openDescriptors: descriptorCount(),
            descriptorLimit: hasLimit ? Int(clamping: limit.rlim_cur) : nil,
            cpuSeconds: seconds(CLOCK_PROCESS_CPUTIME_ID)
        )
    }

    /// Seconds since 1970, for display and monitoring, never for ordering.
    static func wallClock() -> Double { seconds(CLOCK_REALTIME) }

    private static func seconds(_ clock: clockid_t) -> Double { Double(SystemClock.nanoseconds(clock)) / 1e9 }

    private static func descriptorCount() -> Int? {
        guard let folder = opendir("/proc/self/fd") else { return nil }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        // Excludes ".", ".." and the descriptor of this listing itself.
        return max(0, count - 3)
    }
}
