/// One header or trailer field line, in the spelling in which it arrived (RFC 9110 §5).
package struct Field: Sendable, Equatable {
    package var name: [UInt8]
    /// The field value without leading and trailing white space; arbitrary bytes, including obs-text.
    package var value: [UInt8]

    package init(name: [UInt8], value: [UInt8]) { (self.name, self.value) = (name, value) }
    package init(_ name: String, _ value: String) { self.init(name, Array(value.utf8)) }
    package init(_ name: String, _ value: [UInt8]) { self.init(name: Array(name.utf8), value: value) }

    /// Whether the field has this name; `lowercased` must be in lower case.
    package func isNamed(_ lowercased: String) -> Bool { FieldSyntax.equalsIgnoringCase(name, lowercased.utf8) }

    /// The value as text; bytes that are not UTF-8 are replaced, so it must not be passed on.
    package var text: String { String(decoding: value, as: UTF8.self) }

    /// The name in lower case, for comparison and as a key.
    package var lowercasedName: String { String(decoding: name.map { asciiLowercased($0) }, as: UTF8.self) }
}

/// The field lines of one message, in order; names to look for are given in lower case.
///
/// This value type serves everything off the hot path; the hit path reads fields as spans of the connection's buffer.
package struct Fields: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    package var lines: [Field]

    package init(_ lines: [Field] = []) { self.lines = lines }

    package init(dictionaryLiteral lines: (String, String)...) {
        self.lines = lines.map { Field($0.0, $0.1) }
    }

    /// The value of the first line of this name.
    package subscript(first name: String) -> [UInt8]? { lines.first { $0.isNamed(name) }?.value }

    package func text(_ name: String) -> String? { lines.first { $0.isNamed(name) }?.text }

    package func all(_ name: String) -> [[UInt8]] {
        var values: [[UInt8]] = []
        for line in lines where line.isNamed(name) { values.append(line.value) }
        return values
    }

    /// All lines of this name joined by a comma and a space (RFC 9110 §5.3); nil if there are none.
    package func combined(_ name: String) -> String? {
        combinedBytes(name).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The same as bytes.
    package func combinedBytes(_ name: String) -> [UInt8]? {
        let values = all(name)
        return values.isEmpty ? nil : Array(values.joined(separator: [0x2C, 0x20]))
    }

    package func contains(_ name: String) -> Bool { lines.contains { $0.isNamed(name) } }
    package mutating func append(_ name: String, _ value: String) { lines.append(Field(name, value)) }
    package mutating func append(_ name: String, _ value: [UInt8]) { lines.append(Field(name, value)) }

    /// Adds a member to a field that is a list, and makes its lines one.
    package mutating func append(member: [UInt8], to name: String) {
        let known = all(name.lowercased()).filter { !$0.isEmpty }
        remove(name.lowercased())
        append(name, Array((known + [member]).joined(separator: [0x2C, 0x20])))
    }

    /// Replaces all lines of this name, in any case, with one line.
    package mutating func set(_ name: String, _ value: String) {
        remove(name.lowercased())
        append(name, value)
    }

    package mutating func remove(_ name: String) { lines.removeAll { $0.isNamed(name) } }
}

/// The byte, with `A`–`Z` converted to `a`–`z`.
@inlinable
public func asciiLowercased(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }

/// Removes the fields that concern one connection only (RFC 9110 §7.6.1).
extension Fields {
    /// Fields that are hop-by-hop whether or not `Connection` names them, in lower case.
    private static let hopByHop = [
        "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
        // For the next proxy only (RFC 9111 §3.1).
        "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
    ]

    /// Fields that stay even if `Connection` names them.
    ///
    /// `Cache-Control` is never a connection option (RFC 9110 §7.6.1). If a sender could have these fields dropped, it could
    /// change what may be stored or where a request goes.
    private static let protected = ["cache-control", "host"]

    /// Whether a field is hop-by-hop whether or not `Connection` names it.
    package static func isHopByHop(_ name: [UInt8]) -> Bool {
        hopByHop.contains { FieldSyntax.equalsIgnoringCase(name, $0.utf8) }
    }

    /// The fields that `Connection` makes hop-by-hop, in lower case.
    package var namedByConnection: [String] {
        let members = all("connection").flatMap { FieldSyntax.members($0) }
        return members.map { String(decoding: FieldSyntax.lowercased($0), as: UTF8.self) }
            .filter { !Self.protected.contains($0) }
    }

    /// The fields without hop-by-hop ones and those that `Connection` names.
    package func withoutHopByHop() -> Fields {
        let dropped = Self.hopByHop + namedByConnection
        return Fields(lines.filter { line in !dropped.contains { line.isNamed($0) } })
    }
}
