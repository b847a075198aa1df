import Synchronization
import Testing

@testable import Proxy
@testable import Store

@Suite struct MemoryTierTests {
    private final class Note: MemoryResident {
        let key: CacheKey
        let variant: [UInt8]
        let byteCount: Int
        let precedence: Int64
        let documentID: DocumentID
        let entry: MemoryEntry

        init(
            _ url: String,
            variant: [UInt8] = [],
            bytes: Int = 100,
            principal: PrincipalID = 1,
            precedence: Int64 = 0,
            document: Int64 = 0
        ) {
            (self.precedence, documentID) = (precedence, DocumentID(rawValue: document))
            key = CacheKey(upstream: "u", principal: principal, context: "", url: url)
            self.variant = variant
            byteCount = bytes
            entry = MemoryEntry(digest: MemoryTierTests.hasher.digest(key))
        }

        var digest: Digest128 { entry.digest }
        var isDirty: Bool { entry.isDirty }
    }

    private static let hasher = KeyHasher(secret: (1, 2))
    private let tier = MemoryTier<Note>(capacity: 10_000)

    private func holds(_ note: Note) -> Bool {
        tier.responses(at: note.digest)?.contains { $0 === note } ?? false
    }

    @Test func `a response is found under its digest until it is removed`() {
        let note = Note("/a")
        tier.admit(note, at: note.digest)
        #expect(holds(note))
        tier.remove(note.digest)
        #expect(!holds(note))
        #expect(tier.statistics.responses == 0)
        #expect(tier.statistics.bytes == 0)
    }

    @Test func `a response replaces the one with its variant and leaves the others`() {
        let (first, other, second) = (Note("/a", variant: [1]), Note("/a", variant: [2]), Note("/a", variant: [1]))
        for note in [first, other, second] { tier.admit(note, at: note.digest) }
        #expect(!holds(first))
        #expect(holds(other))
        #expect(holds(second))
        #expect(tier.statistics.bytes == 200)
    }

    @Test func `preferred variants come first, among equals the newest`() {
        for (variant, precedence) in [(1, 5), (2, 9), (3, 5), (4, 1), (2, 4)] as [(UInt8, Int64)] {
            let note = Note("/a", variant: [variant], precedence: precedence)
            tier.admit(note, at: note.digest)
        }
        #expect(tier.responses(at: Note("/a").digest)?.map(\.variant) == [[3], [1], [2], [4]])
    }

    @Test func `beyond the limit of variants the oldest is removed`() {
        for index in 0...MemoryTier<Note>.residentVariantLimit {
            let note = Note("/a", variant: [UInt8(index)], bytes: 10, precedence: -Int64(index))
            tier.admit(note, at: note.digest)
        }
        let held = tier.responses(at: Note("/a").digest)?.map { Int($0.variant[0]) }
        #expect(held == Array(1...MemoryTier<Note>.residentVariantLimit))
    }

    @Test func `the bound is kept, and recently used responses stay`() {
        let used = Note("/used", bytes: 1000)
        tier.admit(used, at: used.digest)
        for index in 0..<500 {
            used.entry.recordUse()
            let note = Note("/\(index)", bytes: 500)
            tier.admit(note, at: note.digest)
            #expect(tier.statistics.bytes <= 10_000)
        }
        #expect(tier.statistics.evictions > 400)
        #expect(holds(used))
    }

    @Test func `a response larger than an eighth of the tier is not admitted, and its predecessor is removed`() {
        let (small, huge) = (Note("/a"), Note("/a", bytes: 5_000))
        tier.admit(small, at: small.digest)
        tier.admit(huge, at: huge.digest)
        #expect(tier.responses(at: small.digest) == nil)
    }

    @Test func `of very many variants the latest are kept`() {
        let notes = (0..<100).map { Note("/a", variant: [UInt8($0)], bytes: 10) }
        for note in notes { tier.admit(note, at: note.digest) }
        #expect(tier.responses(at: notes[0].digest)?.map(\.variant) == notes.suffix(16).reversed().map(\.variant))
        #expect(tier.statistics.bytes == 160)
    }

    @Test func `a path is removed with every query and for every principal, and no other path`() {
        let gone = [Note("/posts"), Note("/posts?page=2"), Note("/posts", principal: 2)]
        let kept = [Note("/posts/1"), Note("/post"), Note("/")]
        for note in gone + kept { tier.admit(note, at: note.digest) }
        tier.remove(Invalidation(of: "u", paths: ["/posts"], at: 0))
        #expect(gone.allSatisfy { !holds($0) })
        #expect(kept.allSatisfy { holds($0) })
        tier.remove(Invalidation(of: "other", paths: ["/posts/1"], at: 0))
        #expect(kept.allSatisfy { holds($0) })
    }

    @Test func `a clean of one principal or upstream removes its responses, and leaves all others`() {
        let (own, other) = (Note("/a", principal: 2), Note("/a", principal: 3))
        let unknown = Note("/b", principal: 4)
        let label: PrincipalLabels = { [2: "ada", 3: "bob"][$0] }
        for note in [own, other, unknown] { tier.admit(note, at: note.digest) }
        tier.remove(CleanFilter(upstream: "another", principal: "ada").invalidation(at: 0), label)
        #expect([own, other, unknown].allSatisfy(holds))
        tier.remove(CleanFilter(principal: "ada").invalidation(at: 0), label)
        #expect(!holds(own) && holds(other) && !holds(unknown))
        tier.remove(CleanFilter(upstream: "another").invalidation(at: 0), label)
        #expect(holds(other))
        tier.remove(CleanFilter(upstream: "u", url: { _ in false }).invalidation(at: 0), label)
        #expect(!holds(other))
    }

    @Test func `a changed object makes exactly those responses dirty that show it`() {
        let tier = MemoryTier<Note>(capacity: 100_000)
        let notes = (0..<100).map { Note("/\($0)") }
        for (index, note) in notes.enumerated() {
            tier.admit(note, at: note.digest)
            tier.register(note, under: [7, ObjectID(rawValue: Int64(100 + index))])
        }
        tier.objectsWillChange([103])
        #expect(notes.enumerated().allSatisfy { $1.isDirty == ($0 == 3) })
        tier.objectsWillChange([7])
        #expect(notes.allSatisfy { $0.isDirty })
    }

    @Test func `a response whose object changed before it was registered is dirty, even if it has left`() {
        let (late, gone, clean) = (Note("/a"), Note("/b"), Note("/c"))
        for note in [late, gone, clean] { tier.admit(note, at: note.digest) }
        tier.remove(gone.digest)
        for note in [late, gone] { tier.register(note, under: [7]) { true } }
        tier.register(clean, under: [7]) { false }
        #expect([late, gone, clean].map(\.isDirty) == [true, true, false])
    }

    @Test func `responses that left the tier do not pile up in the lists of an object`() {
        for index in 0..<100_000 {
            let note = Note("/\(index)", bytes: 1_000)
            tier.admit(note, at: note.digest)
            tier.register(note, under: [7, ObjectID(rawValue: Int64(100 + index))])
        }
        #expect(tier.responsesByObject.registrationCount < 100)
    }

    @Test func `a response that has left is registered nowhere`() {
        let note = Note("/a")
        tier.admit(note, at: note.digest)
        tier.remove(note.digest)
        tier.register(note, under: [7])
        #expect(tier.responsesByObject.registrationCount == 0)
    }

    @Test func `dirty responses, replaced and registered again, are counted once`() {
        for round in 0..<10 {
            let note = Note("/a")
            tier.admit(note, at: note.digest)
            tier.register(note, under: [1, 2, 3])
            #expect(tier.responsesByObject.objects(of: note.entry) == [1, 2, 3])
            #expect(tier.responsesByObject.registrationCount == 3)
            tier.objectsWillChange([ObjectID(rawValue: Int64(round % 3 + 1))])
            #expect(note.isDirty)
        }
        tier.removeAll()
        #expect(tier.responsesByObject.registrationCount == 0)
        #expect(tier.statistics.bytes == 0)
    }

    @Test func `a used response is reported once`() {
        let (used, unused) = (Note("/a", document: 1), Note("/b", document: 2))
        for note in [used, unused] { tier.admit(note, at: note.digest) }
        used.entry.recordUse()
        #expect(tier.takeUsed().map(\.rawValue) == [1])
        #expect(tier.takeUsed().isEmpty)
    }

    @Test func `the use of a response is also reported if it has left, or is too large for memory`() {
        let (gone, large) = (Note("/a", document: 1), Note("/b", bytes: 5_000, document: 2))
        for note in [gone, large] { tier.admit(note, at: note.digest) }
        gone.entry.recordUse()
        tier.remove(gone.digest)
        #expect(!holds(gone) && !holds(large))
        for _ in 0..<2 { tier.recordUse(of: large) }
        #expect(tier.takeUsed().map(\.rawValue).sorted() == [1, 2])
        #expect(tier.takeUsed().isEmpty)
    }

    @Test func `a look-up that waits for a response on its way to disk continues at its commit`() async {
        let note = Note("/a")
        await tier.arrivalEnds(at: note.digest)
        tier.handle(at: note.digest, of: note.key) { .arrived(note, .hidden) }
        #expect(tier.isArriving(at: note.digest) && !holds(note))
        let waiting = Task { [tier] in await tier.arrivalEnds(at: note.digest) }
        // It may come before or after: either way it goes on.
        tier.handle(at: note.digest, of: note.key) { .committed(note, .stored(isClean: true)) }
        await waiting.value
        #expect(!tier.isArriving(at: note.digest) && holds(note))
    }

    @Test func `a key whose changes are no longer remembered counts as changed`() {
        let digest = Note("/a").digest
        let number = tier.number(at: digest)
        #expect(!tier.hasChanged(at: digest, since: number))
        for index in 0..<20_000 { tier.remove(Note("/\(index)").digest) }
        #expect(tier.hasChanged(at: digest, since: number))
        #expect(!tier.hasChanged(at: digest, since: tier.number(at: digest)))
    }

    @Test func `a response too large for memory is not found before its commit nor after it`() {
        let huge = Note("/a", bytes: 5_000)
        tier.handle(at: huge.digest, of: huge.key) { .arrived(huge, .shown) }
        tier.handle(at: huge.digest, of: huge.key) { .committed(huge, .stored(isClean: true)) }
        #expect(tier.responses(at: huge.digest) == nil)
        #expect(tier.statistics.bytes == 0)
        tier.remove(Invalidation(of: "u", paths: ["/a"], at: 0))
    }

    @Test func `threads that insert, look up, change and remove at once leave the counters right`() async {
        let tier = tier
        await withTaskGroup { group in
            for worker in 0..<4 {
                group.addTask {
                    for round in 0..<5_000 {
                        let note = Note("/\((round &* 7 &+ worker) % 300)", bytes: 50 + round % 100)
                        tier.admit(note, at: note.digest)
                        tier.register(note, under: [ObjectID(rawValue: Int64(round % 50))])
                        _ = tier.responses(at: note.digest)
                        if round % 3 == 0 { tier.objectsWillChange([ObjectID(rawValue: Int64(round % 50))]) }
                        if round % 5 == 0 { tier.remove(note.digest) }
                    }
                }
            }
        }
        #expect(tier.statistics.bytes <= 10_000)
        tier.removeAll()
        #expect(tier.statistics.bytes == 0)
        #expect(tier.statistics.responses == 0)
    }
}
