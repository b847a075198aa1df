import Glibc
import Logging
import Mapping
import Proxy
import Settings
import Store
import TestSupport
import Testing

@testable import Fleet

/// One machine of a fleet without a daemon: what it is given to apply is kept.
final class Machine: Sendable {
    final class Follower: FleetFollower {
        let applied = Monitor<[FleetNews]>([])

        func apply(_ news: [FleetNews], at position: FleetPosition, in upstream: UpstreamKey) async {
            applied.withLock { $0 += news }
        }
    }

    static let upstream: UpstreamKey = "a https://a.example"

    /// It ends with the last reference to it.
    let server: RedisServer
    let member: FleetMember
    let follower = Follower()
    let folder: TemporaryFolder

    /// - Parameters:
    ///   - ahead: by how much its clock is ahead, in µs.
    ///   - isPatient: whether it waits for the server as long as a busy machine needs.
    ///   - loss: how much of what was applied its store may lack after a restart.
    ///   - folder: that of its store; another one for nil.
    init(
        _ server: RedisServer,
        key: UInt8 = 7,
        ahead: Int64 = 0,
        coalesce: Duration = .seconds(60),
        isPatient: Bool = true,
        loss: Duration = .seconds(60),
        folder: TemporaryFolder = TemporaryFolder()
    ) throws {
        // As in the daemon: a server that is gone must not end the process.
        signal(SIGPIPE, SIG_IGN)
        (self.server, self.folder) = (server, folder)
        var settings = Configuration.Fleet()
        settings.server = try FleetServer(server.url)
        settings.key = .init([UInt8](repeating: key, count: 32))
        settings.coalesce = coalesce
        var timeouts = FleetTimeouts()
        if isPatient {
            (timeouts.request, timeouts.position, timeouts.server) = (.seconds(60), .seconds(60), .seconds(60))
        }
        timeouts.loss = loss
        member = FleetMember(
            settings,
            upstreams: [Self.upstream],
            besideStore: folder.file(),
            now: { Self.now() + ahead },
            timeouts: timeouts,
            log: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        member.start(follower)
    }

    deinit { Task { [member] in await member.stop(within: .zero) } }

    static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    var position: FleetPosition? { member.position(in: Self.upstream) }
    var applied: [FleetNews] { follower.applied.current }

    /// Waits until it follows the stream.
    @discardableResult
    func waitUntilConnected() async -> FleetPosition? {
        #expect(await eventually { position != nil && canSend })
        return position
    }

    /// Whether its commands reach the server.
    private var canSend: Bool { member.figures.isConnected && member.isSending }

    func waitUntilAlone() async { #expect(await eventually { position == nil }) }

    func wrote(_ path: String) -> FleetNews {
        let time = Self.now()
        return FleetNews(
            .wrote(.random(in: 0 ... .max), Invalidation(of: Self.upstream, paths: [path], at: time)),
            start: time,
            end: time
        )
    }

    /// Announces a write; returns once the server has it.
    func write(_ path: String) async -> FleetPosition? { await member.announce(wrote(path), in: Self.upstream) }

    /// The paths of the writes that it was given.
    var paths: [String] { applied.compactMap(\.path) }

    static func key(_ url: String = "/x", _ credentials: String? = nil) -> SharedKey {
        SharedKey(upstream: upstream, context: "", url: url, credentials: credentials.map { Array($0.utf8) })
    }

    func document(_ body: String = "{}", sent: Int64 = Machine.now(), lifetime: Int64 = 60) -> SharedDocument {
        SharedDocument(
            status: 200,
            head: Array("Content-Type: application/json".utf8),
            body: Array(body.utf8),
            variant: [],
            sent: sent,
            completed: sent + 10,
            lifetime: lifetime,
            objects: []
        )
    }

    /// Asks for the turn to fetch a response, and shares it.
    func share(_ body: String = "{}", at key: SharedKey = key()) async throws {
        guard case .mine = await member.find(key) else {
            Issue.record("somebody else fetches it")
            return
        }
        member.share(document(body), at: key, from: try #require(position))
    }

    /// The body of a document that another machine has shared; nil if none is used.
    func found(_ key: SharedKey = key()) async -> String? {
        guard case .document(let document) = await member.find(key) else { return nil }
        return String(decoding: document.body, as: UTF8.self)
    }
}

extension FleetNews {
    /// The path of a write.
    var path: String? {
        guard case .wrote(_, let invalidation, _) = event else { return nil }
        return invalidation.isOfEverything ? "*" : invalidation.paths.first
    }
}
