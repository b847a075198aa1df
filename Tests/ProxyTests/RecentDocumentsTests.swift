import Testing

@testable import Proxy

@Suite struct RecentDocumentsTests {
    @Test func `a document that keeps changing is known as of its last change`() {
        var recent = RecentDocuments<Int>()
        recent.insert(0, of: 1)
        for number in 1...4_000 { recent.insert(number, of: Int64(number) + 1) }
        recent.insert(4_001, of: 1)
        // As many again as push out what was changed before.
        for number in 1...4_000 { recent.insert(number, of: Int64(number) + 10_000) }
        #expect(recent[1] == 4_001)
        #expect(recent[2] == nil)
        #expect(recent[14_000] == 4_000)
        for number in 1...4_096 { recent.insert(number, of: Int64(number) + 20_000) }
        #expect(recent[1] == nil)
        #expect(recent[20_001] == 1)
    }
}
