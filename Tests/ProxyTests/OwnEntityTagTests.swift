import Testing

@testable import HTTPSemantics
@testable import Proxy

@Suite struct OwnEntityTagTests {
    private let body = Array(#"[{"id":1}]"#.utf8)

    @Test func `an own entity tag depends on the bytes, the view and the address, and on nothing else`() {
        let here = ClientAuthority(authority: "localhost:8787")
        let there = ClientAuthority(authority: "127.0.0.1:8787")
        let tags = [
            OwnEntityTag.make(body: body, view: .wire, base: nil),
            OwnEntityTag.make(body: body, view: .mapped, base: nil),
            OwnEntityTag.make(body: body, view: .wire, base: here),
            OwnEntityTag.make(body: body, view: .mapped, base: here),
            OwnEntityTag.make(body: body, view: .wire, base: there),
            OwnEntityTag.make(body: body + [0x20], view: .wire, base: nil),
        ]
        #expect(Set(tags).count == tags.count)
        #expect(tags.allSatisfy { EntityTag(Array($0.utf8))?.isOwn == true })
        #expect(OwnEntityTag.make(body: body, view: .wire, base: here) == tags[2])
    }
}
