import Store
import Testing

@testable import Proxy

@Suite struct RecentDocumentsTests {
    private func id(_ number: Int) -> DocumentID { DocumentID(rawValue: Int64(number)) }

    @Test func `a document that keeps changing is known as of its last change`() {
        var recent = RecentDocuments<Int>()
        recent.insert(0, of: id(1))
        for number in 1...4_000 { recent.insert(number, of: id(number + 1)) }
        recent.insert(4_001, of: id(1))
        // As many again as push out what was changed before.
        for number in 1...4_000 { recent.insert(number, of: id(number + 10_000)) }
        #expect(recent[id(1)] == 4_001)
        #expect(recent[id(2)] == nil)
        #expect(recent[id(14_000)] == 4_000)
        for number in 1...4_096 { recent.insert(number, of: id(number + 20_000)) }
        #expect(recent[id(1)] == nil)
        #expect(recent[id(20_001)] == 1)
    }
}
