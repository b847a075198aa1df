import GRDB
import Synchronization

extension ObjectStore {
    /// The commit sequence up to which everything is committed and published; any thread, one atomic load.
    public var sequence: CommitNumber { core.publicNumbers.current }

    /// The public number of a commit sequence; any thread, memory only.
    public func publicSequence(_ sequence: CommitNumber) -> Int64 { core.publicNumbers.number(of: sequence) }

    /// The commit sequence of a public number; any thread, memory only.
    ///
    /// Nil for a number that this store never issued: one of another store, a future one, or one whose commit was lost
    /// in a power failure.
    public func sequence(fromPublic number: Int64) -> CommitNumber? { core.publicNumbers.sequence(of: number) }
}

/// The public numbers of commit sequences: the sequence plus a base.
///
/// Each opening of a store has its own base, made of the wall clock in microseconds and a random part, and above all
/// earlier ones. So a number is never mistaken for one of another store, nor for one of a commit that was lost in a
/// power failure or by restoring a copy. Numbers grow with the sequences, over all openings.
///
/// ```
/// opening          1        2              3
/// sequences     1 … 500  501 … 730      731 …
/// numbers       base₁+1 …   base₂+501 …    base₃+731 …
/// ```
final class PublicNumbers: Sendable {
    /// One opening of the store; its numbers are those of the sequences after `start`.
    private struct Opening {
        var start: CommitNumber
        var base: Int64
    }

    // Numbers of older openings count as unknown.
    private static let openingLimit = 256
    /// More sequences than fit into a WAL, and so more than a power failure can lose.
    private static let distance: Int64 = 1 << 24
    /// The range of the random part, which distinguishes openings of two copies of a file if the clock stands still.
    private static let chance: Int64 = 1 << 20

    /// Oldest first; there is at least one.
    private let openings: [Opening]
    // The number itself, because only integers have an atomic maximum.
    private let newest: Atomic<Int64>

    var current: CommitNumber { CommitNumber(rawValue: newest.load(ordering: .acquiring)) }

    init(in database: Database) throws {
        let stored = try Self.read(in: database)
        guard let last = stored.last else { throw StoreError.corrupt("the base of its numbers is missing") }
        openings = stored
        newest = Atomic(last.start.rawValue)
    }

    /// Records an opening at a wall-clock time in µs; the next commit must be durable.
    static func begin(in database: Database, wall: Int64) throws {
        let sequence = try Meta.commitNumber(in: database)
        var openings = try read(in: database)
        let earliest = openings.last.map { max($0.base + distance, wall - sequence.rawValue) } ?? wall
        openings.append(Opening(start: sequence, base: earliest + .random(in: 0..<chance)))
        try write(openings, in: database)
    }

    func write(in database: Database) throws { try Self.write(openings, in: database) }

    private static func write(_ openings: [Opening], in database: Database) throws {
        var writer = VariableWriter()
        for opening in openings.suffix(openingLimit) {
            for number in [opening.start.rawValue, opening.base] { writer.append(UInt64(bitPattern: number)) }
        }
        try database.query("INSERT OR REPLACE INTO _meta VALUES ('openings', ?)").run(writer.bytes)
    }

    private static func read(in database: Database) throws -> [Opening] {
        let bytes = try database.query("SELECT value FROM _meta WHERE key = 'openings'").first { $0.bytes(0) } ?? []
        var reader = VariableReader(bytes, of: "the base of its numbers is")
        var openings: [Opening] = []
        while !reader.isAtEnd {
            let (start, base) = (try reader.nextInteger(), try reader.nextInteger())
            guard RowBounds.numbers ~= start, RowBounds.times ~= base else {
                throw StoreError.corrupt("the base of its numbers is none that a store can have")
            }
            openings.append(Opening(start: CommitNumber(rawValue: start), base: base))
        }
        return openings
    }

    /// Publishes that everything up to a sequence is committed.
    func advance(to sequence: CommitNumber) { newest.max(sequence.rawValue, ordering: .acquiringAndReleasing) }

    func number(of sequence: CommitNumber) -> Int64 {
        (openings.last { $0.start < sequence } ?? openings[0]).base + sequence.rawValue
    }

    func sequence(of number: Int64) -> CommitNumber? {
        var end = current
        for opening in openings.reversed() {
            let (difference, isTooSmall) = number.subtractingReportingOverflow(opening.base)
            let sequence = CommitNumber(rawValue: difference)
            if !isTooSmall, sequence >= opening.start, sequence <= end { return sequence }
            end = opening.start
        }
        return nil
    }
}

/// The objects that changed recently, in memory; it serves documents that were read just before a commit.
///
/// A change is in it before its commit is visible, so that no reader of an older snapshot takes its values for the newest.
final class RecentChanges: Sendable {
    private struct State {
        var last: [ObjectID: CommitNumber] = [:]
        /// Changes up to this sequence may have been discarded.
        var forgotten: CommitNumber
        /// The former entries of the objects announced since the last commit; nil if there was none.
        var replaced: [(object: ObjectID, former: CommitNumber?)] = []
    }

    private static let capacity = 65_536
    private let state: Mutex<State>

    init(since sequence: CommitNumber) { state = Mutex(State(forgotten: sequence)) }

    /// Adds the changes of a commit that is about to happen; `withdraw` follows if it fails.
    func announce(_ objects: [ObjectID], at sequence: CommitNumber) {
        state.withLock { state in
            state.replaced.removeAll(keepingCapacity: true)
            for object in objects { state.replaced.append((object, state.last.updateValue(sequence, forKey: object))) }
        }
    }

    /// Keeps what was announced: it is committed.
    func confirm(at sequence: CommitNumber) {
        state.withLock { state in
            state.replaced.removeAll(keepingCapacity: true)
            guard state.last.count > Self.capacity else { return }
            // Discarding all at once is rare and cheap: it costs a few needless reads of the disk.
            state.forgotten = max(state.forgotten, sequence)
            state.last.removeAll(keepingCapacity: true)
        }
    }

    func withdraw() {
        state.withLock { state in
            for (object, former) in state.replaced.reversed() { state.last[object] = former }
            state.replaced.removeAll(keepingCapacity: true)
        }
    }

    func forgetAll(at sequence: CommitNumber) {
        state.withLock { state in
            state.forgotten = max(state.forgotten, sequence)
            state.last.removeAll()
            state.replaced.removeAll()
        }
    }

    func mayHaveChanged(_ objects: [ObjectID], since sequence: CommitNumber) -> Bool {
        state.withLock { state in
            sequence < state.forgotten || objects.contains { (state.last[$0] ?? .zero) > sequence }
        }
    }
}
