import Proxy
import Testing

@testable import Fleet

/// Reading a stream without missing an entry.
struct StreamCursorTests {
    private func entry(_ number: UInt64, after predecessor: UInt64) -> StreamEntry {
        StreamEntry(id: EntryID(number), predecessor: EntryID(predecessor), sealed: [])
    }

    private func entries(_ numbers: ClosedRange<UInt64>) -> [StreamEntry] { numbers.map { entry($0, after: $0 - 1) } }

    /// `#expect` takes no calls that change something.
    private func check<Value: Equatable>(_ found: Value, _ wanted: Value, at place: SourceLocation = #_sourceLocation) {
        #expect(found == wanted, sourceLocation: place)
    }

    private func check(
        _ found: (taken: [StreamEntry], hasGap: Bool),
        _ entries: [StreamEntry],
        hasGap: Bool = false,
        at place: SourceLocation = #_sourceLocation
    ) { #expect(found.taken == entries && found.hasGap == hasGap, sourceLocation: place) }

    @Test func `an entry's ID is read as the server writes it, and any other text is rejected`() {
        #expect(EntryID("1526919030474-55") == EntryID(1_526_919_030_474, 55))
        #expect(EntryID("5-0").map(\.text) == "5-0" && EntryID.start.text == "0-0")
        for text in ["", "5", "-", "5-", "-5", "a-0", "5-0-1", "99999999999999999999-0"] {
            #expect(EntryID(text) == nil)
        }
        #expect(EntryID(5, 9) < EntryID(6, 0) && EntryID(5, 1) < EntryID(5, 2))
    }

    @Test func `entries follow one another`() {
        var cursor = StreamCursor(at: .start)
        check(cursor.take(entries(1...3), isAll: true), entries(1...3))
        check(cursor.take([], isAll: true), [])
        check(cursor.take(entries(4...4), isAll: false), entries(4...4))
        #expect(cursor.position == EntryID(4))
    }

    @Test func `a missing entry is a gap, wherever it is`() {
        for missing: UInt64 in 1...4 {
            var cursor = StreamCursor(at: .start)
            let rest = entries(1...5).filter { $0.id != EntryID(missing) }
            check(cursor.take(rest, isAll: true), entries(1...5).filter { $0.id < EntryID(missing) }, hasGap: true)
        }
    }

    @Test func `a repeated entry, or one out of order, is a gap`() {
        var cursor = StreamCursor(at: EntryID(3))
        check(cursor.take([entry(3, after: 3)], isAll: true), [], hasGap: true)
        check(cursor.take([entry(2, after: 3)], isAll: true), [], hasGap: true)
    }

    @Test func `a stream that ends before the last entry that the server named has a gap`() {
        var cursor = StreamCursor(at: EntryID(3))
        check(cursor.checked(last: EntryID(5)), true)
        // More may be there than was asked for.
        check(cursor.take(entries(4...4), isAll: false), entries(4...4))
        check(cursor.take([], isAll: true), [], hasGap: true)
    }

    @Test func `a stream whose last entry is before the position is another stream`() {
        var cursor = StreamCursor(at: EntryID(3))
        check(cursor.checked(last: EntryID(2)), false)
        check(cursor.checked(last: EntryID(3)), true)
    }

    /// All histories of six entries of which some are lost, read in all possible pieces.
    @Test func `a lost entry is always reported as a gap`() {
        let all = entries(1...6)
        for lost in 0..<(1 << 6) {
            let kept = all.filter { lost & 1 << ($0.id.milliseconds - 1) == 0 }
            for cut in 0...kept.count {
                var cursor = StreamCursor(at: .start)
                var hasGap = false
                func note(_ found: (taken: [StreamEntry], hasGap: Bool)) { if found.hasGap { hasGap = true } }
                note(cursor.take(Array(kept[..<cut]), isAll: false))
                _ = cursor.checked(last: EntryID(6))
                if !hasGap { note(cursor.take(Array(kept[cut...]), isAll: true)) }
                #expect(hasGap == (lost != 0), "lost \(lost), cut \(cut)")
            }
        }
    }
}
