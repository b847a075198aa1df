import HTTPSemantics

/// Reads the directives of one `Cache-Control` field line in place, without allocating (RFC 9111 §5.2).
///
/// A member that is not a directive is skipped. After a misplaced or unclosed quote, directives can no longer be told from
/// quoted text. All later directives are still returned, so that restrictions are heeded, but with a malformed argument, so
/// that none of them grants anything.
struct DirectiveReader {
    struct Directive {
        var name: UnsafeRawBufferPointer
        var argument: Argument
    }

    enum Argument {
        case none
        case token(UnsafeRawBufferPointer)
        /// The text between the quotes, including backslashes.
        case quoted(UnsafeRawBufferPointer)
        /// Neither: white space around the `=`, an unclosed quote, or bytes allowed in neither form.
        case malformed

        /// The argument in seconds; nil if it is missing or is not a delta-seconds value.
        @inline(__always)
        var seconds: Int64? {
            switch self {
            case .token(let bytes): DeltaSeconds.parse(bytes)
            case .quoted(let bytes):
                // Escaped digits are valid, though no client sends them.
                bytes.contains(0x5C) ? DeltaSeconds.parse(self.bytes ?? []) : DeltaSeconds.parse(bytes)
            case .none, .malformed: nil
            }
        }

        /// The unescaped bytes of the argument; nil if it is missing or malformed.
        var bytes: [UInt8]? {
            switch self {
            case .token(let bytes): return Array(bytes)
            case .quoted(let bytes):
                var unescaped: [UInt8] = []
                var isEscaped = false
                for byte in bytes {
                    if byte == 0x5C, !isEscaped {
                        isEscaped = true
                    } else {
                        unescaped.append(byte)
                        isEscaped = false
                    }
                }
                return unescaped
            case .none, .malformed: return nil
            }
        }
    }

    private let bytes: UnsafeRawBufferPointer
    private var position = 0
    /// Whether a misplaced quote has been read.
    private(set) var isInDoubt: Bool

    /// - Parameter isInDoubt: Whether an earlier line of the field had a misplaced quote; the lines form one list.
    init(_ bytes: UnsafeRawBufferPointer, isInDoubt: Bool = false) {
        self.bytes = bytes
        self.isInDoubt = isInDoubt
    }

    /// Returns the next directive; nil at the end of the line.
    mutating func next() -> Directive? {
        while position < bytes.count {
            let byte = bytes[position]
            if byte == 0x2C || FieldSyntax.isWhitespace(byte) {
                position += 1
            } else if FieldSyntax.isTokenByte(byte) {
                return directive()
            } else {
                skipToComma()
            }
        }
        return nil
    }

    private mutating func directive() -> Directive {
        let wasInDoubt = isInDoubt
        let name = token()
        var argument = Argument.none
        if position < bytes.count, bytes[position] == 0x3D {
            position += 1
            argument = self.argument()
        }
        skipWhitespace()
        if position < bytes.count, bytes[position] != 0x2C {
            // For example `max-age =5` and `max-age=5; x`: the directive is recognised, but its argument is unreliable.
            argument = .malformed
            skipToComma()
        }
        if wasInDoubt { argument = .malformed }
        return Directive(name: name, argument: argument)
    }

    private mutating func argument() -> Argument {
        guard position < bytes.count else { return .malformed }
        guard bytes[position] == 0x22 else {
            let value = token()
            return value.isEmpty ? .malformed : .token(value)
        }
        // After a misplaced quote, no quote may hide a directive.
        if isInDoubt { return .malformed }
        let start = position + 1
        var index = start
        while index < bytes.count {
            if bytes[index] == 0x5C {
                index += 2
            } else if bytes[index] == 0x22 {
                position = index + 1
                return .quoted(UnsafeRawBufferPointer(rebasing: bytes[start..<index]))
            } else {
                index += 1
            }
        }
        // An unclosed quote must not hide a directive behind the next comma.
        return .malformed
    }

    private mutating func token() -> UnsafeRawBufferPointer {
        let start = position
        while position < bytes.count, FieldSyntax.isTokenByte(bytes[position]) { position += 1 }
        return UnsafeRawBufferPointer(rebasing: bytes[start..<position])
    }

    private mutating func skipWhitespace() {
        while position < bytes.count, FieldSyntax.isWhitespace(bytes[position]) { position += 1 }
    }

    private mutating func skipToComma() {
        while position < bytes.count, bytes[position] != 0x2C {
            if bytes[position] == 0x22 { isInDoubt = true }
            position += 1
        }
    }
}
