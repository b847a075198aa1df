import Foundation
import TestSupport
import Testing

@testable import Recording

/// A recording that takes the place of another, and crashes meanwhile.
@Suite struct RecordingReplacementTests {
    private static func write(_ target: String, into folder: String) throws {
        let writer = try RecordingWriter(RecordingFolder(folder), config: "", recorded: 0)
        let exchange = RecordedExchange(
            upstream: "api",
            request: .init(method: "GET", target: target, fields: []),
            response: .init(status: 200, fields: [])
        )
        try writer.append(exchange, requestBody: [], responseBody: Array(target.utf8))
    }

    private static func targets(_ folder: TemporaryFolder) throws -> [String] {
        let recording = try RecordingContents(RecordingFolder(folder.path))
        return try recording.exchanges.map {
            String(decoding: try recording.folder.body($0.response.body), as: UTF8.self)
        }
    }

    @Test func `a crash before the new recording is complete leaves the old one`() throws {
        let folder = TemporaryFolder()
        try Self.write("/old", into: folder.path)
        try Self.write("/new", into: folder.file(".larder-new"))
        #expect(try Self.targets(folder) == ["/old"])
        let replacement = try RecordingReplacement(RecordingFolder(folder.path))
        #expect(throws: RecordingError.self) { try RecordingReplacement(RecordingFolder(folder.path)) }
        try Self.write("/newer", into: replacement.draft.path)
        try replacement.commit()
        #expect(try Self.targets(folder) == ["/newer"])
        #expect(folder.names == [".gitattributes", "bodies", "exchanges.jsonl", "recording.yaml"])
    }

    @Test(arguments: 0...4)
    func `a crash after the new recording is complete leaves it, however many files were moved`(moved: Int) throws {
        let folder = TemporaryFolder()
        try Self.write("/old", into: folder.path)
        try Self.write("/new", into: folder.file(".larder-complete"))
        let files = FileManager.default
        let steps: [() throws -> Void] = [
            { rename(folder.file(".larder-complete/recording.yaml"), folder.file("recording.yaml")) },
            { try files.removeItem(atPath: folder.file("bodies")) },
            { rename(folder.file(".larder-complete/bodies"), folder.file("bodies")) },
            { rename(folder.file(".larder-complete/exchanges.jsonl"), folder.file("exchanges.jsonl")) },
        ]
        for step in steps.prefix(moved) { try step() }
        #expect(RecordingFolder(folder.path).exists)
        #expect(try Self.targets(folder) == ["/new"])
        #expect(folder.names == [".gitattributes", "bodies", "exchanges.jsonl", "recording.yaml"])
    }

    @Test func `a link in the place of a complete recording moves nothing`() throws {
        let (folder, other) = (TemporaryFolder(), TemporaryFolder())
        try Self.write("/own", into: folder.path)
        try Self.write("/other", into: other.path)
        symlink(other.path, folder.file(".larder-complete"))
        #expect(try Self.targets(folder) == ["/own"])
        #expect(try Self.targets(other) == ["/other"])
        let writer = try RecordingWriter(RecordingFolder(folder.path), config: "", recorded: 0)
        #expect(writer.count == 0)
        #expect(try Self.targets(other) == ["/other"])
    }

    @Test func `a new recording takes the place of a link with the name of a complete one, which is not followed`()
        throws
    {
        let (folder, other) = (TemporaryFolder(), TemporaryFolder())
        try Self.write("/old", into: folder.path)
        try Self.write("/other", into: other.path)
        for link in [other.path, other.file("absent")] {
            symlink(link, folder.file(".larder-complete"))
            let replacement = try RecordingReplacement(RecordingFolder(folder.path))
            try Self.write("/new", into: replacement.draft.path)
            try replacement.commit()
            #expect(try Self.targets(folder) == ["/new"])
            #expect(try Self.targets(other) == ["/other"])
            #expect(folder.names == [".gitattributes", "bodies", "exchanges.jsonl", "recording.yaml"])
        }
    }

    @Test func `a body file with a huge number in its name does not prevent recording`() throws {
        let folder = TemporaryFolder()
        try Self.write("/old", into: folder.path)
        for name in ["9223372036854775807.json", "99999999999999999999.json"] {
            _ = try folder.write("{}", to: "bodies/\(name)")
        }
        try Self.write("/new", into: folder.path)
        #expect(try Self.targets(folder) == ["/old", "/new"])
    }

    @Test func `a first recording that was never completed is read as far as it goes`() throws {
        let folder = TemporaryFolder()
        try Self.write("/new", into: folder.file(".larder-new"))
        let recording = try RecordingContents(RecordingFolder(folder.path))
        #expect(recording.exchanges.map(\.request.target) == ["/new"])
        #expect(
            recording.notices == [
                "\(folder.path)/.larder-new: this recording was not completed, and may lack exchanges"
            ]
        )
        // It is no recording yet, so the next attempt begins anew.
        #expect(!RecordingFolder(folder.path).exists)
    }

    @Test func `an incomplete recording beside a complete one is only mentioned`() throws {
        let folder = TemporaryFolder()
        try Self.write("/old", into: folder.path)
        try Self.write("/new", into: folder.file(".larder-new"))
        let recording = try RecordingContents(RecordingFolder(folder.path))
        #expect(recording.exchanges.map(\.request.target) == ["/old"])
        #expect(recording.notices.count == 1)
    }
}
