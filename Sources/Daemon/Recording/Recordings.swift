import Foundation
import HTTPSemantics
package import HTTPServer
package import Logging
package import Proxy
import Store
import Synchronization

/// The recordings of a running daemon, controlled by its admin side, below one folder.
///
/// May be used on any thread. It records what each client receives, from the cache or from the upstream.
package final class Recordings: ExchangeInterceptor {
    /// The folder with a folder for each recording, named after it.
    private let root: String
    /// The config to put into each, and its upstreams.
    private let subject: Mutex<(config: String, upstreams: [ProxiedUpstream])>
    private let log: Logger
    private let running = Mutex<[String: Running]>([:])
    private let count = Atomic<Int>(0)

    private struct Running {
        let recorder: Recorder
        let session: String?
        let began: Double
    }

    /// - Parameter config: See `ConfigFile.portable`.
    package init(folder: String, config: String, upstreams: [ProxiedUpstream], log: Logger) {
        (root, self.log) = (folder, log)
        subject = Mutex((config, upstreams))
    }

    /// Replaces the configuration, for recordings that are started from now on.
    package func replaceConfiguration(by config: String, upstreams: [ProxiedUpstream]) {
        subject.withLock { $0 = (config, upstreams) }
    }

    var config: String { subject.withLock(\.config) }
    var upstreams: [ProxiedUpstream] { subject.withLock(\.upstreams) }

    package var isActive: Bool { count.load(ordering: .relaxed) > 0 }

    package func received(_ incoming: IncomingRequest, _ reply: Reply, _ proxy: ProxyCore) {
        let session = incoming.session
        let recorders = running.withLock { running in
            running.values.filter { $0.session == nil || $0.session == session }.map(\.recorder)
        }
        for recorder in recorders { recorder.watch(incoming, reply) }
        proxy.accept(incoming, reply)
    }

    /// One recording in the list, as the admin side shows it.
    package struct Entry: Codable, Sendable {
        package let name: String
        let folder: String
        package let running: Bool
        /// The number of exchanges; nil for a finished recording, which is not counted.
        package let exchanges: Int?
        /// The `Larder-Session` of the requests that are recorded; nil if all are, or if it is finished.
        package let session: String?
        /// By RFC 3339; nil for a finished recording.
        let began: String?
    }

    /// Begins a recording.
    ///
    /// - Parameter session: the value of `Larder-Session` that requests need; nil for all requests.
    package func start(_ name: String, session: String?) throws(RecordingError) {
        try Self.check(name)
        let folder = RecordingFolder("\(root)/\(name)")
        guard !running.withLock({ $0[name] != nil })
        else { throw RecordingError(name, "this recording is running already") }
        let now = Date().timeIntervalSince1970
        let writer = try RecordingWriter(folder, config: config, recorded: now)
        let recorder = Recorder(writer, upstreams: upstreams, log: log)
        running.withLock { $0[name] = Running(recorder: recorder, session: session, began: now) }
        count.add(1, ordering: .relaxed)
    }

    /// The number of exchanges that a running recording has; nil for a finished one.
    package func runningCount(of name: String) -> Int? { running.withLock { $0[name]?.recorder }?.count }

    /// Ends a recording; all complete exchanges are written.
    package func stop(_ name: String) throws(RecordingError) -> RecordingSummary {
        guard let running = running.withLock({ $0.removeValue(forKey: name) }) else {
            _ = try recordingFolder(of: name)
            throw RecordingError(name, "this recording is not running")
        }
        count.subtract(1, ordering: .relaxed)
        return running.recorder.close()
    }

    package func stopAll() { for name in running.withLock({ Array($0.keys) }) { _ = try? stop(name) } }

    package var list: [Entry] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
        let running = running.withLock { $0 }
        return names.filter { RecordingFolder("\(root)/\($0)").hasManifest }.sorted().map { name in
            let now = running[name]
            return Entry(
                name: name,
                folder: "\(root)/\(name)",
                running: now != nil,
                exchanges: now?.recorder.count,
                session: now?.session,
                began: now.map { RecordingTime.text($0.began) }
            )
        }
    }

    package func remove(_ name: String) throws(RecordingError) {
        let folder = try recordingFolder(of: name)
        guard !running.withLock({ $0[name] != nil })
        else { throw RecordingError(name, "this recording is running; stop it first") }
        do {
            try FileManager.default.removeItem(atPath: folder.path)
        } catch { throw RecordingError(name, "it cannot be removed: \(error.localizedDescription)") }
    }

    /// The files of a recording, relative to its folder.
    package func files(of name: String) throws(RecordingError) -> [String] {
        let folder = try recordingFolder(of: name)
        let bodies = (try? FileManager.default.contentsOfDirectory(atPath: folder.bodies)) ?? []
        return RecordingFolder.fixedNames + bodies.sorted().map { "\(RecordingFolder.bodiesName)/\($0)" }
    }

    package func file(_ path: String, of name: String) throws(RecordingError) -> [UInt8] {
        let folder = try recordingFolder(of: name)
        if path.hasPrefix(RecordingFolder.bodiesName) { return try folder.file(ofBody: path) }
        guard RecordingFolder.fixedNames.contains(path)
        else { throw RecordingError(path, "this is not a file of a recording") }
        return try folder.read("\(folder.path)/\(path)", limit: 1 << 30)
    }

    func recordingFolder(of name: String) throws(RecordingError) -> RecordingFolder {
        try Self.check(name)
        let folder = RecordingFolder("\(root)/\(name)")
        guard folder.hasManifest else { throw RecordingError(name, "there is no such recording") }
        return folder
    }

    private static func check(_ name: String) throws(RecordingError) {
        guard name.utf8.count <= 100, RecordingFolder.isName(name.utf8[...]) else {
            throw RecordingError(name, "this is not a name; use letters, digits, \".\", \"-\" and \"_\"")
        }
    }
}

/// Selects the stored responses that become a recording.
package struct FreezeSelection: Sendable {
    /// Only responses that contain an object of this model.
    package var model: String?
    /// Only responses of one principal, by its label; nil if there is only one.
    package var principal: String?
    /// Only responses received within this time, in µs.
    package var maxAge: Int64?
    /// Only responses whose upstream, and path with query, this accepts.
    package var covers: (@Sendable (_ upstream: String, _ url: String) -> Bool)?

    package init() {}
}

extension Recordings {
    /// Makes a recording of stored responses, as a client would receive them now, in the order of their arrival.
    ///
    /// Of several variants of one response it contains the newest.
    package func freeze(_ name: String, _ selection: FreezeSelection, of cache: ResponseCache)
        async throws(RecordingError)
        -> RecordingSummary
    {
        try Self.check(name)
        let folder = RecordingFolder("\(root)/\(name)")
        guard !folder.hasManifest else { throw RecordingError(name, "there is a recording of this name already") }
        // What clients have got a moment ago is in it, too.
        _ = await cache.store.flushUnlessBlocked()
        let rows = try await Self.rows(selection, cache.store)
        let recording = try RecordingWriter(folder, config: config, recorded: Date().timeIntervalSince1970)
        let writer = RedactedWriter(recording, upstreams: upstreams)
        let known = Dictionary(upstreams.map { ($0.name, $0) }) { first, _ in first }
        var summary = RecordingSummary()
        do throws(RecordingError) {
            for row in rows {
                guard CacheKey.method(ofURL: row.url) == "GET" else {
                    summary.skipped[.read, default: 0] += 1
                    continue
                }
                guard let upstream = known[row.upstream], let document = try await Self.document(row, selection, cache)
                else { continue }
                var fields = ResponseCache.fields(of: document)
                // Lengths are computed at replay.
                fields.remove("content-length")
                let exchange = WholeExchange(
                    method: "GET",
                    target: row.url,
                    requestFields: upstream.requestFields(ofContext: document.key.context),
                    response: .init(status: document.status, fields: fields, body: document.body),
                    arrivalTime: Double(row.end) / 1_000_000
                )
                let (route, owner) = (upstream.route(ofURL: row.url), row.principal == Self.anonymous ? nil : 1)
                let omission = try writer.append(exchange, of: row.upstream, route: route, credential: owner)
                if let omission { summary.leaveOut(exchange, omission) }
            }
            try writer.lookThrough()
        } catch {
            try? FileManager.default.removeItem(atPath: folder.path)
            throw error
        }
        recording.flush()
        (summary.count, summary.lookalikes) = (recording.count, writer.lookalikes)
        return summary
    }

    private static let anonymous = ObjectStore.label(ofPrincipal: [])

    /// The selected responses of one principal, the newest variant of each.
    private static func rows(_ selection: FreezeSelection, _ store: ObjectStore) async throws(RecordingError)
        -> [DocumentRow]
    {
        let earliest = selection.maxAge.map { store.clock.now() - $0 } ?? .min
        var found: [DocumentRow] = []
        var (indices, principals): ([String: Int], [String: Int]) = ([:], [:])
        var listing = DocumentListing(isDescending: false, principal: selection.principal, limit: 1000)
        repeat {
            let page: Page<DocumentRow>
            do throws(StoreError) {
                page = try await store.list(listing)
            } catch { throw RecordingError("the store", error.description) }
            for row in page.rows where row.end >= earliest && selection.covers?(row.upstream, row.url) ?? true {
                principals[row.principal, default: 0] += 1
                let key = [row.upstream, row.principal, row.context, row.url].joined(separator: "\n")
                if let known = indices[key] {
                    found[known] = row
                } else {
                    indices[key] = found.count
                    found.append(row)
                }
            }
            listing.after = page.next
        } while listing.after != nil
        guard principals.count <= 1 else {
            let list = principals.sorted { $0.key < $1.key }.map { "\($0.key) (\($0.value))" }.joined(separator: ", ")
            throw RecordingError("the store", "it has responses of several principals; name one (--principal): \(list)")
        }
        return found
    }

    private static func document(_ row: DocumentRow, _ selection: FreezeSelection, _ cache: ResponseCache)
        async throws(RecordingError) -> StoredDocument?
    {
        do throws(StoreError) {
            let found = try await cache.store.document(row.id, showing: selection.model)
            return found.flatMap(cache.currentUnlessOlder)
        } catch { throw RecordingError("the store", error.description) }
    }
}

extension ProxiedUpstream {
    fileprivate func requestFields(ofContext context: String) -> Fields {
        Fields(
            context.split(separator: "\n").compactMap { line in
                let parts = line.split(separator: "=", maxSplits: 1).map(String.init)
                return parts.count == 2 ? Field(parts[0], parts[1]) : nil
            }
        )
    }
}
