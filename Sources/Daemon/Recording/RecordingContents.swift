import Dispatch
import Foundation
import HTTPSemantics
import Settings
import Synchronization
import Yams

/// The contents of a recording, read from disk: its exchanges in order, whose bodies stay in their files.
package struct RecordingContents: Sendable {
    package let folder: RecordingFolder
    package let manifest: RecordingManifest
    /// In the order in which they happened.
    package let exchanges: [RecordedExchange]
    /// Notices for people about less than errors, such as a truncated last line.
    package let notices: [String]

    /// Reads a folder; blocks.
    ///
    /// If its first recording was never completed, as after a crash, that is read with what it has.
    package init(_ given: RecordingFolder) throws(RecordingError) {
        let unfinished = RecordingReplacement.unfinished(in: given)
        let folder = given.hasManifest ? given : unfinished ?? given
        self.folder = folder
        manifest = try RecordingManifest.read(folder)
        if let complaint = folder.complaintAboutBodies { throw RecordingError(folder.bodies, complaint) }
        guard access(folder.exchanges, F_OK) == 0 || errno != ENOENT else {
            let remedy = "put it back, or record again with --record all of `larder run`"
            throw RecordingError(folder.exchanges, "the file is missing; \(remedy)")
        }
        let lines = ExchangeLines(try folder.read(folder.exchanges, limit: 4 << 30))
        exchanges = try lines.ranges.indices.mapOnAllProcessors { line throws(RecordingError) in
            try Self.decode(lines, line, folder)
        }
        let cut = "\(folder.exchanges): the last line is cut short, as by a crash while recording; it is left out"
        let lack =
            given.hasManifest
            ? "a new recording was begun and not completed; the next --record all removes it"
            : "this recording was not completed, and may lack exchanges"
        notices = (lines.isCutShort ? [cut] : []) + (unfinished.map { ["\($0.path): \(lack)"] } ?? [])
    }

    private static func decode(_ lines: ExchangeLines, _ index: Int, _ folder: RecordingFolder) throws(RecordingError)
        -> RecordedExchange
    {
        let (bytes, number) = (Array(lines.bytes[lines.ranges[index]]), lines.numbers[index])
        let exchange: RecordedExchange
        do {
            exchange = try .init(line: bytes) ?? JSONDecoder().decode(RecordedExchange.self, from: Data(bytes))
        } catch { throw RecordingError(folder.exchanges, line: number, reason(error)) }
        let complaint =
            exchange.flaw.map { "\($0.part): \($0.complaint)" } ?? exchange.request.body.flatMap(folder.complaint)
            ?? exchange.response.body.flatMap(folder.complaint)
        guard let complaint else { return exchange }
        throw RecordingError(folder.exchanges, line: number, complaint)
    }

    private static func reason(_ error: any Error) -> String {
        guard let error = error as? DecodingError else { return "the line cannot be read: \(error)" }
        func path(_ context: DecodingError.Context) -> String {
            context.codingPath.map(\.stringValue).joined(separator: ".")
        }
        switch error {
        case .keyNotFound(let key, let context):
            let place = path(context)
            return "the line has no \"\(place.isEmpty ? "" : place + ".")\(key.stringValue)\""
        case .typeMismatch(let type, let context): return "\(path(context)): this is not of the type \(type)"
        case .valueNotFound(_, let context): return "\(path(context)): there is no value"
        case .dataCorrupted: return "the line is not JSON; each line is one object"
        @unknown default: return "the line cannot be read"
        }
    }
}

/// The lines of `exchanges.jsonl`, split but not decoded.
struct ExchangeLines: Sendable {
    let bytes: [UInt8]
    private(set) var ranges: [Range<Int>] = []
    /// The number of each line in the file, counted from 1; empty lines are left out.
    private(set) var numbers: [Int] = []
    /// The end of the last complete line.
    private(set) var end = 0
    private(set) var isCutShort = false

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        var (start, number) = (bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0, 0)
        while start < bytes.count {
            number += 1
            let next = bytes[start...].firstIndex(of: 0x0A)
            var stop = next ?? bytes.count
            if stop > start, bytes[stop - 1] == 0x0D { stop -= 1 }
            let line = start..<stop
            // A file edited by hand may lack the last line end.
            let isWhole = next != nil || (try? JSONSerialization.jsonObject(with: Data(bytes[line]))) != nil
            guard isWhole else {
                isCutShort = true
                return
            }
            if bytes[line].contains(where: { $0 != 0x20 && $0 != 0x09 }) {
                ranges.append(line)
                numbers.append(number)
            }
            start = next.map { $0 + 1 } ?? bytes.count
            end = start
        }
    }
}

/// An error in reading or writing a recording: its place, the problem, and the remedy.
package struct RecordingError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The file, below the folder as the user wrote it.
    let file: String
    /// Counted from 1; nil if the error is not in a line.
    let line: Int?
    let reason: String

    package init(_ file: String, line: Int? = nil, _ reason: String) {
        (self.file, self.line, self.reason) = (file, line, reason)
    }

    package var description: String { "\(file)\(line.map { ":\($0)" } ?? ""): \(reason)" }
}

extension Range<Int> {
    /// Maps each number, in order, on all processors; blocks.
    func mapOnAllProcessors<Value: Sendable>(
        _ transform: @Sendable (Int) throws(RecordingError) -> Value
    ) throws(RecordingError) -> [Value] {
        let perTask = 2_000
        let tasks = (count + perTask - 1) / perTask
        let results = Mutex([Result<[Value], RecordingError>?](repeating: nil, count: tasks))
        DispatchQueue.concurrentPerform(iterations: tasks) { task in
            let range = task * perTask..<Swift.min((task + 1) * perTask, count)
            let result = Result { () throws(RecordingError) in
                try range.map { number throws(RecordingError) in try transform(lowerBound + number) }
            }
            results.withLock { $0[task] = result }
        }
        var values: [Value] = []
        values.reserveCapacity(count)
        for result in results.withLock({ $0 }) { values += try result?.get() ?? [] }
        return values
    }
}

/// `recording.yaml`: the version of the format, and the config for interpreting the exchanges.
package struct RecordingManifest: Sendable {
    /// The version that this Larder writes, and the newest that it reads.
    static let newest = 2
    /// The version since which bodies may be indented.
    static let firstIndented = 2

    /// The keys of the recording itself; all others belong to the config.
    private static let ownKeys = ["format", "recorded"]

    var recorded: String?
    /// The text with the recording's own keys blanked out, so that positions in it are those of the file.
    package var config: String
    private(set) var format = Self.newest

    package static func read(_ folder: RecordingFolder) throws(RecordingError) -> RecordingManifest {
        let file = folder.manifest
        if RecordingReplacement.isPending(in: folder) { _ = try RecordingLock(folder) }
        guard folder.hasManifest else {
            throw RecordingError(
                folder.path,
                "there is no recording (no \(RecordingFolder.manifestName)); make one with `larder record \(folder.path) "
                    + "--upstream URL`, or with --record once of `larder run`"
            )
        }
        let bytes = try folder.read(file, limit: 8 << 20)
        guard let text = String(validating: bytes, as: UTF8.self)
        else { throw RecordingError(file, "the file is not UTF-8 text; save it as UTF-8") }
        let root: Node?
        do {
            root = try BoundedYAML.compose(text)
        } catch { throw RecordingError(file, line: error.line, error.description) }
        guard let format = root?["format"]?.scalar?.string else {
            let remedy = "a recording of this version has \"format: \(newest)\""
            throw RecordingError(file, "the file names no format; \(remedy)")
        }
        guard let number = Int(format), number > 0 else {
            throw RecordingError(file, "format: \"\(format)\" is not a version; write \(newest)")
        }
        guard number <= newest else {
            let limit = "this Larder reads up to \(newest); use a newer Larder"
            throw RecordingError(file, "the recording has format \(number), and \(limit)")
        }
        try check(root, file)
        var lines = text.split(omittingEmptySubsequences: false) { $0.isNewline }.map(String.init)
        for index in lines.indices where ownKeys.contains(where: { lines[index].hasPrefix("\($0):") }) {
            lines[index] = ""
        }
        let recorded = root?["recorded"]?.scalar?.string
        return RecordingManifest(recorded: recorded, config: lines.joined(separator: "\n"), format: number)
    }

    /// Refuses keys that only a config of the user's own may have: a recording may come from elsewhere.
    private static func check(_ root: Node?, _ file: String) throws(RecordingError) {
        let keys = ConfigFile.keys(notAllowedInRecordings: root ?? .mapping([:])).filter { !ownKeys.contains($0.key) }
        guard let first = keys.first else { return }
        let others = keys.dropFirst().map { "\"\($0.key.printable)\" in line \($0.place?.line ?? 0)" }
        throw RecordingError(
            file,
            line: first.place?.line,
            "\"\(first.key.printable)\" is not allowed in a recording, which only says how requests and responses are read; "
                + "remove it, or give a config of your own with --config"
                + (others.isEmpty ? "" : " (the same goes for \(others.joined(separator: ", ")))")
        )
    }

    var text: String {
        """
        # A recording of Larder: what a program asked of an API, and the responses it got.
        # Replay it: larder replay FOLDER, or larder run FOLDER -- COMMAND. See docs/replay.md.
        format: \(format)
        \(recorded.map { "recorded: \($0)\n" } ?? "")\(config)
        """
    }
}
