import Fleet
import Proxy
import Settings
import Store

/// How the daemon does in its fleet.
package struct FleetStatus: AdminBody {
    static let sentences = [
        "server": "The fleet's server, as in the config.",
        "version": "The server's version; absent before the first connection.",
        "since": "Since when it is connected, or not (RFC 3339).",
        "trouble": "Why it is not connected, or why the server takes nothing.",
        "delay": "How long the last announcement of another machine took until it was applied here, in seconds.",
        "upstreams": "The upstreams that are shared.", "found": "Responses of other machines that were used.",
        "refused": "Responses of other machines that were outdated, or newer than what this machine knew.",
        "missed": "Responses that no other machine had.", "shared": "Responses that this machine has shared.",
        "announced": "What this machine has announced.", "applied": "What other machines have announced.",
        "queued": "Announcements that wait for the server.",
    ]
    package var server: String
    var version: String?
    package var connected: Bool
    var since: String?
    var trouble: String?
    package var delay: Double
    var upstreams: [Upstream]
    package var found: UInt64
    var refused: UInt64
    var missed: UInt64
    package var shared: UInt64
    var announced: UInt64
    var applied: UInt64
    package var queued: Int

    package struct Upstream: AdminBody {
        static let sentences = [
            "epoch": "The epoch of its stream; 0 while it is not known.",
            "position": "The last entry that is applied here.",
            "current": "Whether everything is applied that the stream had a moment ago.",
        ]
        var name: String
        var epoch: UInt64
        package var position: String
        var current: Bool
    }

    init(_ figures: FleetFigures) {
        (server, version) = (figures.server, figures.version.isEmpty ? nil : figures.version)
        (connected, trouble) = (figures.isConnected, figures.trouble ?? figures.sendingTrouble)
        since = figures.since == 0 ? nil : StoreTime.text(figures.since)
        delay = figures.lastDelay
        upstreams = figures.upstreams.map {
            .init(name: $0.key.name, epoch: $0.epoch, position: $0.position, current: $0.isFollowing)
        }
        (found, refused, missed) = (figures.found, figures.refused, figures.missed)
        (shared, announced, applied) = (figures.shared, figures.announced, figures.applied)
        queued = figures.queued
    }

    /// What a person has to do something about; nil if nothing.
    var note: String? {
        guard let trouble else { return nil }
        let time = since.map { " since \($0)" } ?? ""
        let state = connected ? "takes nothing" : "cannot be used\(time)"
        return
            "the fleet's server \(server) \(state): \(trouble); what others change is seen here only when it is no longer fresh"
    }
}

extension Metric {
    static let fleet: [Metric] = documented([
        "1 while the fleet's server is connected, else 0.":
            Metric(.gauge, "larder_fleet_connected") { of($0) { $0.isConnected ? 1 : 0 } },
        "1 while everything is applied that an upstream's stream had a moment ago, else 0.":
            Metric(.gauge, "larder_fleet_current") { perStream($0) { $0.isFollowing ? 1 : 0 } },
        "The epoch of an upstream's stream: the server's time in µs when it began.":
            Metric(.gauge, "larder_fleet_epoch") { perStream($0) { Double($0.epoch) } },
        "Time from an announcement's arrival at the server until it was applied here.":
            Metric(.histogram, "larder_fleet_delay_seconds") { reading in
                reading.fleet.map { buckets($0.delays, labels: []) } ?? []
            },
        "Time since the server's last reply, which is asked four times a second.":
            Metric(.gauge, "larder_fleet_silence_seconds") { reading in
                guard let figures = reading.fleet, figures.lastReply != 0 else { return [] }
                return [Sample(value: max(0, Double(reading.storeTime - figures.lastReply) / 1_000_000))]
            },
        "By how much times of other machines may be wrong.":
            Metric(.gauge, "larder_fleet_clock_error_seconds") { of($0) { Double($0.clockError) / 1_000_000 } },
        "Requests that looked for a response of another machine, by what they found: a response, one that is outdated, or nothing.":
            Metric(.counter, "larder_fleet_searches_total") { reading in
                guard let figures = reading.fleet else { return [] }
                return [("found", figures.found), ("refused", figures.refused), ("missed", figures.missed)].map {
                    Sample(labels: [("result", $0.0)], value: Double($0.1))
                }
            },
        "Requests that waited while another machine fetched the response.":
            Metric(.counter, "larder_fleet_waits_total") { of($0) { Double($0.waited) } },
        "Responses that were shared.": Metric(.counter, "larder_fleet_shared_total") { of($0) { Double($0.shared) } },
        "Announcements of this machine that the server has.":
            Metric(.counter, "larder_fleet_announced_total") { of($0) { Double($0.announced) } },
        "Announcements that were read, those of this machine included.":
            Metric(.counter, "larder_fleet_applied_total") { of($0) { Double($0.applied) } },
        "Announcements that wait for the server.":
            Metric(.gauge, "larder_fleet_queue") { of($0) { Double($0.queued) } },
        "What is on the server and does not open with the fleet's key.":
            Metric(.counter, "larder_fleet_unopened_total") { of($0) { Double($0.unopened) } },
        "Requests for which the server took too long.":
            Metric(.counter, "larder_fleet_timeouts_total") { of($0) { Double($0.timedOut) } },
        "Epochs that have begun.": Metric(.counter, "larder_fleet_epochs_total") { of($0) { Double($0.epochs) } },
    ])

    private static func of(_ reading: Reading, _ read: (FleetFigures) -> Double) -> [Sample] {
        reading.fleet.map { [Sample(value: read($0))] } ?? []
    }

    private static func perStream(_ reading: Reading, _ read: (FleetFigures.Upstream) -> Double) -> [Sample] {
        (reading.fleet?.upstreams ?? []).map {
            Sample(labels: [("upstream", $0.key.name)], value: read($0))
        }
    }
}
