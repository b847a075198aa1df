import HTTPServer
import Store

/// One client's stream of changes: what it wants, how far it has been told, and whether it keeps up.
///
/// The admin loop only.
final class ChangeStream {
    /// Bytes that may wait for the client before nothing more is read for it.
    static let window = 256 << 10

    let reply: Reply
    let filter: ChangeFilter
    let wantsValues: Bool
    /// The commit sequence up to which it has been told all that it wants.
    var position: Int64
    /// The last number that it has been given to come back with.
    var toldPosition: Int64
    /// Whether it wants whatever is kept, so that it misses nothing by what is not.
    var beginsAtOldest: Bool
    /// Whether it waits for its client to read.
    var isResting = false
    /// Whether it has once been told all there was: from then on it has to keep up.
    var isLive = false
    /// How much waited for the client when that was last looked at; nil: not while it rested.
    var lastBacklog: Int?

    init(_ reply: Reply, _ request: ChangeRequest, from position: Int64) {
        self.reply = reply
        filter = request.filter
        wantsValues = request.wantsValues
        self.position = position
        toldPosition = position
        beginsAtOldest = request.start == .oldest
    }

    func write(_ bytes: [UInt8]) {
        reply.write(bytes)
    }

    /// Whether a client that is behind takes anything at all; asked from time to time.
    func makesProgress() -> Bool {
        guard isResting else {
            lastBacklog = nil
            return true
        }
        let backlog = reply.backlog
        defer { lastBacklog = backlog }
        return lastBacklog.map { backlog < $0 } ?? true
    }
}

/// A page of changes as events, made once for all streams.
struct ChangeEvents {
    let page: ChangePage
    private let number: (Int64) -> Int64
    private var events: [Bool: [[UInt8]]] = [:]
    /// What streams without a filter get, by where they begin.
    private var blocks: [Block: [UInt8]] = [:]

    private struct Block: Hashable {
        var first: Int
        var withValues: Bool
    }

    /// - Parameter number: the number for the outside of a commit sequence.
    init(_ page: ChangePage, number: @escaping (Int64) -> Int64) {
        self.page = page
        self.number = number
    }

    /// What a stream is to be told of it, and the last change among that; empty if it wants none.
    mutating func bytes(for stream: ChangeStream) -> (bytes: [UInt8], last: Int64?) {
        let first = page.changes.partitioningIndex { $0.sequence > stream.position }
        guard first < page.changes.count else { return ([], nil) }
        let withValues = stream.wantsValues
        if events[withValues] == nil {
            events[withValues] = page.changes.map { $0.event(number($0.sequence), withValues: withValues) }
        }
        guard let events = events[withValues] else { return ([], nil) }
        if stream.filter.isEverything {
            let block = Block(first: first, withValues: withValues)
            let bytes = blocks[block] ?? Array(events[first...].joined())
            blocks[block] = bytes
            return (bytes, page.changes.last?.sequence)
        }
        var (bytes, last): ([UInt8], Int64?) = ([], nil)
        for index in first..<page.changes.count where stream.filter.accepts(page.changes[index]) {
            bytes += events[index]
            last = page.changes[index].sequence
        }
        return (bytes, last)
    }
}

extension [ObjectChange] {
    /// The first that fulfils a condition which all behind it fulfil too.
    fileprivate func partitioningIndex(where isBehind: (ObjectChange) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if isBehind(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
