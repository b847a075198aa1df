package import HTTPSemantics

/// The request fields that selected a response, with their values: the secondary key of RFC 9111 §4.1.
///
/// Its bytes name the variant in the store: equal selections have equal bytes.
package struct VarySelection: Sendable, Equatable {
    /// One selecting field; a nil value means that the request did not have it, which differs from an empty one.
    package struct Line: Sendable, Equatable {
        /// In lower case.
        package var name: String
        /// Normalised.
        package var value: [UInt8]?
    }

    /// Sorted by name.
    package private(set) var lines: [Line]

    /// The selection of a response without `Vary`.
    package static let none = VarySelection(lines: [])

    private init(lines: [Line]) {
        self.lines = lines
    }

    /// The selection of a request by the response's `Vary`; nil for `Vary: *`, which no request matches.
    /// - Parameters:
    ///   - ignored: Lower-case names that do not select: the cache key contains them (the principal's fields, whose values must
    ///     not be stored), Larder sets them itself, or the route ignores them.
    ///   - value: The request's lines of a field, joined by comma and space; nil if there are none.
    init?(_ vary: VaryField, ignoring ignored: Set<String> = [], value: (String) -> [UInt8]?) {
        guard case .fields(let names) = vary else { return nil }
        lines = names.filter { !ignored.contains($0) }.map { name in
            Line(name: name, value: value(name).map { FieldNormalisation.normalise($0, of: name) })
        }
    }

    package init?(_ vary: VaryField, ignoring ignored: Set<String> = [], request: Fields) {
        self.init(vary, ignoring: ignored) { name in request.combinedBytes(name) }
    }

    /// The selection without one of its fields.
    package func without(_ name: String) -> VarySelection {
        VarySelection(lines: lines.filter { $0.name != name })
    }

    /// Whether a new request selects the same response.
    /// - Parameter value: As for the initialiser.
    package func matches(_ value: (String) -> [UInt8]?) -> Bool {
        lines.allSatisfy { line in
            guard let stored = line.value else { return value(line.name) == nil }
            guard let new = value(line.name) else { return false }
            // Compared before normalising, because most values come from the same client in the same spelling.
            return new == stored || FieldNormalisation.normalise(new, of: line.name) == stored
        }
    }

    package func matches(_ request: Fields) -> Bool {
        matches { name in request.combinedBytes(name) }
    }

    /// The stored form: per line the name, 0, then 0 for absent or 1, a length in four bytes, and the value.
    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        for line in lines {
            bytes += Array(line.name.utf8)
            bytes.append(0)
            guard let value = line.value else {
                bytes.append(0)
                continue
            }
            bytes.append(1)
            withUnsafeBytes(of: UInt32(value.count).littleEndian) { bytes += $0 }
            bytes += value
        }
        return bytes
    }

    /// Reads the form written by `bytes`; nil if it is malformed.
    package init?(bytes: [UInt8]) {
        lines = []
        var rest = bytes[...]
        while !rest.isEmpty {
            guard let end = rest.firstIndex(of: 0), end + 1 < rest.endIndex else { return nil }
            let name = String(decoding: rest[..<end], as: UTF8.self)
            let isPresent = rest[end + 1] == 1
            rest = rest[(end + 2)...]
            guard isPresent else {
                lines.append(Line(name: name, value: nil))
                continue
            }
            guard rest.count >= 4 else { return nil }
            let count = rest.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
            guard rest.count >= 4 + count else { return nil }
            lines.append(Line(name: name, value: Array(rest.dropFirst(4).prefix(count))))
            rest = rest.dropFirst(4 + count)
        }
    }
}

extension Fields {
    /// All lines of this name joined by a comma and a space; `name` is in lower case, nil if there are none.
    package func combinedBytes(_ name: String) -> [UInt8]? {
        let values = lines.filter { $0.isNamed(name) }.map(\.value)
        return values.isEmpty ? nil : Array(values.joined(separator: [0x2C, 0x20]))
    }
}

/// For the hit path: compares a request's fields in place, without allocating while their spelling is nearly the same as
/// the first time.
extension VarySelection {
    /// Whether a request selects this response.
    package func matches(_ request: borrowing RequestHead) -> Bool {
        for line in lines {
            var found = -1
            var occurrences = 0
            for index in 0..<request.fieldCount
            where FieldSyntax.equalsIgnoringCase(request.field(at: index).name, line.name.utf8) {
                found = index
                occurrences += 1
            }
            guard let stored = line.value else {
                if occurrences > 0 { return false }
                continue
            }
            if occurrences == 0 { return false }
            let isList = line.name.hasPrefix("accept")
            if occurrences == 1, Self.isSame(request.field(at: found).value, stored, isList: isList) { continue }
            return matchesNormalised(request)
        }
        return true
    }

    /// Whether a value equals the normalised one, ignoring white space next to commas and semicolons.
    private static func isSame(_ value: UnsafeRawBufferPointer, _ stored: [UInt8], isList: Bool) -> Bool {
        guard isList else { return FieldSyntax.isSame(value, stored) }
        var position = 0
        var index = 0
        while index < value.count {
            let byte = value[index]
            if FieldSyntax.isWhitespace(byte) {
                let end = value[index...].firstIndex { !FieldSyntax.isWhitespace($0) } ?? value.count
                let isAtSeparator =
                    index == 0 || end == value.count || isSeparator(value[index - 1]) || isSeparator(value[end])
                guard isAtSeparator else { return false }
                index = end
                continue
            }
            guard position < stored.count, stored[position] == byte else { return false }
            position += 1
            index += 1
        }
        return position == stored.count
    }

    private static func isSeparator(_ byte: UInt8) -> Bool { byte == 0x2C || byte == 0x3B }

    /// The slow path, through normalisation.
    private func matchesNormalised(_ request: borrowing RequestHead) -> Bool {
        // Closures may not capture a view of the connection's buffer, so the values are copied first.
        var values: [[UInt8]?] = []
        for line in lines { values.append(request.combined(line.name)) }
        var position = 0
        return matches { (_: String) -> [UInt8]? in
            defer { position += 1 }
            return values[position]
        }
    }
}

/// The request fields that select a response (RFC 9110 §12.5.5).
package enum VaryField: Sendable, Equatable {
    /// `*`, alone or within a list: no other request is known to match.
    case any
    /// Lower-case names, sorted, without duplicates; empty if the field is absent.
    case fields([String])

    init(lines: [[UInt8]]) {
        var names: Set<String> = []
        for member in lines.flatMap({ FieldSyntax.members($0) }) {
            if member.elementsEqual([0x2A]) {
                self = .any
                return
            }
            // A member that is not a field name cannot select any request field, so it counts as `*`.
            guard FieldSyntax.isToken(member) else {
                self = .any
                return
            }
            names.insert(String(decoding: FieldSyntax.lowercased(member), as: UTF8.self))
        }
        self = .fields(names.sorted())
    }

    package init(_ fields: Fields) { self.init(lines: fields.all("vary")) }
}

extension Fields {
    /// Adds names to `Vary`, merged into one line without duplicates; `*` stays alone.
    package mutating func vary(by names: [String]) {
        guard case .fields(let known) = VaryField(self) else { return }
        let new = names.filter { !known.contains($0.lowercased()) }
        guard !new.isEmpty else { return }
        let lines = all("vary").filter { !$0.isEmpty } + new.map { Array($0.utf8) }
        remove("vary")
        self.lines.append(Field(name: Array("Vary".utf8), value: Array(lines.joined(separator: [0x2C, 0x20]))))
    }
}
