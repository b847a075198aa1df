import Foundation
import Glibc
import Logging
import Proxy
import Settings
import Store

/// The news that wait for the server, in a file beside the store, so that they outlive the process.
///
/// It belongs to one thread. A file that cannot be written costs only that: it is logged once.
final class NewsFile {
    private let path: String
    private let log: Logger
    /// A former process may have left something.
    private var isEmpty = false
    private var hasFailed = false

    init(besideStore store: String, log: Logger) { (path, self.log) = (Self.path(store), log) }

    private static func path(_ store: String) -> String { pathBeside(store, "fleet.queue") }

    /// Reads what a former process has left; what was not written to its end is left out.
    static func load(besideStore store: String) -> [(upstream: UpstreamKey, news: FleetNews)] {
        guard let content = try? FileBytes.read(path(store), limit: 64 << 20, isRegular: true) else { return [] }
        var reader = ByteReader(content.bytes)
        var found: [(UpstreamKey, FleetNews)] = []
        while !reader.isAtEnd {
            guard let bytes = try? reader.value(), let item = try? item(bytes) else { break }
            found.append(item)
        }
        return found
    }

    private static func item(_ bytes: [UInt8]) throws -> (UpstreamKey, FleetNews) {
        var reader = ByteReader(bytes)
        let upstream = UpstreamKey(rawValue: try reader.text())
        let (start, end) = (try reader.signed(), try reader.signed())
        return (upstream, FleetNews(try reader.event(), start: start, end: end))
    }

    func append(_ items: [NewsQueue.Item]) {
        guard !items.isEmpty else { return }
        var all = ByteWriter()
        for item in items {
            var writer = ByteWriter()
            writer.append(item.upstream.rawValue)
            writer.append(item.news.start)
            writer.append(item.news.end)
            writer.append(item.news.event)
            all.append(writer.bytes)
        }
        isEmpty = false
        let file = Glibc.open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { return failed(errno) }
        defer { close(file) }
        let (written, code) = all.bytes.withUnsafeBytes { writeAll($0, to: file) }
        if written < all.bytes.count { failed(code) } else { hasFailed = false }
    }

    func clear() {
        guard !isEmpty else { return }
        isEmpty = unlink(path) == 0 || errno == ENOENT
    }

    private func failed(_ code: Int32) {
        if !hasFailed {
            log.error(
                "what is to be announced to the fleet is in memory only: the file cannot be written",
                metadata: ["file": "\(path)", "cause": "\(systemMessage(code))"]
            )
        }
        hasFailed = true
    }
}

/// How far this machine has read, in a file beside the store: after a restart it goes on there.
///
/// It is read at start, and then written by one thread.
struct FleetMemory: Codable, Equatable {
    struct Position: Codable, Equatable {
        var epoch: UInt64
        var milliseconds: UInt64
        var number: UInt64
        /// When that was, in µs of the store's clock.
        var time: Int64
        /// As in `FleetReader.Followed.missedAt`.
        var missed: Int64?

        init(_ epoch: UInt64, _ entry: EntryID, _ time: Int64, _ missed: Int64?) {
            (self.epoch, milliseconds, number) = (epoch, entry.milliseconds, entry.number)
            (self.time, self.missed) = (time, missed)
        }

        var entry: EntryID { EntryID(milliseconds, number) }
    }

    /// Identifies the fleet's key with which the store's principals were made last.
    var key: String?
    /// The clock of the server with this id, by this store's clock: a contradiction shows that one of them was set meanwhile.
    var clock: FleetClock?
    var clockServer: String?
    var positions: [UpstreamKey: Position] = [:]

    private static func path(_ store: String) -> String { pathBeside(store, "fleet.json") }

    static func load(besideStore store: String) -> FleetMemory {
        let content = try? FileBytes.read(path(store), limit: 1 << 20, isRegular: true)
        return content.flatMap { try? JSONDecoder().decode(Self.self, from: Data($0.bytes)) } ?? FleetMemory()
    }

    /// Whether it was written; without it, a restart reads the latest news again.
    @discardableResult
    func save(besideStore store: String) -> Bool {
        guard let bytes = try? JSONEncoder().encode(self) else { return false }
        let (path, draft) = (Self.path(store), Self.path(store) + ".new")
        let file = Glibc.open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { return false }
        let (written, _) = bytes.withUnsafeBytes { writeAll($0, to: file) }
        close(file)
        return written == bytes.count && rename(draft, path) == 0
    }
}
