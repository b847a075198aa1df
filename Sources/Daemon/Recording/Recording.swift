import Dispatch
import Foundation
import HTTPSemantics
import Synchronization

/// A recording read from disk: an ordered list of exchanges, whose bodies stay in their files.
package struct Recording: Sendable {
    package let folder: RecordingFolder
    package let manifest: RecordingManifest
    /// In the order in which they happened.
    package let exchanges: [RecordedExchange]
    /// Notices for people about less than errors, such as a truncated last line.
    package let notices: [String]

    /// Reads a folder; blocks.
    package init(_ folder: RecordingFolder) throws(RecordingError) {
        self.folder = folder
        manifest = try RecordingManifest.read(folder)
        if let complaint = folder.complaintAboutBodies { throw RecordingError(folder.bodies, complaint) }
        guard access(folder.exchanges, F_OK) == 0 || errno != ENOENT else {
            throw RecordingError(
                folder.exchanges,
                "the file is missing; put it back, or record anew with --record all of `larder run`"
            )
        }
        let lines = ExchangeLines(try folder.read(folder.exchanges, limit: 4 << 30))
        notices =
            lines.isCutShort
            ? ["\(folder.exchanges): the last line is cut short, as by a crash while recording; it is left out"] : []
        exchanges = try Self.decode(lines, folder)
    }

    private static func complaint(_ exchange: RecordedExchange) -> String? {
        if !(200...599).contains(exchange.response.status) {
            return "status: \(exchange.response.status) is no status of a final response; write one from 200 to 599"
        }
        if !exchange.request.target.hasPrefix("/") || exchange.request.target.utf8.contains(where: { $0 <= 0x20 }) {
            return "target: \"\(exchange.request.target)\" is no path; write it as \"/users?page=2\""
        }
        // JSON can spell characters that no message can contain.
        let fields = (exchange.request.fields ?? []) + exchange.response.fields
        if let field = fields.first(where: { $0.utf8.contains { $0 == 0x0D || $0 == 0x0A || $0 == 0 } }) {
            return "fields: \"\(field.printable)\" is no field line; write each line as a string of its own"
        }
        let isToken = exchange.request.method.utf8.allSatisfy { ($0 | 0x20) &- 0x61 < 26 || $0 == 0x2D || $0 == 0x5F }
        if exchange.request.method.isEmpty || !isToken {
            return "method: \"\(exchange.request.method)\" is no method; write it as \"GET\""
        }
        return nil
    }

    /// The number of lines decoded per task.
    private static let portion = 2_000

    private static func decode(_ lines: ExchangeLines, _ folder: RecordingFolder) throws(RecordingError)
        -> [RecordedExchange]
    {
        let count = (lines.ranges.count + portion - 1) / portion
        let results = Mutex([Result<[RecordedExchange], RecordingError>?](repeating: nil, count: count))
        DispatchQueue.concurrentPerform(iterations: count) { index in
            let range = index * portion..<min((index + 1) * portion, lines.ranges.count)
            let result = Result { () throws(RecordingError) in
                try range.map { line throws(RecordingError) in try decode(lines, line, folder) }
            }
            results.withLock { $0[index] = result }
        }
        var exchanges: [RecordedExchange] = []
        exchanges.reserveCapacity(lines.ranges.count)
        for result in results.withLock({ $0 }) { exchanges += try result?.get() ?? [] }
        return exchanges
    }

    private static func decode(
        _ lines: ExchangeLines,
        _ index: Int,
        _ folder: RecordingFolder
    ) throws(RecordingError) -> RecordedExchange {
        let bytes = Array(lines.bytes[lines.ranges[index]])
        do {
            let exchange =
                try RecordedExchange(line: bytes) ?? JSONDecoder().decode(RecordedExchange.self, from: Data(bytes))
            let complaint =
                complaint(exchange) ?? exchange.request.body.flatMap(folder.complaint)
                ?? exchange.response.body.flatMap(folder.complaint)
            guard let complaint else { return exchange }
            throw RecordingError(folder.exchanges, line: lines.numbers[index], complaint)
        } catch let error as RecordingError {
            throw error
        } catch {
            throw RecordingError(folder.exchanges, line: lines.numbers[index], reason(error))
        }
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
        case .typeMismatch(let type, let context): return "\(path(context)): this is no \(type)"
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
    /// Whether an incomplete line follows.
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
    package let file: String
    /// Counted from 1; nil if the error is not in a line.
    package let line: Int?
    package let reason: String

    package init(_ file: String, line: Int? = nil, _ reason: String) {
        self.file = file
        self.line = line
        self.reason = reason
    }

    package var description: String { "\(file)\(line.map { ":\($0)" } ?? ""): \(reason)" }
}
