import Proxy
import Settings

/// One metric: what it is called, what it is, the sentence that explains it, and where its values come from.
struct Metric: Sendable {
    enum Kind: String, Sendable {
        case counter, gauge, histogram
    }

    /// What a scrape sees at one moment.
    struct Reading: Sendable {
        let metrics: Metrics
        let store: StoreFigures
        let process: ProcessFigures
        let mode: Mode
        let version: String
    }

    /// One line of the exposition.
    struct Sample: Sendable, Equatable {
        /// What is put behind the metric's name: `_bucket`, `_sum`, `_count` of a histogram.
        var suffix = ""
        var labels: [Label] = []
        var value: Double
    }

    struct Label: Sendable, Equatable {
        let name: String
        let value: String
    }

    let name: String
    let kind: Kind
    let sentence: String
    let samples: @Sendable (Reading) -> [Sample]

    /// The value of one plain number; none where it is unknown.
    static func value(_ number: (some BinaryInteger)?) -> [Sample] {
        number.map { [Sample(value: Double($0))] } ?? []
    }
}

extension Metric {
    /// Every metric of the daemon, in the order in which `/metrics` shows them.
    static let all: [Metric] = requests + live + upstreams + store + process

    private static let requests: [Metric] = [
        Metric(
            name: "larder_requests_total",
            kind: .counter,
            sentence: "Requests on the data side by the way they were answered.",
            samples: { reading in
                Outcome.allCases.map { outcome in
                    Sample(
                        labels: [Label(name: "outcome", value: outcome.rawValue)],
                        value: Double(reading.metrics.total { $0.value(of: outcome) })
                    )
                }
            }
        ),
        Metric(
            name: "larder_received_bytes_total",
            kind: .counter,
            sentence: "Bytes of requests received from clients.",
            samples: { value($0.metrics.total { $0.bytesReceived.value }) }
        ),
        Metric(
            name: "larder_sent_bytes_total",
            kind: .counter,
            sentence: "Bytes of answers sent to clients.",
            samples: { value($0.metrics.total { $0.bytesSent.value }) }
        ),
        Metric(
            name: "larder_connections_total",
            kind: .counter,
            sentence: "Connections accepted from clients.",
            samples: { value($0.metrics.total { $0.connectionsAccepted.value }) }
        ),
        Metric(
            name: "larder_open_connections",
            kind: .gauge,
            sentence: "Connections of clients that are open.",
            samples: { value($0.metrics.totalOpenConnections) }
        ),
        Metric(
            name: "larder_mode",
            kind: .gauge,
            sentence: "1 for the mode the daemon is in, 0 for the others.",
            samples: { reading in
                Mode.allCases.map {
                    Sample(labels: [Label(name: "mode", value: $0.rawValue)], value: $0 == reading.mode ? 1 : 0)
                }
            }
        ),
    ]

    private static let live: [Metric] = [
        Metric(
            name: "larder_live_streams",
            kind: .gauge,
            sentence: "Streams of live answers that are open.",
            samples: { value($0.metrics.live.streams.value) }
        ),
        Metric(
            name: "larder_live_documents",
            kind: .gauge,
            sentence: "Documents that open streams follow.",
            samples: { value($0.metrics.live.documents.value) }
        ),
        Metric(
            name: "larder_live_events_total",
            kind: .counter,
            sentence: "Events of live answers, counted once for each stream.",
            samples: { value($0.metrics.live.events.value) }
        ),
        Metric(
            name: "larder_live_cut_off_total",
            kind: .counter,
            sentence: "Streams of live answers that were cut off because their client did not read.",
            samples: { value($0.metrics.live.cutOff.value) }
        ),
    ]

    private static let upstreams: [Metric] = [
        Metric(
            name: "larder_upstream_requests_total",
            kind: .counter,
            sentence: "Requests to the upstream by their result.",
            samples: { reading in
                reading.metrics.allUpstreams.flatMap { upstream in
                    upstream.metrics.allFinished.results.sorted { $0.key < $1.key }.map { result, count in
                        Sample(
                            labels: [
                                Label(name: "upstream", value: upstream.name), Label(name: "result", value: result),
                            ],
                            value: Double(count)
                        )
                    }
                }
            }
        ),
        Metric(
            name: "larder_upstream_duration_seconds",
            kind: .histogram,
            sentence: "Time from sending a request to the last byte of the upstream's answer.",
            samples: { reading in
                reading.metrics.allUpstreams.flatMap { upstream in
                    buckets(
                        upstream.metrics.allFinished.latency,
                        labels: [Label(name: "upstream", value: upstream.name)]
                    )
                }
            }
        ),
        Metric(
            name: "larder_upstream_in_flight",
            kind: .gauge,
            sentence: "Requests to the upstream that have not ended.",
            samples: { perUpstream($0) { Double($0.inFlight.value) } }
        ),
        Metric(
            name: "larder_coalesced_requests_total",
            kind: .counter,
            sentence: "Requests of clients that joined a fetch already under way.",
            samples: { perUpstream($0) { Double($0.coalesced.value) } }
        ),
        Metric(
            name: "larder_back_offs_total",
            kind: .counter,
            sentence: "Responses of the upstream that asked for a pause, with Retry-After.",
            samples: { perUpstream($0) { Double($0.backOffs.value) } }
        ),
        Metric(
            name: "larder_held_back_requests_total",
            kind: .counter,
            sentence: "Requests of clients that were not sent because the upstream had asked for a pause.",
            samples: { perUpstream($0) { Double($0.heldBack.value) } }
        ),
    ]

    private static let store: [Metric] = [
        Metric(
            name: "larder_store_objects",
            kind: .gauge,
            sentence: "Objects in the store.",
            samples: { value($0.store.objects) }
        ),
        Metric(
            name: "larder_store_documents",
            kind: .gauge,
            sentence: "Documents in the store.",
            samples: { value($0.store.documents) }
        ),
        Metric(
            name: "larder_store_bytes",
            kind: .gauge,
            sentence: "Size of the store's files.",
            samples: { value($0.store.bytes) }
        ),
        Metric(
            name: "larder_memory_entries",
            kind: .gauge,
            sentence: "Answers ready in memory.",
            samples: { value($0.store.memoryEntries) }
        ),
        Metric(
            name: "larder_memory_bytes",
            kind: .gauge,
            sentence: "Memory taken by ready answers.",
            samples: { value($0.store.memoryBytes) }
        ),
        Metric(
            name: "larder_evictions_total",
            kind: .counter,
            sentence: "Documents that made room for others, in memory and on disk.",
            samples: { value($0.store.evictions) }
        ),
        Metric(
            name: "larder_store_damaged_total",
            kind: .counter,
            sentence: "How often something in the store's file was found damaged.",
            samples: { value($0.store.damaged) }
        ),
        Metric(
            name: "larder_ingest_queue",
            kind: .gauge,
            sentence: "Answers that wait to be written to the store.",
            samples: { value($0.store.ingestQueue) }
        ),
        Metric(
            name: "larder_change_streams",
            kind: .gauge,
            sentence: "Streams of /changes that are open.",
            samples: { value($0.metrics.changeStreams.value) }
        ),
        Metric(
            name: "larder_change_streams_cut_total",
            kind: .counter,
            sentence: "Streams of /changes cut off because their clients did not keep up.",
            samples: { value($0.metrics.changeStreamsCut.value) }
        ),
        Metric(
            name: "larder_warnings_total",
            kind: .counter,
            sentence: "Answers that did not fit their models or routes.",
            samples: { value($0.store.warnings) }
        ),
    ]

    private static let process: [Metric] = [
        Metric(
            name: "larder_build_info",
            kind: .gauge,
            sentence: "Always 1; the label tells the version.",
            samples: { [Sample(labels: [Label(name: "version", value: $0.version)], value: 1)] }
        ),
        Metric(
            name: "process_start_time_seconds",
            kind: .gauge,
            sentence: "Start time of the process in seconds since 1970.",
            samples: { [Sample(value: $0.metrics.startTime)] }
        ),
        Metric(
            name: "process_cpu_seconds_total",
            kind: .counter,
            sentence: "User and system CPU time spent.",
            samples: { [Sample(value: $0.process.cpuSeconds)] }
        ),
        Metric(
            name: "process_resident_memory_bytes",
            kind: .gauge,
            sentence: "Resident memory.",
            samples: { value($0.process.residentBytes) }
        ),
        Metric(
            name: "process_virtual_memory_bytes",
            kind: .gauge,
            sentence: "Virtual memory.",
            samples: { value($0.process.virtualBytes) }
        ),
        Metric(
            name: "process_open_fds",
            kind: .gauge,
            sentence: "Open file descriptors.",
            samples: { value($0.process.openDescriptors) }
        ),
        Metric(
            name: "process_max_fds",
            kind: .gauge,
            sentence: "Limit of open file descriptors.",
            samples: { value($0.process.descriptorLimit) }
        ),
    ]

    private static func perUpstream(_ reading: Reading, _ read: (UpstreamMetrics) -> Double) -> [Sample] {
        reading.metrics.allUpstreams.map {
            Sample(labels: [Label(name: "upstream", value: $0.name)], value: read($0.metrics))
        }
    }

    /// The cumulative buckets, sum and count of a histogram.
    private static func buckets(_ histogram: Histogram, labels: [Label]) -> [Sample] {
        var samples: [Sample] = []
        var total: UInt64 = 0
        for (index, count) in histogram.counts.enumerated() {
            total += count
            let bound = index < Histogram.bounds.count ? PrometheusText.number(Histogram.bounds[index]) : "+Inf"
            samples.append(
                Sample(suffix: "_bucket", labels: labels + [Label(name: "le", value: bound)], value: Double(total))
            )
        }
        samples.append(Sample(suffix: "_sum", labels: labels, value: histogram.sum))
        samples.append(Sample(suffix: "_count", labels: labels, value: Double(total)))
        return samples
    }
}
