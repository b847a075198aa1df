import Basics
import Synchronization
import Testing

@Suite("A bounded table")
struct BoundedTableTests {
    @Test(arguments: [2, 3, 4, 100])
    func `a table never has more entries than its limit, and keeps the latest`(limit: Int) {
        var table = BoundedTable<Int, Int>(limit: limit)
        for number in 0..<1_000 {
            table[number] = number
            #expect(table.count <= limit && table[number] == number)
            let latest = max(0, number - limit / 2 + 1)...number
            #expect(latest.allSatisfy { table[$0] == $0 })
        }
        #expect(table[0] == nil)
    }

    @Test func `an entry that is set again is not forgotten with the older ones`() {
        var table = BoundedTable<Int, Int>(limit: 10)
        for number in 0..<100 {
            table[-1] = number
            table[number] = number
        }
        #expect(table[-1] == 99)
    }

    @Test func `setting a known entry forgets no other`() {
        var table = BoundedTable<Int, Int>(limit: 10)
        for number in 0..<5 { table[number] = 0 }
        for round in 0..<100 { table[4] = round }
        #expect(table.count == 5 && table[0] == 0 && table[4] == 99)
    }

    @Test func `a removed entry is gone from both generations`() {
        var table = BoundedTable<Int, Int>(limit: 10)
        table[1] = 1
        table.age()
        table[1] = 2
        table[1] = nil
        #expect(table[1] == nil && table.isEmpty && table.count == 0)
    }

    @Test func `an entry that is not set again is dropped when the table ages for the second time`() {
        var table = BoundedTable<Int, Int>(limit: 10)
        table[1] = 1
        table.age()
        #expect(table[1] == 1)
        table.age()
        #expect(table[1] == nil)
    }

    @Test func `entries that meet a condition are removed, whether set before or after the table aged`() {
        var table = BoundedTable<Int, String>(limit: 10)
        (table[1], table[2]) = ("a", "b")
        table.age()
        (table[3], table[4]) = ("a", "b")
        table.removeAll { key, value in value == "a" || key == 4 }
        #expect(table.count == 1 && table[2] == "b")
        table.removeAll()
        #expect(table.isEmpty)
    }

    @Test func `a value is computed only if the table has no entry for its key`() {
        var table = BoundedTable<Int, Int>(limit: 2)
        let values = [1, 1, 2, 1].map { key in table.value(for: key) { key * 10 } }
        #expect(values == [10, 10, 20, 10])
        var calls = 0
        _ = table.value(for: 1) {
            calls += 1
            return 0
        }
        #expect(calls == 0)
    }

    @Test func `a computed value is kept, and computed again once it has been dropped`() {
        let memo = Memo<Int, Int>(limit: 2)
        let calls = Atomic<Int>(0)
        func value(_ key: Int) -> Int {
            memo.value(for: key) {
                calls.add(1, ordering: .relaxed)
                return key * 10
            }
        }
        #expect(value(1) == 10 && value(1) == 10 && calls.load(ordering: .relaxed) == 1)
        for key in 2...5 { #expect(value(key) == key * 10) }
        #expect(value(1) == 10 && calls.load(ordering: .relaxed) == 6)
    }
}
