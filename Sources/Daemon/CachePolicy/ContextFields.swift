package import HTTPSemantics

/// The request fields that select a representation: language, media type, API version.
package struct ContextFields: Sendable, Equatable {
    /// A configured name, prepared for comparison with bytes.
    package struct Matcher: Sendable, Equatable {
        enum Form: Sendable, Equatable { case exact, prefix, suffix }

        var form: Form
        /// Lower case, without the `*`.
        var bytes: [UInt8]

        /// - Parameter name: A field name, with `*` at its beginning or end for any text there. Case does not matter.
        init(_ name: String) {
            var bytes = FieldSyntax.lowercased(name.utf8)
            if bytes.first == 0x2A {
                form = .suffix
                bytes.removeFirst()
            } else if bytes.last == 0x2A {
                form = .prefix
                bytes.removeLast()
            } else {
                form = .exact
            }
            self.bytes = bytes
        }

        /// Whether a field name matches, in any case.
        ///
        /// `Sec-…` fields match by their full name only: browsers put their own versions there, which select nothing.
        @inline(__always)
        package func matches(_ name: UnsafeRawBufferPointer) -> Bool {
            guard name.count >= bytes.count else { return false }
            if form == .exact, name.count != bytes.count { return false }
            if form != .exact, name.count > 4, FieldSyntax.equalsIgnoringCase(.init(rebasing: name[..<4]), "sec-") {
                return false
            }
            let start = form == .suffix ? name.count - bytes.count : 0
            for index in 0..<bytes.count where asciiLowercased(name[start + index]) != bytes[index] { return false }
            return true
        }
    }

    /// The names if the config gives none.
    package static let usual = ["Accept", "Accept-Language", "*-Version", "Time-Zone"]

    package let matchers: [Matcher]

    /// - Parameter names: Field names, with `*` at the beginning or end for any text there.
    package init(_ names: [String] = Self.usual) { matchers = names.map { Matcher($0) } }

    /// Whether a field belongs to the context; the hit path calls this for every field that might.
    ///
    /// An `Accept` that allows any JSON counts as absent.
    @inline(__always)
    package func isRelevant(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool {
        for matcher in matchers where matcher.matches(name) {
            return !(FieldSyntax.equalsIgnoringCase(name, "accept") && Self.isPlainJSONAccept(value))
        }
        return false
    }

    /// The canonical text of a request's context; empty if the request asks for plain JSON only.
    ///
    /// Each line is `name=value`, sorted by name. Values of the `Accept` family are normalised as for `Vary`.
    package func canonical(_ fields: Fields) -> String {
        var values: [String: [[UInt8]]] = [:]
        for line in fields.lines {
            let isRelevant = line.name.withUnsafeBytes { name in matchers.contains { $0.matches(name) } }
            if isRelevant { values[line.lowercasedName, default: []].append(line.value) }
        }
        if let accept = values["accept"] {
            let joined = Array(accept.joined(separator: [0x2C]))
            if joined.withUnsafeBytes({ Self.isPlainJSONAccept($0) }) { values["accept"] = nil }
        }
        return values.sorted { $0.key < $1.key }.map { name, lines in
            let value = FieldNormalisation.normalise(Array(lines.joined(separator: [0x2C, 0x20])), of: name)
            return name + "=" + String(decoding: value, as: UTF8.self)
        }.joined(separator: "\n")
    }

    /// The part of a `Vary` selection that the context does not cover, one `name=value` per line.
    ///
    /// Fields that the request did not have are left out: lists and details seldom name the same ones. So are `OtherFields`, of
    /// which the upstream has not said that they select anything: what one principal's responses show is one truth.
    package func rest(of selection: VarySelection) -> String {
        selection.named.lines.compactMap { line in
            let isKnown = Array(line.name.utf8).withUnsafeBytes { name in matchers.contains { $0.matches(name) } }
            guard !isKnown, let value = line.value else { return nil }
            return line.name + "=" + String(decoding: value, as: UTF8.self)
        }.joined(separator: "\n")
    }

    /// Whether an `Accept` allows any JSON: absent, `*/*`, `application/json`, with or without a charset and weights, alone or
    /// together, and `text/plain` behind them, as some clients add by default.
    static func isPlainJSONAccept(_ value: UnsafeRawBufferPointer) -> Bool {
        var start = 0
        var isFirst = true
        for index in 0...value.count where index == value.count || value[index] == 0x2C {
            let member = trimmed(value, start..<index)
            start = index + 1
            if member.isEmpty { continue }
            guard isPlainRange(member, isFirst: isFirst) else { return false }
            isFirst = false
        }
        return true
    }

    /// Whether an `Accept` names JSON and allows no other type.
    package static func isJSONOnlyAccept(_ value: UnsafeRawBufferPointer) -> Bool {
        !value.isEmpty && !value.contains(0x2A) && isPlainJSONAccept(value)
    }

    private static func isPlainRange(_ member: UnsafeRawBufferPointer, isFirst: Bool) -> Bool {
        var end = 0
        while end < member.count, member[end] != 0x3B { end += 1 }
        let type = trimmed(member, 0..<end)
        let isPlain =
            FieldSyntax.equalsIgnoringCase(type, "*/*") || FieldSyntax.equalsIgnoringCase(type, "application/json")
            || FieldSyntax.equalsIgnoringCase(type, "application/*")
            || !isFirst && FieldSyntax.equalsIgnoringCase(type, "text/plain")
        guard isPlain, end < member.count else { return isPlain }
        return hasOnlyPlainParameters(.init(rebasing: member[(end + 1)...]))
    }

    private static func hasOnlyPlainParameters(_ parameters: UnsafeRawBufferPointer) -> Bool {
        var start = 0
        for index in 0...parameters.count where index == parameters.count || parameters[index] == 0x3B {
            let parameter = trimmed(parameters, start..<index)
            start = index + 1
            let isWeight =
                parameter.count >= 3 && asciiLowercased(parameter[0]) == 0x71 && parameter[1] == 0x3D
                // A weight of zero is a refusal.
                && (FieldNormalisation.weight(Array(parameter[2...])[...]) ?? 0) > 0
            guard parameter.isEmpty || isWeight || FieldSyntax.equalsIgnoringCase(parameter, "charset=utf-8")
            else { return false }
        }
        return true
    }

    private static func trimmed(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> UnsafeRawBufferPointer {
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, FieldSyntax.isWhitespace(bytes[start]) { start += 1 }
        while start < end, FieldSyntax.isWhitespace(bytes[end - 1]) { end -= 1 }
        return UnsafeRawBufferPointer(rebasing: bytes[start..<end])
    }
}
