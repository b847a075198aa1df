import HTTPSemantics
import Settings

/// Turns a client's path into the upstream's: removes the prefix, resolves dot segments, replaces an alias, adds the base path.
package struct TargetNormaliser: Sendable {
    /// Empty, or beginning and not ending with `/`.
    let prefix: [UInt8]
    let basePath: [UInt8]
    /// What stands for other paths, the longest first.
    private let aliases: [(path: [UInt8], target: [UInt8])]

    init(prefix: String = "", aliases: [PathAlias] = [], basePath: String = "") {
        self.prefix = Self.folder(prefix)
        self.basePath = Self.folder(basePath)
        self.aliases = aliases.map { (Self.folder($0.path), Self.folder($0.target)) }
            .sorted { $0.path.count > $1.path.count }
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

        /// The detail of the problem document, for people.
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

    /// Whether a path needs no change: no escape, no dot segment, nothing invalid; the hit path checks this first.
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

    /// Whether a path that needs no other change has an alias; the hit path checks this, too.
    @inline(__always)
    func hasAlias(_ path: UnsafeRawBufferPointer) -> Bool {
        !aliases.isEmpty && alias(of: UnsafeRawBufferPointer(rebasing: path[min(prefix.count, path.count)...])) != nil
    }

    private func alias(of rest: some Collection<UInt8>) -> (path: [UInt8], target: [UInt8])? {
        aliases.first { alias in
            rest.starts(with: alias.path)
                && (rest.count == alias.path.count || rest.dropFirst(alias.path.count).first == 0x2F)
        }
    }

    /// The target as it goes upstream: base path, the client's path with its escapes unchanged, and the query untouched.
    ///
    /// - Parameters:
    ///   - path: of the request's target, from its first `/`.
    ///   - query: the text after the `?`; nil without one.
    func normalise(path: [UInt8], query: [UInt8]?) throws(Refusal) -> [UInt8] {
        try Self.check(path, isPath: true)
        if let query { try Self.check(query, isPath: false) }
        guard path.starts(with: prefix) else { throw .otherPrefix }
        let rest = path[prefix.count...]
        guard rest.isEmpty || rest.first == 0x2F else { throw .otherPrefix }
        var resolved = try Self.resolved(rest)
        if let alias = alias(of: resolved) { resolved.replaceSubrange(..<alias.path.count, with: alias.target) }
        let whole = basePath + resolved
        return (whole.isEmpty ? [0x2F] : whole) + (query.map { [0x3F] + $0 } ?? [])
    }

    private static func check(_ bytes: [UInt8], isPath: Bool) throws(Refusal) {
        for (index, byte) in bytes.enumerated() {
            if !MessageSyntax.isTargetByte(byte) || isPath && byte == 0x5C { throw .invalidCharacter(byte) }
            if isPath, byte == 0x25, PercentEncoding.decode(bytes, at: index) == nil { throw .invalidEscape }
        }
    }

    /// Resolves `.` and `..`, escaped or not; empty segments stay, because servers may distinguish them.
    private static func resolved(_ path: ArraySlice<UInt8>) throws(Refusal) -> [UInt8] {
        guard path.withUnsafeBytes({ !isPlain($0) }) else { return Array(path) }
        var kept: [ArraySlice<UInt8>] = []
        let segments = path.dropFirst().split(separator: 0x2F, omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            let decoded = unescaped(segment) { $0 == 0x2E || $0 == 0x2F || $0 == 0x5C }
            guard decoded == [0x2E] || decoded == [0x2E, 0x2E] else {
                try checkHidden(segment)
                kept.append(segment)
                continue
            }
            if decoded.count == 2, kept.popLast() == nil { throw .aboveBasePath }
            if isLast { kept.append([]) }
        }
        return [0x2F] + Array(kept.joined(separator: [0x2F]))
    }

    /// Refuses a segment that some servers would take for a dot segment.
    ///
    /// These servers decode it before they split the path, decode twice, remove parameters (`..;x`), stop at a NUL, or read
    /// overlong UTF-8.
    private static func checkHidden(_ segment: ArraySlice<UInt8>) throws(Refusal) {
        guard segment.contains(where: { $0 == 0x25 || $0 == 0x3B }) else { return }
        let decoded = decodingOverlong(decodingFully(segment))
        if decoded.contains(0) { throw .nul }
        for piece in decoded.split(whereSeparator: { $0 == 0x2F || $0 == 0x5C }) {
            // `;`, `?` and `#` end the name; some servers drop white space and control characters at its end.
            var name = piece.prefix { $0 != 0x3B && $0 != 0x3F && $0 != 0x23 }
            while let last = name.last, last <= 0x20 { name.removeLast() }
            if name == [0x2E] || name == [0x2E, 0x2E] { throw .hiddenDotSegment }
        }
    }

    /// The segment with its escapes decoded, including those that this reveals, in one pass.
    private static func decodingFully(_ segment: ArraySlice<UInt8>) -> [UInt8] {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(segment.count)
        for byte in segment {
            decoded.append(byte)
            while decoded.count >= 3, let byte = PercentEncoding.decode(decoded, at: decoded.count - 3) {
                decoded.removeLast(3)
                decoded.append(byte)
            }
        }
        return decoded
    }

    /// Replaces overlong UTF-8 sequences by their ASCII bytes: lax decoders read `%c0%ae` as a dot.
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

    /// The path, without query, under which responses to an upstream's target are stored.
    static func keyPath(of target: String) -> String {
        String(decoding: normalisingEscapes(Array(target.utf8.prefix { $0 != 0x3F })), as: UTF8.self)
    }

    /// The canonical spelling of targets that differ only in percent-escapes (RFC 3986 §6.2.2).
    ///
    /// `%2f` becomes `%2F`, and `%7E` becomes `~`, like any unreserved character. A query with a `%` that begins no escape keeps
    /// its escapes, because decoding `%2%35` would create another escape. That does not affect the path, by which writes
    /// invalidate.
    static func normalisingEscapes(_ target: [UInt8]) -> [UInt8] {
        guard target.contains(0x25) else { return target }
        let end = target.firstIndex(of: 0x3F) ?? target.count
        return normalisingEscapes(inPart: Array(target[..<end])) + normalisingEscapes(inPart: Array(target[end...]))
    }

    private static func normalisingEscapes(inPart target: [UInt8]) -> [UInt8] {
        let decodes = PercentEncoding.isWellFormed(target)
        return PercentEncoding.replacingEscapes(target) { byte, escape, result in
            if decodes, PercentEncoding.isUnreserved(byte) {
                result.append(byte)
            } else {
                for digit in escape { result.append(digit >= 0x61 ? digit - 0x20 : digit) }
            }
        }
    }

    /// The bytes of a piece of a target after decoding; invalid escapes stay.
    ///
    /// - Parameter test: which bytes are decoded; the escapes of others stay.
    package static func unescaped(_ piece: ArraySlice<UInt8>, where test: (UInt8) -> Bool = { _ in true }) -> [UInt8] {
        guard piece.contains(0x25) else { return Array(piece) }
        return PercentEncoding.replacingEscapes(Array(piece)) { byte, escape, result in
            if test(byte) { result.append(byte) } else { result += escape }
        }
    }
}
