import Synchronization
import Testing

@testable import Proxy
@testable import Store

/// Every state that the responses of one key can come to, by whatever order of events, with a store that does its jobs one by one, a
/// reader whose snapshot may be old, and a request that validates.
@Suite struct ResidenceTests {
    /// A response.
    ///
    /// Its origin is the number of its arrival. One that was read from disk, or freshened, has that of its document.
    private final class Note: MemoryResident, Hashable {
        enum Kind: CaseIterable { case arrived, read, freshened }

        let origin: Int
        let kind: Kind
        let key = CacheKey(upstream: "u", principal: 1, context: "", url: "/a")
        let variant: [UInt8]
        let byteCount = 1
        private let flags = Mutex(MemoryEntry(digest: Digest128(low: 0, high: 0)))
        var entry: MemoryEntry { flags.withLock(\.self) }
        private let isStored: Atomic<Bool>
        /// None before its commit.
        var documentID: DocumentID {
            isStored.load(ordering: .relaxed) ? DocumentID(rawValue: Int64(origin + 1)) : .zero
        }

        init(_ origin: Int, _ kind: Kind, variant: UInt8) {
            (self.origin, self.kind, self.variant) = (origin, kind, [variant])
            isStored = Atomic(kind != .arrived)
        }

        func take(isStored: Bool, isDirty: Bool) {
            self.isStored.store(isStored || kind != .arrived, ordering: .relaxed)
            flags.withLock { $0 = MemoryEntry(digest: $0.digest) }
            if isDirty { entry.markDirty() }
        }

        static func == (left: Note, right: Note) -> Bool { left === right }
        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
    }

    private enum Job: Hashable {
        case commit(Int)
        case remove(Int)
        case removeAll(Int)
        case freshen(Int)
    }

    private struct Arrived: Hashable {
        var isHidden: Bool
        var isForDisk: Bool
        var isCommitted = false
        var isDropped = false
        /// Whether the disk has it, or had it.
        var isStored = false
        /// Whether a write has outdated it before its commit.
        var isBanned = false
        var isLost = false
    }

    /// The value, which only tests compare.
    private struct Life: Hashable {
        var value = Residence<Note>()

        static func == (left: Life, right: Life) -> Bool {
            let (one, other) = (left.value.transit, right.value.transit)
            return left.value.residents == right.value.residents
                && one.arrivals.map(\.response) == other.arrivals.map(\.response)
                && one.arrivals.map(\.visibility) == other.arrivals.map(\.visibility)
                && (one.superseded, one.altered) == (other.superseded, other.altered)
                && one.changes.mapValues(\.number) == other.changes.mapValues(\.number)
                && one.changes.mapValues(\.change) == other.changes.mapValues(\.change)
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(value.residents)
            hasher.combine(value.transit.arrivals.map(\.visibility))
            hasher.combine(value.transit.altered)
        }
    }

    private struct World: Hashable {
        var life = Life()
        var number = 1
        var arrived: [Arrived] = []
        var jobs: [Job] = []
        /// The documents on disk, and whether each has its new fields there.
        var disk: [Int: Bool] = [:]
        var dirty: Set<Note> = []
        /// The documents whose objects have changed since they were verified.
        var changed: Set<Int> = []
        var residents: Set<Note> = []
        var retired: Set<Note> = []
        var removed: Set<Int> = []
        var freshened: Set<Int> = []
        var reader: Reader?
        /// A validating request: the document, and the number when it was sent.
        var asker: [Int] = []
        var reads = 0
        var drops = 0
        var mishaps = 0
    }

    private struct Reader: Hashable {
        let since: Int
        let disk: [Int: Bool]
    }

    private enum Step: Hashable {
        case arrive(Residence<Note>.Visibility, isForDisk: Bool)
        case job(isClean: Bool, fails: Bool)
        case drop(Note)
        case evict(Note)
        case change(Int)
        case invalidate
        case read
        case readEnds
        case ask(Int)
        case notModified
    }

    /// What becomes of dirty responses; every one of these is to be visited.
    private enum Dirtiness: CaseIterable {
        case committed, superseded, replacedByRead, keptFromRead, evicted, replacedByArrival, freshened, freshenedInVain
    }

    private final class Visits {
        var seen: Set<Dirtiness> = []
    }

    private let visits = Visits()

    private struct Violation: Error, CustomStringConvertible {
        let description: String
        init(_ description: String) { self.description = description }
    }

    /// All responses by kind and origin.
    private struct Notes {
        let variants: [UInt8]
        private let all: [[Note]]

        init(variants: [UInt8]) {
            self.variants = variants
            all = Note.Kind.allCases.map { kind in variants.indices.map { Note($0, kind, variant: variants[$0]) } }
        }

        subscript(_ kind: Note.Kind, _ origin: Int) -> Note {
            all[Note.Kind.allCases.firstIndex(of: kind) ?? 0][origin]
        }

        /// Has the responses be as they are in a world.
        func enter(_ world: World) {
            for note in all.joined() {
                let isStored = world.arrived.indices.contains(note.origin) && world.arrived[note.origin].isStored
                note.take(isStored: isStored, isDirty: world.dirty.contains(note))
            }
        }
    }

    private func steps(_ world: World, _ notes: Notes, mishaps: Int) -> [Step] {
        var steps: [Step] = []
        if world.arrived.count < notes.variants.count {
            steps += [.arrive(.hidden, isForDisk: true), .arrive(.shown, isForDisk: true)]
            steps += [.arrive(.shown, isForDisk: false), .arrive(.superseded, isForDisk: false)]
        }
        switch world.jobs.first {
        case .commit(let origin):
            steps += [.job(isClean: true, fails: false), .job(isClean: true, fails: true)]
            if world.arrived[origin].isHidden { steps.append(.job(isClean: false, fails: false)) }
        case .some: steps.append(.job(isClean: true, fails: false))
        case nil: break
        }
        if world.reader != nil { steps.append(.readEnds) } else if world.reads < 1 { steps.append(.read) }
        if !world.asker.isEmpty { steps.append(.notModified) }
        guard world.mishaps < mishaps else { return steps }
        // Whoever has found a response may hold it until long after it has left.
        for (origin, arrived) in world.arrived.enumerated() where arrived.isForDisk {
            if !arrived.isDropped { steps.append(.drop(notes[.arrived, origin])) }
            // What is dirty is requested without conditions.
            if world.asker.isEmpty, !world.freshened.contains(origin), !world.changed.contains(origin),
                isFindable(origin, in: world)
            {
                steps.append(.ask(origin))
            }
            // What only memory has shows no objects.
            if world.disk[origin] != nil, !world.changed.contains(origin) { steps.append(.change(origin)) }
        }
        for note in world.residents {
            steps.append(.evict(note))
            if note.kind != .arrived { steps.append(.drop(note)) }
        }
        return steps + [.invalidate]
    }

    /// Whether a look-up finds a document, in memory or on disk.
    private func isFindable(_ origin: Int, in world: World) -> Bool {
        if world.residents.contains(where: { $0.origin == origin }) { return world.arrived[origin].isStored }
        return world.disk[origin] != nil && !world.life.value.isArriving
            && world.life.value.change(of: DocumentID(rawValue: Int64(origin + 1))) != .dropped
    }

    private func take(_ step: Step, in old: World, _ notes: Notes) throws -> World {
        var world = old
        notes.enter(world)
        switch step {
        case .arrive(let visibility, let isForDisk):
            let origin = world.arrived.count
            world.arrived.append(Arrived(isHidden: visibility == .hidden, isForDisk: isForDisk))
            world.jobs.append(isForDisk ? .commit(origin) : .removeAll(origin))
            let isPredecessorDirty = world.dirty.intersection(world.residents).contains {
                $0.variant == [notes.variants[origin]]
            }
            if isPredecessorDirty { visits.seen.insert(.replacedByArrival) }
            try handle(.arrived(notes[.arrived, origin], visibility), in: &world)
        case .job(let isClean, let fails): try work(isClean: isClean, fails: fails, in: &world, notes)
        case .drop(let note):
            world.mishaps += 1
            try drop(note, in: &world)
        case .evict(let note):
            world.mishaps += 1
            if world.dirty.contains(note) { visits.seen.insert(.evicted) }
            try handle(.left { $0 === note }, in: &world)
        case .change(let origin):
            world.mishaps += 1
            world.changed.insert(origin)
            world.dirty.formUnion(world.residents.filter { $0.origin == origin })
        case .invalidate:
            world.mishaps += 1
            for origin in world.arrived.indices where !world.arrived[origin].isCommitted {
                world.arrived[origin].isBanned = true
            }
            world.disk = [:]
            try handle(.removed { _ in true }, in: &world)
        case .read:
            world.reads += 1
            world.reader = Reader(since: world.number, disk: world.disk)
        case .readEnds: try endRead(in: &world, notes)
        case .ask(let origin):
            world.mishaps += 1
            world.asker = [origin, world.number]
        case .notModified:
            let (origin, since) = (world.asker[0], world.asker[1])
            world.asker = []
            world.freshened.insert(origin)
            world.jobs.append(.freshen(origin))
            let note = notes[.freshened, origin]
            world.dirty.remove(note)
            // Its objects may have changed after the 304 was compared with the original.
            if world.changed.contains(origin) { world.dirty.insert(note) }
            notes.enter(world)
            try handle(.freshened(note, Self.fields, since: since), in: &world)
            if world.dirty.contains(note), world.residents.contains(note) { visits.seen.insert(.freshened) }
        }
        try check(world, notes)
        return world
    }

    private static let fields = FreshenedFields(head: [1], policy: [2], sent: 3)

    private func drop(_ note: Note, in world: inout World) throws {
        // A copy that was read, or freshened, is dropped as the document.
        if note.kind == .arrived { world.arrived[note.origin].isDropped = true }
        try handle(.dropped(note), in: &world)
        if note.kind != .arrived { world.arrived[note.origin].isDropped = true }
    }

    private func work(isClean: Bool, fails: Bool, in world: inout World, _ notes: Notes) throws {
        switch world.jobs.removeFirst() {
        case .commit(let origin):
            let note = notes[.arrived, origin]
            world.arrived[origin].isCommitted = true
            if fails {
                world.arrived[origin].isLost = true
                return try handle(.committed(note, .failed(isLost: world.arrived[origin].isHidden)), in: &world)
            }
            guard !world.arrived[origin].isBanned else {
                try handle(.committed(note, .refused), in: &world)
                return try #require(!world.residents.contains(note), "what the store has refused is found")
            }
            for other in world.disk.keys where notes.variants[other] == notes.variants[origin] {
                world.disk[other] = nil
            }
            world.disk[origin] = false
            world.arrived[origin].isStored = true
            if !isClean {
                world.changed.insert(origin)
                world.dirty.insert(note)
                let isLatest = !world.arrived.indices.contains {
                    $0 > origin && notes.variants[$0] == notes.variants[origin]
                }
                visits.seen.insert(isLatest ? .committed : .superseded)
            }
            notes.enter(world)
            try handle(.committed(note, .stored(isClean: isClean)), in: &world)
            try #require(isClean || !world.residents.contains(note), "what is dirty from the start is found")
        case .remove(let origin): world.disk[origin] = nil
        case .removeAll(let origin):
            if !world.disk.isEmpty {
                world.disk = [:]
                try handle(.removed { _ in true }, in: &world)
            }
            world.arrived[origin].isCommitted = true
            try handle(.committed(notes[.arrived, origin], .stored(isClean: true)), in: &world)
        case .freshen(let origin):
            if world.disk[origin] != nil, !world.changed.contains(origin) {
                world.disk[origin] = true
            } else {
                world.freshened.remove(origin)
                let note = notes[.freshened, origin]
                if !world.dirty.contains(note) { visits.seen.insert(.freshenedInVain) }
                try handle(.freshenedInVain(note, Self.fields), in: &world)
                try #require(!world.residents.contains(note), "a renewal that the store has refused is found")
                try #require(world.dirty.contains(note), "a renewal that the store has refused counts as clean")
            }
        }
    }

    private func endRead(in world: inout World, _ notes: Notes) throws {
        guard let reader = world.reader else { return }
        world.reader = nil
        let life = world.life.value
        for (origin, hasFields) in reader.disk {
            let note = notes[.read, origin]
            let change = life.change(of: note.documentID)
            let isHidden = change == .dropped
            if world.arrived[origin].isDropped, world.disk[origin] != nil, !isHidden {
                throw Violation("a document that was dropped is found")
            }
            if !isHidden, world.freshened.contains(origin), world.disk[origin] != nil, !hasFields,
                change != .freshened(Self.fields)
            {
                throw Violation("a reader finds fields from before the 304")
            }
            // It may have been dropped after the overlay was taken.
            guard let other = world.residents.first(where: { $0.variant == note.variant }) else {
                try handle(.read(note, since: reader.since), in: &world)
                continue
            }
            let isDirty = world.dirty.contains(other)
            let isUseless = life.isArriving || isHidden || life.hasChanged(since: reader.since, 0)
            try handle(.read(note, since: reader.since), in: &world)
            if !isDirty || isUseless {
                try #require(world.residents.contains(other), "a read displaces what is clean, or newer")
            } else {
                try #require(world.residents.contains(note), "a dirty response stays although it was read again")
            }
            if isDirty { visits.seen.insert(isUseless ? .keptFromRead : .replacedByRead) }
        }
    }

    private func handle(_ event: Residence<Note>.Event, in world: inout World) throws {
        if event.isNumbered { world.number += 1 }
        var isWoken = false
        for action in world.life.value.handle(event, number: world.number) {
            switch action {
            case .enter(let note):
                try #require(world.residents.insert(note).inserted, "it enters twice")
                world.dirty.subtract([note].filter { $0.kind == .read })
            case .leave(let note): try #require(world.residents.remove(note) != nil, "it leaves without being there")
            case .discard(let note): try #require(!world.residents.contains(note), "a resident is discarded")
            case .markDirty(let note): world.dirty.insert(note)
            case .remove(let document):
                let origin = Int(document.rawValue) - 1
                try #require(world.arrived[origin].isStored, "it is removed before it is stored")
                world.removed.insert(origin)
                world.jobs.append(.remove(origin))
            case .wake: isWoken = true
            }
        }
        if case .committed = event { try #require(isWoken, "a commit wakes nobody") }
        try #require(
            Set(world.life.value.residents) == world.residents
                && world.residents.count == world.life.value.residents.count
        )
    }

    private func check(_ world: World, _ notes: Notes) throws {
        let isQuiet = world.jobs.isEmpty && world.reader == nil && world.asker.isEmpty
        for note in world.residents {
            let arrived = world.arrived[note.origin]
            if arrived.isHidden, !arrived.isCommitted { throw Violation("it is found before its commit") }
            if arrived.isDropped, arrived.isForDisk { throw Violation("it is found although it was dropped") }
            let later = world.arrived.indices.filter {
                $0 > note.origin && notes.variants[$0] == notes.variants[note.origin]
            }
            if later.contains(where: { !world.arrived[$0].isBanned && !world.arrived[$0].isLost }) {
                throw Violation("an older response than one that arrived is found")
            }
            if isQuiet, arrived.isForDisk, !arrived.isLost, !world.dirty.contains(note), world.disk[note.origin] == nil
            {
                throw Violation("memory has what the disk has no more")
            }
        }
        if isQuiet {
            for origin in world.disk.keys where world.arrived[origin].isDropped {
                throw Violation("it was dropped, and is still on disk")
            }
            if !world.life.value.transit.arrivals.isEmpty { throw Violation("something arrives for ever") }
            var rest = world.life.value
            rest.forget(upTo: world.number)
            if rest.box != nil { throw Violation("something is never forgotten") }
        }
    }

    @Test(arguments: [([1, 1], 2), ([1, 2], 1), ([1, 1, 1], 0), ([1, 2, 1], 0)] as [([UInt8], Int)])
    func `in every order of events look-ups find the latest response or none`(variants: [UInt8], mishaps: Int) {
        let notes = Notes(variants: variants)
        let start = World()
        var seen: Set<World> = [start]
        var open: [(world: World, way: [Step])] = [(start, [])]
        while let (world, way) = open.popLast() {
            for step in steps(world, notes, mishaps: mishaps) {
                do {
                    let next = try take(step, in: world, notes)
                    if seen.insert(next).inserted { open.append((next, way + [step])) }
                } catch {
                    Issue.record("\(error)\nafter \(way.map(Self.text))\nthen \(Self.text(step))")
                    return
                }
            }
        }
        #expect(seen.count > 1_000)
        if mishaps > 1 { #expect(visits.seen == Set(Dirtiness.allCases)) }
    }

    @Test func `a document whose use is restricted keeps the fields that a 304 gave it`() {
        let note = Note(0, .read, variant: 1)
        var life = Residence<Note>()
        _ = life.handle(.restricted(note.documentID, policy: [9]), number: 1)
        #expect(life.change(of: note.documentID) == .freshened(FreshenedFields(head: nil, policy: [9], sent: 0)))
        _ = life.handle(.freshened(note, Self.fields, since: 1), number: 2)
        _ = life.handle(.restricted(note.documentID, policy: [9]), number: 3)
        #expect(life.change(of: note.documentID) == .freshened(FreshenedFields(head: [1], policy: [9], sent: 0)))
        // If the disk refuses them, it keeps the restriction alone.
        _ = life.handle(.freshenedInVain(note, Self.fields), number: 3)
        #expect(life.change(of: note.documentID) == .freshened(FreshenedFields(head: nil, policy: [9], sent: 0)))
        _ = life.handle(.dropped(note), number: 4)
        _ = life.handle(.restricted(note.documentID, policy: [9]), number: 5)
        #expect(life.change(of: note.documentID) == .dropped)
    }

    private static func text(_ step: Step) -> String {
        switch step {
        case .drop(let note), .evict(let note):
            "\(step)".prefix { $0 != "(" } + " \(note.kind) \(note.origin)"
        default: "\(step)"
        }
    }
}
