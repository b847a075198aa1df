import Mapping

/// Cuts a text into the JSON values in it while it arrives: one value, values on lines of their own, or lists of values.
///
/// Values may be separated by any white space. A list at the top counts as its elements, so that a list of a million objects is
/// never in memory as a whole.
struct JSONValueSplitter {
    /// A value, and the line in which it begins.
    struct Value: Sendable {
        let line: Int
        let text: [UInt8]
    }

    struct Failure: Error, Equatable {
        enum Reason: Equatable {
            case malformed
            /// The text ended within the value or list.
            case cutShort
            case tooLong(limit: Int)
        }

        let line: Int
        let reason: Reason
    }

    /// What may come next in a list.
    private enum ListState { case valueOrEnd, value, commaOrEnd }

    let limit: Int
    private var line = 1
    private var list: ListState?
    private var listLine = 1

    // The value that has begun.
    private var text: [UInt8] = []
    private var valueLine = 1
    private var depth = 0
    private var isInString = false
    private var isEscaped = false

    init(limit: Int) { self.limit = limit }

    /// Takes the next piece of the text; calls `found` with each value that it completes.
    mutating func take(_ bytes: [UInt8], found: (Value) throws -> Void) throws {
        for byte in bytes {
            try take(byte, found)
            if byte == UInt8(ascii: "\n") { line += 1 }
        }
    }

    mutating func finish(found: (Value) throws -> Void) throws {
        if !text.isEmpty {
            guard depth == 0, !isInString else { throw Failure(line: valueLine, reason: .cutShort) }
            try end(found)
        }
        guard list == nil else { throw Failure(line: listLine, reason: .cutShort) }
    }

    private mutating func take(_ byte: UInt8, _ found: (Value) throws -> Void) throws {
        if text.isEmpty { return try begin(byte) }
        // A number or a word at the top ends where something else begins.
        if depth == 0, !isInString, Self.endsScalar(byte) {
            try end(found)
            return try begin(byte)
        }
        guard text.count < limit else { throw Failure(line: valueLine, reason: .tooLong(limit: limit)) }
        text.append(byte)
        if isEscaped {
            isEscaped = false
        } else if isInString {
            isEscaped = byte == UInt8(ascii: "\\")
            isInString = byte != UInt8(ascii: "\"")
        } else {
            note(byte)
        }
        let isClosed = byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]") || byte == UInt8(ascii: "\"")
        if isClosed, depth == 0, !isInString { try end(found) }
    }

    private mutating func note(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""): isInString = true
        case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
        case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
        default: break
        }
    }

    /// Takes a byte between two values.
    private mutating func begin(_ byte: UInt8) throws {
        switch (byte, list) {
        case (0x20, _), (0x09, _), (0x0A, _), (0x0D, _): break
        case (UInt8(ascii: "["), nil): (list, listLine) = (.valueOrEnd, line)
        case (UInt8(ascii: "]"), .valueOrEnd), (UInt8(ascii: "]"), .commaOrEnd): list = nil
        case (UInt8(ascii: ","), .commaOrEnd): list = .value
        case (UInt8(ascii: "]"), _), (UInt8(ascii: "}"), _), (UInt8(ascii: ","), _), (_, .commaOrEnd):
            throw Failure(line: line, reason: .malformed)
        default:
            (text, valueLine) = ([byte], line)
            note(byte)
        }
    }

    private mutating func end(_ found: (Value) throws -> Void) throws {
        let value = Value(line: valueLine, text: text)
        text = []
        if list != nil { list = .commaOrEnd }
        guard !JSONBody.isMalformed(value.text) else { throw Failure(line: valueLine, reason: .malformed) }
        try found(value)
    }

    private static func endsScalar(_ byte: UInt8) -> Bool {
        byte <= 0x20 || byte == UInt8(ascii: ",") || byte == UInt8(ascii: "]") || byte == UInt8(ascii: "}")
            || byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") || byte == UInt8(ascii: "\"")
    }
}

extension JSONValueSplitter.Failure: CustomStringConvertible {
    var description: String {
        switch reason {
        case .malformed: "line \(line) is not JSON"
        case .cutShort: "what begins in line \(line) is not closed when the text ends"
        case .tooLong(let limit):
            "the value that begins in line \(line) has more than \(limit) bytes (limits.document), or is not closed"
        }
    }
}
