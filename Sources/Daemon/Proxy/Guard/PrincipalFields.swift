package import HTTPSemantics
import Settings

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
        let lowercased = words.map { $0.lowercased() }
        let names = lowercased.filter { !PrincipalWords.isBase($0) }.map { (PrincipalWords.name(of: $0), $0) }
        // The last word about a name counts.
        let words = Dictionary(names) { $1 }
        excluded = Set(words.filter { $0.value.hasPrefix("-") }.keys)
        included = Set(words.keys).subtracting(excluded)
        self.isShared = isShared
        base =
            lowercased.contains(PrincipalWords.all)
            ? .all : PrincipalWords.replaces(lowercased) ? .nothing : .recognised
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

    /// The same for a parameter of a URL or a form, or a member of JSON, whose value and company may decide.
    ///
    /// - Parameter value: With escapes decoded.
    package func reason(
        forParameter name: some Collection<UInt8>,
        value: @autoclosure () -> [UInt8],
        beside company: @autoclosure () -> Company
    ) -> Reason? {
        if let reason = reason(forParameter: name) { return reason }
        let plain = TargetNormaliser.unescaped(Array(name)[...])
        guard base != .nothing, let weighed = WeighedName(plain), !Self.lists([0x3F] + plain, in: excluded),
            weighed.isCredential(value(), beside: company())
        else { return nil }
        return .credential(weighed.rawValue)
    }

    func parameters(in url: [UInt8]) -> [(parameter: URLParameters.Parameter, reason: Reason)] {
        let all = Array(URLParameters(url))
        return all.compactMap { parameter in
            reason(
                forParameter: url[parameter.name],
                value: TargetNormaliser.unescaped(url[parameter.value ?? 0..<0]),
                beside: Company(all.lazy.map { TargetNormaliser.unescaped(url[$0.name]) })
            ).map { (parameter, $0) }
        }
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

    func isSecret(responseField name: [UInt8]) -> Bool {
        FieldSyntax.equalsIgnoringCase(name, "proxy-authorization".utf8)
            || FieldSyntax.equalsIgnoringCase(name, "set-cookie".utf8)
            || (Self.lists(name, in: included) || NameMeaning.isSecretField(name)) && !Self.lists(name, in: excluded)
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
        for (parameter, _) in parameters(in: target) {
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
    static let mark = Redaction.mark

    /// The target with redacted values of the principal's parameters, for storage and logs.
    ///
    /// Two targets that become equal thereby belong to different principals, whose documents are separate anyway.
    func redacted(target: [UInt8]) -> [UInt8] { replacingValues(in: target) { _ in Self.mark } }

    func replacingValues(in target: [UInt8], by replacement: (ArraySlice<UInt8>) -> [UInt8]) -> [UInt8] {
        var (result, end): ([UInt8], Int) = ([], 0)
        for (parameter, _) in parameters(in: target) {
            guard let value = parameter.value else { continue }
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
}
