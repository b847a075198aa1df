import HTTPSemantics

/// Turns a client's path into the upstream's: prefix off, dot segments resolved, base path on (DESIGN: Guard).
package struct TargetNormaliser: Sendable {
    /// Empty, or beginning and not ending with `/`.
    let prefix: [UInt8]
    let basePath: [UInt8]

    init(prefix: String = "", basePath: String = "") {
        self.prefix = Self.folder(prefix)
        self.basePath = Self.folder(basePath)
    }

    private static func folder(_ path: String) -> [UInt8] {
        var bytes = Array(path.utf8)
        while bytes.last == 0x2F { bytes.removeLast() }
        return bytes.isEmpty || bytes.first == 0x2F ? bytes : [0x2F] + bytes
    }

    package enum Refusal: Error, Sendable, Equatable {
        /// The path is not under this upstream's prefix; another's may match.
        case otherPrefix
        /// Dot segments lead above the base path.
        case aboveBasePath
        /// A segment that some servers read as a dot segment, and others as a name.
        case hiddenDotSegment
        /// A `%00`, at which some servers cut a path off.
        case nul
        /// A `#`, white space, a control character, or a backslash in the path.
        case invalidCharacter(UInt8)
        /// A `%` without two hexadecimal digits in the path.
        case invalidEscape

        /// For the person who reads the problem document.
        var message: String {
            switch self {
            case .otherPrefix: "No upstream is configured for this path."
            case .aboveBasePath: "The path leads above the base path of the upstream."
            case .hiddenDotSegment:
                "The path has a segment that some servers read as \".\" or \"..\", such as \"..;\" or \"%252e%252e\". Leave it out."
            case .nul: "The path holds %00, at which some servers cut it off. Leave it out."
            case .invalidCharacter(let byte):
                "The target holds the byte 0x\(String(byte, radix: 16)), which no URL may; write it as %\(String(byte, radix: 16, uppercase: true))."
            case .invalidEscape:
                "The path holds a \"%\" that is not followed by two hexadecimal digits; write it as %25."
            }
        }
    }

    struct Target: Sendable, Equatable {
        /// What is sent: base path, path as the client spelled it, query untouched.
        var upstream: [UInt8]
        /// The path without prefix and base path, for routes; begins with `/` unless empty.
        var routePath: [UInt8]
        /// The URL of the cache key, before the route's word on its query: `upstream` with its percent-escapes normalised.
        var key: [UInt8]
    }

    /// Whether a path can be taken as it is: no escape, no dot segment, nothing invalid.
    ///
    /// The hit path asks first.
    @inline(__always)
    static func isPlain(_ path: UnsafeRawBufferPointer) -> Bool {
        var previous: UInt8 = 0
        for byte in path {
            // Nearly all bytes of a path are letters, digits and slashes.
            if byte > 0x2E {
                if byte == 0x5C || byte == 0x7F { return false }
            } else if byte == 0x25 || byte <= 0x20 || byte == 0x23 || byte == 0x2E && previous == 0x2F {
                return false
            }
            previous = byte
        }
        return true
    }

    /// - Parameters:
    ///   - path: of the request's target, from its first `/`.
    ///   - query: what follows the `?`; nil without one.
    func normalise(path: [UInt8], query: [UInt8]?) throws(Refusal) -> Target {
        try Self.check(path, isPath: true)
        if let query { try Self.check(query, isPath: false) }
        guard path.starts(with: prefix) else { throw .otherPrefix }
        let rest = path[prefix.count...]
        guard rest.isEmpty || rest.first == 0x2F else { throw .otherPrefix }
        let routePath = try Self.resolved(rest)
        let suffix = query.map { [0x3F] + $0 } ?? []
        let whole = basePath + routePath
        let upstream = (whole.isEmpty ? [0x2F] : whole) + suffix
        return Target(upstream: upstream, routePath: routePath, key: Self.normalisingEscapes(upstream))
    }

    private static func check(_ bytes: [UInt8], isPath: Bool) throws(Refusal) {
        for (index, byte) in bytes.enumerated() {
            // Bytes above 0x7F are no URL's either, but many clients send them raw and servers take them as they are.
            if byte <= 0x20 || byte == 0x7F || byte == 0x23 || (isPath && byte == 0x5C) {
                throw .invalidCharacter(byte)
            }
            if isPath, byte == 0x25 {
                guard index + 2 < bytes.count, FieldSyntax.hexDigit(bytes[index + 1]) != nil,
                    FieldSyntax.hexDigit(bytes[index + 2]) != nil
                else { throw .invalidEscape }
            }
        }
    }

    /// Resolves `.` and `..`, escaped or not; empty segments stay, since servers may distinguish them.
    private static func resolved(_ path: ArraySlice<UInt8>) throws(Refusal) -> [UInt8] {
        guard path.withUnsafeBytes({ !isPlain($0) }) else { return Array(path) }
        var kept: [ArraySlice<UInt8>] = []
        let segments = path.dropFirst().split(separator: 0x2F, omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            let decoded = unescaped(segment) { $0 == 0x2E || $0 == 0x2F || $0 == 0x5C }
            if decoded.elementsEqual([0x2E]) {
                if isLast { kept.append([]) }
            } else if decoded.elementsEqual([0x2E, 0x2E]) {
                guard !kept.isEmpty else { throw .aboveBasePath }
                kept.removeLast()
                if isLast { kept.append([]) }
            } else {
                try checkHidden(segment)
                kept.append(segment)
            }
        }
        return [0x2F] + Array(kept.joined(separator: [0x2F]))
    }

    /// Refuses a segment that is a dot segment, or has one in it, to servers that decode it before they split it, or once
    /// more, that take parameters off (`..;x`), that stop at a NUL, or that read overlong UTF-8.
    private static func checkHidden(_ segment: ArraySlice<UInt8>) throws(Refusal) {
        guard segment.contains(where: { $0 == 0x25 || $0 == 0x3B }) else { return }
        let decoded = decodingOverlong(decodingFully(segment))
        if decoded.contains(0) { throw .nul }
        for piece in decoded.split(whereSeparator: { $0 == 0x2F || $0 == 0x5C }) {
            // `;`, `?` and `#` end the name; white space and control characters at its end are dropped by some.
            var name = piece.prefix { $0 != 0x3B && $0 != 0x3F && $0 != 0x23 }
            while let last = name.last, last <= 0x20 { name.removeLast() }
            if name.elementsEqual([0x2E]) || name.elementsEqual([0x2E, 0x2E]) { throw .hiddenDotSegment }
        }
    }

    /// The segment with its escapes decoded, and those that come to light then, in one pass.
    private static func decodingFully(_ segment: ArraySlice<UInt8>) -> [UInt8] {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(segment.count)
        for byte in segment {
            decoded.append(byte)
            while decoded.count >= 3, let byte = escaped(decoded, at: decoded.count - 3) {
                decoded.removeLast(3)
                decoded.append(byte)
            }
        }
        return decoded
    }

    /// The bytes with ASCII characters that are spelled as longer sequences of UTF-8 in their one byte: `%c0%ae` is a dot to
    /// decoders that do not look.
    private static func decodingOverlong(_ bytes: [UInt8]) -> [UInt8] {
        var decoded: [UInt8] = []
        var index = 0
        while index < bytes.count {
            let length =
                switch bytes[index] {
                case 0xC0, 0xC1: 2
                case 0xE0: 3
                case 0xF0: 4
                case 0xF8: 5
                case 0xFC: 6
                default: 1
                }
            let end = index + length
            let value =
                end <= bytes.count && length > 1
                ? bytes[(index + 1)..<end].reduce(UInt32(bytes[index] & 1)) { $0 << 6 | UInt32($1 & 0x3F) } : .max
            if value < 0x80 {
                decoded.append(UInt8(value))
                index = end
            } else {
                decoded.append(bytes[index])
                index += 1
            }
        }
        return decoded
    }

    /// The path, without query, that responses to a target at the upstream are stored under.
    static func keyPath(of target: String) -> String {
        String(decoding: normalisingEscapes(Array(target.utf8.prefix { $0 != 0x3F })), as: UTF8.self)
    }

    /// The one spelling of all that differ in percent-escapes alone (RFC 3986 §6.2.2): `%2f` becomes `%2F`, and `%7E` the
    /// `~` that it stands for, as any unreserved character.
    ///
    /// A query with a `%` that begins no escape keeps the escapes that it has: decoding `%2%35` would make it the escape of
    /// something else. What the query is says nothing about the path, by which writes invalidate.
    static func normalisingEscapes(_ target: [UInt8]) -> [UInt8] {
        guard target.contains(0x25) else { return target }
        let end = target.firstIndex(of: 0x3F) ?? target.count
        return normalisingEscapes(inPart: Array(target[..<end])) + normalisingEscapes(inPart: Array(target[end...]))
    }

    /// The same for a path or a query alone.
    private static func normalisingEscapes(inPart target: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(target.count)
        let decodes = isWellFormed(target)
        var index = 0
        while index < target.count {
            guard let byte = escaped(target, at: index) else {
                result.append(target[index])
                index += 1
                continue
            }
            if decodes, isUnreserved(byte) {
                result.append(byte)
            } else {
                result += [0x25, uppercased(target[index + 1]), uppercased(target[index + 2])]
            }
            index += 3
        }
        return result
    }

    /// The bytes that a piece of a target stands for; what is no escape stays.
    ///
    /// - Parameter isMeant: which bytes are decoded; the escapes of others stay.
    package static func unescaped(
        _ piece: ArraySlice<UInt8>,
        where isMeant: (UInt8) -> Bool = { _ in true }
    ) -> [UInt8] {
        guard piece.contains(0x25) else { return Array(piece) }
        let piece = Array(piece)
        var result: [UInt8] = []
        var index = 0
        while index < piece.count {
            if let byte = escaped(piece, at: index), isMeant(byte) {
                result.append(byte)
                index += 3
            } else {
                result.append(piece[index])
                index += 1
            }
        }
        return result
    }

    private static func isWellFormed(_ target: [UInt8]) -> Bool {
        target.indices.allSatisfy { target[$0] != 0x25 || escaped(target, at: $0) != nil }
    }

    /// The byte that an escape here stands for; nil where none begins.
    private static func escaped(_ bytes: [UInt8], at index: Int) -> UInt8? {
        guard bytes[index] == 0x25, index + 2 < bytes.count, let high = FieldSyntax.hexDigit(bytes[index + 1]),
            let low = FieldSyntax.hexDigit(bytes[index + 2])
        else { return nil }
        return high << 4 | low
    }

    private static func uppercased(_ digit: UInt8) -> UInt8 { digit >= 0x61 ? digit - 0x20 : digit }

    /// RFC 3986 §2.3.
    private static func isUnreserved(_ byte: UInt8) -> Bool {
        (byte | 0x20) &- 0x61 < 26 || byte &- 0x30 < 10 || byte == 0x2D || byte == 0x2E || byte == 0x5F || byte == 0x7E
    }
}
