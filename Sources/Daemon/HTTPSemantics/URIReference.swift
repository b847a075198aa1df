/// A URI reference split into its parts, and its resolution (RFC 3986 §3, §5); the parts keep their spelling.
package struct URIReference: Sendable, Equatable {
    /// In lower case.
    package var scheme: [UInt8]?
    /// With user information and port, if any.
    package var authority: [UInt8]?
    package var path: [UInt8]
    /// Without the `?`.
    package var query: [UInt8]?
    /// Without the `#`.
    package var fragment: [UInt8]?

    package init(_ bytes: some Collection<UInt8>) {
        var rest = Array(bytes)[...]
        if let colon = rest.firstIndex(where: { $0 == 0x3A || $0 == 0x2F || $0 == 0x3F || $0 == 0x23 }),
            rest[colon] == 0x3A, Self.isScheme(rest[..<colon])
        {
            scheme = FieldSyntax.lowercased(rest[..<colon])
            rest = rest[(colon + 1)...]
        }
        if let hash = rest.firstIndex(of: 0x23) {
            fragment = Array(rest[(hash + 1)...])
            rest = rest[..<hash]
        }
        if let mark = rest.firstIndex(of: 0x3F) {
            query = Array(rest[(mark + 1)...])
            rest = rest[..<mark]
        }
        if rest.starts(with: [0x2F, 0x2F]) {
            rest = rest.dropFirst(2)
            let end = rest.firstIndex(of: 0x2F) ?? rest.endIndex
            authority = Array(rest[..<end])
            rest = rest[end...]
        }
        path = Array(rest)
    }

    package init(_ text: String) { self.init(text.utf8) }

    private static func isScheme(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard let first = bytes.first, FieldSyntax.isLetter(first) else { return false }
        return bytes.allSatisfy { byte in
            FieldSyntax.isLetter(byte) || FieldSyntax.isDigit(byte) || byte == 0x2B || byte == 0x2D || byte == 0x2E
        }
    }

    /// Resolves the reference against a base (RFC 3986 §5.2.2).
    package func resolved(against base: URIReference) -> URIReference {
        var result = self
        result.scheme = scheme ?? base.scheme
        guard scheme == nil, authority == nil else {
            result.path = Self.removingDotSegments(path)
            return result
        }
        result.authority = base.authority
        guard !path.isEmpty else {
            (result.path, result.query) = (base.path, query ?? base.query)
            return result
        }
        let folder = base.path.lastIndex(of: 0x2F).map { Array(base.path[...$0]) } ?? [0x2F]
        result.path = Self.removingDotSegments(path.first == 0x2F ? path : folder + path)
        return result
    }

    /// Removes dot segments by RFC 3986 §5.2.4.
    static func removingDotSegments(_ path: [UInt8]) -> [UInt8] {
        guard path.contains(0x2E) else { return path }
        let isAbsolute = path.first == 0x2F
        var kept: [ArraySlice<UInt8>] = []
        let segments = path[(isAbsolute ? 1 : 0)...].split(separator: 0x2F, omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            if segment.elementsEqual([0x2E]) {
                if isLast { kept.append([]) }
            } else if segment.elementsEqual([0x2E, 0x2E]) {
                if !kept.isEmpty { kept.removeLast() }
                if isLast { kept.append([]) }
            } else {
                kept.append(segment)
            }
        }
        return (isAbsolute ? [0x2F] : []) + Array(kept.joined(separator: [0x2F]))
    }

    /// Path and query, as in a request's target.
    package var target: [UInt8] { (path.isEmpty ? [0x2F] : path) + (query.map { [0x3F] + $0 } ?? []) }

    /// The origin in canonical form: lower case, no default port; nil without scheme and authority.
    package var origin: String? {
        guard let scheme, let authority else { return nil }
        var host = FieldSyntax.lowercased(authority[...])
        if let at = host.lastIndex(of: 0x40) { host.removeFirst(at + 1) }
        let name = String(decoding: scheme, as: UTF8.self)
        let defaultPort = (name == "http" ? ":80" : name == "https" ? ":443" : "").utf8
        if !defaultPort.isEmpty, host.count > defaultPort.count,
            host.suffix(defaultPort.count).elementsEqual(defaultPort)
        {
            host.removeLast(defaultPort.count)
        } else if host.last == 0x3A {
            host.removeLast()
        }
        return "\(name)://" + String(decoding: host, as: UTF8.self)
    }
}

/// Percent-encoding (RFC 3986 §2.1).
package enum PercentEncoding {
    /// The text with escapes for all bytes except those that may stay; by default the unreserved ones stay.
    package static func encode(_ text: String, keeping mayStay: (UInt8) -> Bool = isUnreserved) -> String {
        guard !text.utf8.allSatisfy(mayStay) else { return text }
        return String(decoding: encode(bytes: text.utf8, keeping: mayStay), as: UTF8.self)
    }

    /// The same for bytes, which need not be UTF-8.
    package static func encode(bytes: some Sequence<UInt8>, keeping mayStay: (UInt8) -> Bool = isUnreserved)
        -> [UInt8]
    {
        bytes.flatMap { mayStay($0) ? [$0] : Array(escape($0).utf8) }
    }

    /// The text with every escape decoded; nil if one is broken, or the result is not UTF-8.
    package static func decode(_ text: String) -> String? {
        let bytes = Array(text.utf8)
        guard isWellFormed(bytes) else { return nil }
        return String(validating: replacingEscapes(bytes) { byte, _, result in result.append(byte) }, as: UTF8.self)
    }

    /// Whether every `%` begins an escape.
    package static func isWellFormed(_ bytes: [UInt8]) -> Bool {
        bytes.indices.allSatisfy { bytes[$0] != 0x25 || decode(bytes, at: $0) != nil }
    }

    /// Has each valid escape replaced: `append` is given the byte that it stands for, and adds to the result.
    package static func replacingEscapes(
        _ bytes: [UInt8],
        by append: (_ byte: UInt8, _ escape: ArraySlice<UInt8>, _ result: inout [UInt8]) -> Void
    ) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            if let byte = decode(bytes, at: index) {
                append(byte, bytes[index..<(index + 3)], &result)
                index += 3
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return result
    }

    /// The byte of the escape that begins here; nil if none does.
    package static func decode(_ bytes: [UInt8], at index: Int) -> UInt8? {
        guard bytes[index] == 0x25, index + 2 < bytes.count, let high = FieldSyntax.hexDigit(bytes[index + 1]),
            let low = FieldSyntax.hexDigit(bytes[index + 2])
        else { return nil }
        return high << 4 | low
    }

    /// The escape of a byte, such as `%2F`.
    package static func escape(_ byte: UInt8) -> String { "%" + byte.hexadecimal(width: 2).uppercased() }

    /// Whether the byte means the same with and without an escape (RFC 3986 §2.3).
    package static func isUnreserved(_ byte: UInt8) -> Bool {
        FieldSyntax.isLetter(byte) || FieldSyntax.isDigit(byte) || byte == 0x2D || byte == 0x2E || byte == 0x5F
            || byte == 0x7E
    }
}
