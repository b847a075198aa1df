import Basics
import Testing

@Suite("A list of the last elements")
struct RecentListTests {
    private func list(_ elements: some Sequence<Int>, limit: Int) -> RecentList<Int> {
        var list = RecentList<Int>(limit: limit)
        for element in elements { list.append(element) }
        return list
    }

    @Test(arguments: 1...5)
    func `a recent list has the last elements in order, as many as its limit`(limit: Int) {
        for count in 0..<12 {
            let list = list(0..<count, limit: limit)
            #expect(Array(list) == Array((0..<count).suffix(limit)))
            #expect(Array(list.suffix(2)) == Array((0..<count).suffix(min(limit, 2))))
        }
    }

    @Test func `after a removal a recent list goes on in order, up to its limit`() {
        var list = list(0..<7, limit: 5)
        list.removeAll { $0.isMultiple(of: 2) }
        #expect(Array(list) == [3, 5])
        for element in 7..<12 { list.append(element) }
        #expect(Array(list) == [7, 8, 9, 10, 11])
    }

    @Test func `reading a position without an element traps`() async {
        await #expect(processExitsWith: .failure) {
            let list = RecentList<Int>(limit: 3)
            _ = list[0]
        }
    }
}
