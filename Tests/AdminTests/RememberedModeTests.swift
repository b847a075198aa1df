import Store
import TestSupport
import Testing

@testable import Admin
@testable import Settings

struct RememberedModeTests {
    @Test func `a mode that was set holds until the config names another one than at that time`() throws {
        let folder = TemporaryFolder()
        let remembered = RememberedMode(besideStore: folder.file("larder.db"))
        #expect(remembered.mode(configured: .online) == .online)
        try remembered.remember(.offline, configured: .online)
        #expect(remembered.mode(configured: .online) == .offline)
        #expect(remembered.mode(configured: .offline) == .offline)
        // From then on the config decides.
        #expect(remembered.mode(configured: .online) == .online)
    }

    @Test func `setting the mode that the config names removes the file`() throws {
        let folder = TemporaryFolder()
        let remembered = RememberedMode(besideStore: folder.file("larder.db"))
        try remembered.remember(.online, configured: .online)
        try remembered.remember(.offline, configured: .online)
        #expect(folder.names == ["larder.db.mode"])
        try remembered.remember(.online, configured: .online)
        #expect(folder.names == [])
    }

    @Test(arguments: ["", "offline", "sideways online", "offline online more", "offline sideways"])
    func `a file that does not contain exactly two modes is ignored`(text: String) throws {
        let folder = TemporaryFolder()
        try folder.write(text, to: "larder.db.mode")
        #expect(RememberedMode(besideStore: folder.file("larder.db")).mode(configured: .online) == .online)
    }

    @Test func `a mode that cannot be remembered is an error`() {
        let remembered = RememberedMode(besideStore: "/nonexistent/larder.db")
        #expect(throws: (any Error).self) { try remembered.remember(.offline, configured: .online) }
    }
}

struct StoreTroubleTests {
    @Test func `trouble of the store lasts until a notice says that it is over`() {
        let trouble = StoreTrouble()
        #expect(trouble.all == [])
        let (full, locked) = (StoreNotice.writesFail(reason: "full"), StoreNotice.lockedOut(by: "x"))
        trouble.record(locked)
        trouble.record(full)
        trouble.record(.modelMigrated(upstream: UpstreamKey(rawValue: "a"), model: "b", from: 0, to: 1))
        #expect(trouble.all == [full.description, locked.description])
        trouble.record(.writesWork)
        #expect(trouble.all == [locked.description])
        trouble.record(.lockGone)
        #expect(trouble.all == [])
    }
}
