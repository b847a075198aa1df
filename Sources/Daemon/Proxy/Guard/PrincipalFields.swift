import HTTPSemantics
import Settings

/// The request fields and parameters that say whose data is asked for (law 4).
///
/// Which these are, their names say (`NameMeaning`), and the configuration: it adds names and takes some away, has every field
/// count that is not known to be harmless, or lists all that count.
///
/// In the shared reading (`shared: true`) `Authorization` is none of them: there a response to a request with one is stored
/// only if the upstream itself says that it is for all (`public`, `must-revalidate`, `s-maxage`: RFC 9111 §3.5), and then it
/// is, whatever `Authorization` the next request has. Other credentials divide principals in both readings.
package struct PrincipalFields: Sendable, Equatable {
    /// What counts besides the names that the configuration gives.
    private enum Base: Sendable { case recognised, all, nothing }

    private let base: Base
    /// Lower-case names that count, and that do not, whatever they look like; parameters with a `?` before them.
    private let included: Set<String>
    private let excluded: Set<String>
    private let isShared: Bool

    /// - Parameters:
    ///   - words: as in the configuration (`PrincipalWords`). Case does not matter.
    ///   - isShared: whether RFC 9111 is read as a shared cache reads it.
    init(_ words: [String] = Configuration.Upstream.defaultPrincipal, isShared: Bool = false) {
        var (included, excluded): (Set<String>, Set<String>) = ([], [])
        for word in words.map({ $0.lowercased() }) where !PrincipalWords.isBase(word) {
            let name = PrincipalWords.name(of: word)
            if word.hasPrefix("-") {
                included.remove(name)
                excluded.insert(name)
            } else {
                excluded.remove(name)
                included.insert(name)
            }
        }
        self.included = included
        self.excluded = excluded
        self.isShared = isShared
        base =
            words.contains { $0.lowercased() == PrincipalWords.all }
            ? .all : PrincipalWords.replaces(words) ? .nothing : .recognised
    }

    // MARK: What counts

    /// Why a field says whose data is asked for; nil for one that does not.
    package func reason(forField name: some Collection<UInt8>) -> Reason? {
        if isShared || !excluded.isEmpty || !included.isEmpty {
            let lowercased = String(decoding: FieldSyntax.lowercased(name), as: UTF8.self)
            if isShared, lowercased == "authorization" { return nil }
            if excluded.contains(lowercased) { return nil }
            if included.contains(lowercased) { return .configured }
        }
        switch (base, NameMeaning.ofField(name)) {
        case (.nothing, _), (_, .harmless), (.recognised, .unknown): return nil
        case (_, .credential(let word)): return .credential(word)
        case (_, .identity(let word)): return .identity(word)
        case (.all, .unknown): return .notKnownHarmless
        }
    }

    /// The same for a query or matrix parameter, whose name may be escaped.
    ///
    /// One that does not count is a part of the URL like any other.
    package func reason(forParameter name: some Collection<UInt8>) -> Reason? {
        let plain = TargetNormaliser.unescaped(Array(name)[...])
        let lowercased = "?" + String(decoding: FieldSyntax.lowercased(plain), as: UTF8.self)
        if excluded.contains(lowercased) { return nil }
        if included.contains(lowercased) { return .configured }
        if base != .nothing, case .credential(let word) = NameMeaning.ofParameter(plain) { return .credential(word) }
        return nil
    }

    /// Why something says whose data is asked for.
    package enum Reason: Sendable, Equatable, CustomStringConvertible {
        case configured
        case credential(String)
        case identity(String)
        case notKnownHarmless

        package var description: String {
            switch self {
            case .configured: "named by principal:"
            case .credential(let word): "\"\(word)\" names a credential"
            case .identity(let word): "\"\(word)\" says on whose behalf"
            case .notKnownHarmless: "principal: all, and not known to be harmless"
            }
        }
    }

    /// Whether a field is known to say nothing of whose data is asked for, and so never distinguishes two clients.
    func isHarmless(field name: some Collection<UInt8>) -> Bool {
        let lowercased = String(decoding: FieldSyntax.lowercased(name), as: UTF8.self)
        if isShared, lowercased == "authorization" { return true }
        return excluded.contains(lowercased) || NameMeaning.ofField(name) == .harmless
    }

    /// Whether the values of a request field may not be noted down.
    func isSecret(field name: some Collection<UInt8>) -> Bool {
        switch NameMeaning.ofField(name) {
        case .credential: true
        // It says who, which anybody may know.
        case .identity: false
        case .unknown, .harmless: included.contains(String(decoding: FieldSyntax.lowercased(name), as: UTF8.self))
        }
    }

    // MARK: The principal

    /// A text that is equal for requests of the same principal, and for those alone; nil for a request without any of the
    /// fields and parameters, which is anonymous.
    ///
    /// It holds credentials: it goes into `PrincipalKey.digest(of:)` and nowhere else. Each part is written with its length,
    /// so that no choice of values can look like another.
    /// - Parameter target: path and query.
    func canonical(target: [UInt8], fields: Fields) -> [UInt8]? {
        var text: [UInt8] = []
        let counted = fields.lines.filter { reason(forField: $0.name) != nil }.map { ($0.lowercasedName, $0.value) }
        // In the order of their names; lines of one name in that of their arrival.
        for (_, line) in counted.enumerated().sorted(by: { ($0.element.0, $0.offset) < ($1.element.0, $1.offset) }) {
            Self.append(line.0, line.1, to: &text)
        }
        for parameter in URLParameters(target) where reason(forParameter: target[parameter.name]) != nil {
            let name = FieldSyntax.lowercased(TargetNormaliser.unescaped(target[parameter.name]))
            Self.append("?" + String(decoding: name, as: UTF8.self), Array(target[parameter.value ?? 0..<0]), to: &text)
        }
        return text.isEmpty ? nil : text
    }

    private static func append(_ name: String, _ value: [UInt8], to text: inout [UInt8]) {
        text += "\(name.utf8.count):\(name)\(value.count):".utf8
        text += value
    }
}

// MARK: What is stored and logged

extension PrincipalFields {
    private static let mark = Array("REDACTED".utf8)

    /// The target with the values of the principal's parameters replaced: what is stored and logged.
    ///
    /// Two targets that become equal by it belong to different principals, whose documents are kept apart anyway.
    func redacted(target: [UInt8]) -> [UInt8] {
        var (result, end): ([UInt8], Int) = ([], 0)
        for parameter in URLParameters(target) {
            guard let value = parameter.value, reason(forParameter: target[parameter.name]) != nil else { continue }
            result += target[end..<value.lowerBound]
            result += Self.mark
            end = value.upperBound
        }
        return end == 0 ? target : result + target[end...]
    }

    /// The same for a URL that somebody else wrote, whose user name and password go as well.
    func redacted(reference: [UInt8]) -> [UInt8] {
        let redacted = redacted(target: reference)
        guard let slashes = redacted.firstRange(of: [0x2F, 0x2F]),
            redacted[..<slashes.lowerBound].allSatisfy({ $0 == 0x3A || ($0 | 0x20) &- 0x61 < 26 || $0 == 0x2B })
        else { return redacted }
        let authority = redacted[slashes.upperBound...].prefix { $0 != 0x2F && $0 != 0x3F && $0 != 0x23 }
        guard let at = authority.lastIndex(of: 0x40) else { return redacted }
        return redacted[..<slashes.upperBound] + Self.mark + redacted[at...]
    }

    package func redacted(url: String) -> String {
        String(decoding: redacted(reference: Array(url.utf8)), as: UTF8.self)
    }

    /// A response's fields with the values of credentials and of new cookies replaced, and with the URLs in them redacted
    /// (`Location`, `Link`, `Content-Location`, `Referer`, `Refresh`).
    func redacted(_ fields: Fields) -> Fields {
        Fields(
            fields.lines.map { line in
                let name = line.lowercasedName
                let isSecret = included.contains(name) || NameMeaning.isSecretItself(line.name)
                if isSecret && !excluded.contains(name) || name == "proxy-authorization" || name == "set-cookie" {
                    return Field(name: line.name, value: Self.mark)
                }
                switch name {
                case "location", "content-location", "referer", "refresh":
                    return Field(name: line.name, value: redacted(reference: line.value))
                case "link": return Field(name: line.name, value: redacted(link: line.value))
                default: return line
                }
            }
        )
    }

    /// Redacts between `<` and `>` of each link.
    private func redacted(link value: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var rest = value[...]
        while let open = rest.firstIndex(of: 0x3C), let close = rest[open...].firstIndex(of: 0x3E) {
            result += rest[...open]
            result += redacted(reference: Array(rest[(open + 1)..<close]))
            rest = rest[close...]
        }
        return result + rest
    }
}

/// The parameters of a URL, wherever one may stand: behind `;` in the path, in the query, where `;` divides as `&` does, and
/// in the fragment.
package struct URLParameters: Sequence, IteratorProtocol {
    package struct Parameter {
        package var name: Range<Int>
        /// What follows the `=`; nil without one.
        package var value: Range<Int>?
    }

    private let url: [UInt8]
    private var position = 0
    private var part = Part.path

    private enum Part { case path, query, fragment }

    package init(_ url: [UInt8]) {
        self.url = url
    }

    package mutating func next() -> Parameter? {
        while position < url.count {
            let begins = isBeginning(url[position])
            position += 1
            guard begins else { continue }
            let start = position
            var end = start
            while end < url.count, !isEnd(url[end]) { end += 1 }
            position = end
            guard end > start else { continue }
            let equals = url[start..<end].firstIndex(of: 0x3D)
            return Parameter(name: start..<(equals ?? end), value: equals.map { ($0 + 1)..<end })
        }
        return nil
    }

    /// Whether a parameter begins behind this byte.
    private mutating func isBeginning(_ byte: UInt8) -> Bool {
        switch (byte, part) {
        case (0x23, .path), (0x23, .query): part = .fragment
        case (0x3F, .path): part = .query
        case (0x3B, _), (0x26, .query), (0x26, .fragment): break
        default: return false
        }
        return true
    }

    private func isEnd(_ byte: UInt8) -> Bool {
        switch part {
        case .path: byte == 0x3B || byte == 0x2F || byte == 0x3F || byte == 0x23
        case .query: byte == 0x26 || byte == 0x3B || byte == 0x23
        case .fragment: byte == 0x26 || byte == 0x3B
        }
    }
}
