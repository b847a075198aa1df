import Foundation
import Glibc
import TestSupport

/// A client of a `Larder-Live: on` stream, which reads as it comes; one thread reads for all of them.
final class Follower: Sendable {
    struct State: Sendable {
        var status: Int?
        var fields = FieldLines()
        var events: [LiveEvent] = []
        /// Comment lines, which heartbeats are.
        var comments = 0
        /// What `retry` said, in milliseconds.
        var retry: Int?
        /// Whether the stream has ended, and as its framing says it should.
        var isOver = false
        var hasEnded = false
    }

    let state = Monitor(State())
    fileprivate let socket: Socket

    init(
        _ larder: Larder,
        _ target: String,
        _ fields: FieldLines = [:],
        after id: String? = nil
    ) throws {
        socket = try Socket.connect(port: larder.port)
        let resumed: FieldLines = id.map { ["Last-Event-ID": $0] } ?? [:]
        let all = fields + resumed + ["Larder-Live": "on"]
        try socket.send(Client.message("GET", target, all, host: "127.0.0.1:\(larder.port)"))
        Desk.shared.add(self)
    }

    deinit { leave() }

    var events: [LiveEvent] { state.current.events }
    var names: [String] { events.map(\.name) }
    /// What was last told of the body, whichever event told it.
    var text: String? { events.last { $0.body != nil && $0.problemType == nil }?.text }
    /// The last number that was given.
    var id: String? { events.last { $0.id != nil }?.id }

    /// Waits until the events are so.
    func wait(_ limit: Duration = .seconds(120), until condition: ([LiveEvent]) -> Bool) -> Bool {
        state.wait(limit) { condition($0.events) }
    }

    /// Waits until there are so many events.
    func wait(for count: Int) -> Bool { wait { $0.count >= count } }

    /// Waits until the body that was told last is this one.
    func wait(for text: String) -> Bool {
        wait { events in events.last { $0.body != nil }?.text == text }
    }

    /// Leaves, as a program that ends.
    func leave() { socket.shutDown() }
}

/// Reads for all followers.
private final class Desk: Sendable {
    static let shared = Desk()

    private let readers = Monitor([Reader]())

    private init() {
        startThread { [readers] in
            while true {
                readers.wait(.seconds(3600)) { !$0.isEmpty }
                let current = readers.current
                let quiet = Self.turn(current)
                readers.withLock { list in list.removeAll { reader in quiet.contains { $0 === reader } } }
            }
        }
    }

    func add(_ follower: Follower) { readers.withLock { $0.append(Reader(follower)) } }

    /// Reads what there is; gives those who need no reading any more.
    private static func turn(_ readers: [Reader]) -> [Reader] {
        var entries = readers.map { pollfd(fd: $0.socket.descriptor, events: Int16(POLLIN), revents: 0) }
        poll(&entries, nfds_t(entries.count), 10)
        return zip(readers, entries).filter { reader, entry in entry.revents != 0 && !reader.read() }.map(\.0)
    }
}

/// Takes one stream apart as it comes.
private final class Reader: @unchecked Sendable {  // the desk's thread alone reads
    let socket: Socket
    private weak var follower: Follower?
    private let state: Monitor<Follower.State>
    private var raw: [UInt8] = []
    private var body: [UInt8] = []
    private var hasHead = false

    init(_ follower: Follower) {
        self.follower = follower
        socket = follower.socket
        state = follower.state
    }

    /// Reads what is there; false at the end.
    func read() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 256 << 10)
        let count = recv(socket.descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        if count < 0, errno == EAGAIN || errno == EINTR { return true }
        guard count > 0, follower != nil else {
            state.withLock { $0.isOver = true }
            return false
        }
        raw += buffer[..<count]
        if !hasHead { readHead() }
        if hasHead { readChunks() }
        return true
    }

    private func readHead() {
        guard let end = raw.firstRange(of: [13, 10, 13, 10]) else { return }
        let lines = String(decoding: raw[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
        raw.removeSubrange(..<end.upperBound)
        hasHead = true
        state.withLock { state in
            state.status = lines[0].split(separator: " ").dropFirst().first.flatMap { Int($0) }
            for line in lines.dropFirst() {
                let parts = line.split(separator: ":", maxSplits: 1)
                state.fields.append(String(parts[0]), parts[1].trimmingCharacters(in: .whitespaces))
            }
        }
    }

    private func readChunks() {
        var start = 0
        while let end = raw[start...].firstRange(of: [13, 10]),
            let size = Int(String(decoding: raw[start..<end.lowerBound], as: UTF8.self), radix: 16),
            raw.count >= end.upperBound + size + 2
        {
            body += raw[end.upperBound..<(end.upperBound + size)]
            start = end.upperBound + size + 2
            if size == 0 { state.withLock { $0.hasEnded = true } }
        }
        raw.removeSubrange(..<start)
        readEvents()
    }

    private func readEvents() {
        guard let last = body.lastRange(of: [10, 10]) else { return }
        let complete = Array(body[..<last.upperBound])
        body.removeSubrange(..<last.upperBound)
        let events = ServerSentEvent.parse(complete).compactMap { try? LiveEvent($0) }
        let lines = complete.split(separator: 10)
        let comments = lines.count { $0.first == UInt8(ascii: ":") }
        let retry = lines.first { $0.starts(with: "retry: ".utf8) }.flatMap {
            Int(String(decoding: $0.dropFirst(7), as: UTF8.self))
        }
        state.withLock { state in
            state.events += events
            state.comments += comments
            if let retry { state.retry = retry }
        }
    }
}

extension [UInt8] {
    fileprivate func lastRange(of pattern: [UInt8]) -> Range<Int>? {
        guard count >= pattern.count else { return nil }
        return indices.dropLast(pattern.count - 1).last { self[$0..<($0 + pattern.count)].elementsEqual(pattern) }
            .map { $0..<($0 + pattern.count) }
    }
}
