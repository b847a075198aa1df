import HTTPSemantics
import HTTPServer
import Settings
import Upstream

/// The request fields and parameters that identify the principal (law 4).
///
/// Their names decide (`NameMeaning`), and the configuration, which can add and remove names, include every field not known to be
/// harmless, or list exactly those that count.
///
/// With `shared: true`, `Authorization` is not one of them. A response to a request with it is then stored only if the upstream
/// says that it is for everyone (`public`, `must-revalidate`, `s-maxage`: RFC 9111 §3.5), and is served whatever `Authorization`
/// the next request has. Other credentials separate principals in either case.
package struct PrincipalFields: Sendable, Equatable {
    /// The fields that count besides the names in the configuration.
    private enum Base: Sendable { case recognised, all, nothing }

    private let base: Base
    /// Lower-case names that always count, and that never count; parameters have a `?` before them.
    private let included: Set<String>
    private let excluded: Set<String>
    private let isShared: Bool

    /// - Parameter words: as in the configuration (`PrincipalWords`). Case does not matter.
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
        (self.included, self.excluded, self.isShared) = (included, excluded, isShared)
        base =
            words.contains { $0.lowercased() == PrincipalWords.all }
            ? .all : PrincipalWords.replaces(words) ? .nothing : .recognised
    }

    // MARK: What counts

    /// Why a field identifies the principal; nil if it does not.
    package func reason(forField name: [UInt8]) -> Reason? {
        if isSharedAuthorization(name) || Self.lists(name, in: excluded) { return nil }
        if Self.lists(name, in: included) { return .configured }
        switch (base, NameMeaning.ofField(name)) {
        case (.nothing, _), (_, .harmless), (.recognised, .unknown): return nil
        case (_, .credential(let word)): return .credential(word)
        case (_, .identity(let word)): return .identity(word)
        case (.all, .unknown): return .notKnownHarmless
        }
    }

    /// The same for a query or matrix parameter, whose name may be escaped.
    ///
    /// A parameter that does not count is an ordinary part of the URL.
    package func reason(forParameter name: some Collection<UInt8>) -> Reason? {
        let plain = TargetNormaliser.unescaped(Array(name)[...])
        let lowercased = "?" + String(decoding: FieldSyntax.lowercased(plain), as: UTF8.self)
        if excluded.contains(lowercased) { return nil }
        if included.contains(lowercased) { return .configured }
        if base != .nothing, case .credential(let word) = NameMeaning.ofParameter(plain) { return .credential(word) }
        return nil
    }

    /// Why a field or parameter identifies the principal.
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

    /// Whether a field is known not to identify a principal, so that it never distinguishes two clients.
    func isHarmless(field name: [UInt8]) -> Bool {
        NameMeaning.ofField(name) == .harmless || isSharedAuthorization(name) || Self.lists(name, in: excluded)
    }

    /// Whether the values of a request field must not be recorded.
    func isSecret(field name: [UInt8]) -> Bool {
        switch NameMeaning.ofField(name) {
        case .credential: true
        // An identity is not a secret.
        case .identity: false
        case .unknown, .harmless: Self.lists(name, in: included)
        }
    }

    private func isSharedAuthorization(_ name: [UInt8]) -> Bool {
        isShared && FieldSyntax.equalsIgnoringCase(name, "authorization".utf8)
    }

    /// Whether a list of the configuration, which is rarely given, contains the name of a field.
    private static func lists(_ name: [UInt8], in names: Set<String>) -> Bool {
        !names.isEmpty && names.contains(String(decoding: FieldSyntax.lowercased(name), as: UTF8.self))
    }

    // MARK: The principal

    /// A text that is equal for requests of the same principal, and for no others; nil for an anonymous request.
    ///
    /// It contains credentials: it goes into `PrincipalKey.digest(of:)` and nowhere else. Each part is written with its length,
    /// so that no choice of values can imitate another.
    func canonical(target: [UInt8], fields: Fields) -> [UInt8]? {
        var text: [UInt8] = []
        let counted = fields.lines.filter { reason(forField: $0.name) != nil }.map { ($0.lowercasedName, $0.value) }
        // In order of names; lines of one name stay in the order of arrival.
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
    private static let alwaysRedacted = ["proxy-authorization", "set-cookie"]
    private static let references = ["location", "content-location", "referer", "refresh"]

    /// The target with redacted values of the principal's parameters, for storage and logs.
    ///
    /// Two targets that become equal thereby belong to different principals, whose documents are separate anyway.
    func redacted(target: [UInt8]) -> [UInt8] { replacingValues(in: target) { _ in Self.mark } }

    /// The target with the values of the principal's parameters replaced.
    package func replacingValues(in target: [UInt8], by replacement: (ArraySlice<UInt8>) -> [UInt8]) -> [UInt8] {
        var (result, end): ([UInt8], Int) = ([], 0)
        for parameter in URLParameters(target) {
            guard let value = parameter.value, reason(forParameter: target[parameter.name]) != nil else { continue }
            result += target[end..<value.lowerBound]
            result += replacement(target[value])
            end = value.upperBound
        }
        return end == 0 ? target : result + target[end...]
    }

    /// Redacts a URL from elsewhere, including its user name and password.
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

    /// A response's fields with credentials and new cookies redacted, also in URLs (`Location`, `Link`, `Content-Location`,
    /// `Referer`, `Refresh`).
    func redacted(_ fields: Fields) -> Fields {
        Fields(
            fields.lines.map { line in
                let isSecret = Self.lists(line.name, in: included) || NameMeaning.isSecretField(line.name)
                if isSecret && !Self.lists(line.name, in: excluded) || Self.alwaysRedacted.contains(where: line.isNamed)
                {
                    return Field(name: line.name, value: Self.mark)
                }
                if Self.references.contains(where: line.isNamed) {
                    return Field(name: line.name, value: redacted(reference: line.value))
                }
                guard line.isNamed("link") else { return line }
                return Field(name: line.name, value: Self.replacingURLs(inLink: line.value, by: redacted(reference:)))
            }
        )
    }

    /// Replaces what is between `<` and `>` of each link in a `Link` field.
    package static func replacingURLs(inLink value: [UInt8], by replacement: ([UInt8]) -> [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var rest = value[...]
        while let open = rest.firstIndex(of: 0x3C), let close = rest[open...].firstIndex(of: 0x3E) {
            result += rest[...open]
            result += replacement(Array(rest[(open + 1)..<close]))
            rest = rest[close...]
        }
        return result + rest
    }
}

/// The parameters of a URL: after `;` in the path, in the query, where `;` separates as `&` does, and in the fragment.
package struct URLParameters: Sequence, IteratorProtocol {
    package struct Parameter {
        package var name: Range<Int>
        /// The text after the `=`; nil without one.
        package var value: Range<Int>?
    }

    private let url: [UInt8]
    private var position = 0
    private var part = Part.path

    private enum Part { case path, query, fragment }

    package init(_ url: [UInt8]) { self.url = url }

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

    /// Whether a parameter begins after this byte.
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

/// The credentials of a request, as a response may repeat them.
extension ProxyRequest {
    /// Whether a response repeats a credential that it was asked for with, in any spelling; then nothing of it may reach the disk
    /// (law 4).
    ///
    /// One with a content coding that cannot be decoded may do so.
    func isRepeated(in body: [UInt8], _ fields: @autoclosure () -> Fields = Fields()) -> Bool {
        let secrets = secrets
        guard !secrets.isEmpty else { return false }
        let (known, fields) = (KnownValues(secrets), fields())
        if upstream.storable(fields).lines.contains(where: { known.occurs(in: $0.value) }) { return true }
        guard fields.isContentCoded, !body.isEmpty else { return known.occurs(in: body) }
        return DecodedBody.decode(body, fields).map { known.occurs(in: $0) } ?? true
    }

    /// Of cookies only the longer ones are looked for: many say `lang=en-GB`.
    private static let shortestCookie = 16

    private var secrets: [[UInt8]] {
        var secrets: [[UInt8]] = []
        if let credential = upstream.settings.credential { secrets += Self.parts(of: credential.value.bytes) }
        for line in message.fields.lines where upstream.principal.isSecret(field: line.name) {
            // `X-Auth-Email` comes with a credential, and is none.
            if NameMeaning.ofField(line.name) != .unknown, !NameMeaning.isSecretItself(line.name) { continue }
            if line.isNamed("cookie") {
                for cookie in line.value.split(separator: 0x3B) {
                    let value = cookie.drop { $0 != 0x3D }.dropFirst()
                    if value.count >= Self.shortestCookie { secrets.append(Array(value)) }
                }
            } else {
                secrets += Self.parts(of: line.value)
            }
        }
        let url = Array(target.utf8)
        for parameter in URLParameters(url) where upstream.principal.reason(forParameter: url[parameter.name]) != nil {
            guard let value = parameter.value else { continue }
            secrets += [Array(url[value]), TargetNormaliser.unescaped(url[value])]
        }
        return secrets.filter { $0.count >= KnownValues.shortest }
    }

    /// A field's value, what follows its scheme, and what is encoded in that as `Basic` has it.
    private static func parts(of value: [UInt8]) -> [[UInt8]] {
        guard let space = value.firstIndex(of: 0x20) else { return [value] }
        let credential = Array(value[(space + 1)...])
        guard FieldSyntax.equalsIgnoringCase(value[..<space], "basic".utf8),
            let colon = Base64.decode(credential).firstIndex(of: 0x3A)
        else { return [credential] }
        let plain = Base64.decode(credential)
        let password = Array(plain[(colon + 1)...])
        // Some APIs take their key for the user name.
        return [credential, password.isEmpty ? Array(plain[..<colon]) : password]
    }
}
