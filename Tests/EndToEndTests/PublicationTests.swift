import Foundation
import TestSupport
import Testing

/// What clients get while a commit is on its way into memory.
@Suite(.scripts) struct PublicationTests {
    private static func list(_ name: String) -> String { #"[{"id":1,"login":"ada","name":"\#(name)"}]"# }

    @Test(.enabled(if: CommitBlocker.isAvailable))
    func `a document from disk is not newer than the next hit from memory`() throws {
        let name = Monitor("v0")
        let origin = try Origin { request in
            let list = Self.list(name.current)
            return .json(request.path == "/users/1" ? String(list.dropFirst().dropLast()) : list, Fresh.hour)
        }
        let folder = TemporaryFolder()
        let gate = CommitBlocker(in: folder)
        let larder = try Larder(config: Configs.blog(origin), store: folder, environment: gate.environment)
        for page in 1...2 { _ = try larder.get("/users?page=\(page)") }
        #expect(try larder.waitForDocuments(2))
        try larder.restart()
        // One of the two lists is in memory, the other only on disk.
        for _ in 0..<2 { #expect(try larder.get("/users?page=1").text == Self.list("v0")) }
        #expect(try larder.waitForQuiet())

        name.withLock { $0 = "v1" }
        let count = gate.count
        gate.close()
        let detail = Background { try larder.get("/users/1") }
        #expect(gate.waitForCommit(after: count))
        let fromDisk = try larder.get("/users?page=2")
        #expect(fromDisk.isHit && fromDisk.text == Self.list("v1"))
        let fromMemory = try larder.get("/users?page=1")
        #expect(fromMemory.isHit && fromMemory.text == Self.list("v1"), "\(fromMemory.text)")
        gate.open()
        let passedOn = try detail.value()
        #expect(passedOn.text.contains("v1"), "\(passedOn)")
        for page in 1...2 { #expect(try larder.get("/users?page=\(page)").text == Self.list("v1")) }
    }
}
