import Basics
import HTTPSemantics
import Mapping
import Proxy
import Settings

/// Which names mark a value as a secret, in requests and in responses.
///
/// For one thread at a time.
final class SecretNames {
    enum Side { case request, response }

    struct Meaning {
        /// Whether its own value is a secret.
        var isSecret = false
        /// Set if its value and the names beside it decide that.
        var weighed: WeighedName?
        /// What it says of the values beside it.
        var company: Company = []
        /// What it is in an object that names one value, as JSON Patch and lists of fields do.
        var part: Part?

        enum Part { case name, value }

        var matters: Bool { isSecret || weighed != nil }
    }

    private let principal: PrincipalFields
    /// The names of members that models declare `secret:`, without what precedes the last dot.
    private let declared: Set<String>
    private var known = BoundedTable<[UInt8], Meaning>(limit: 4_096)

    init(_ upstream: ProxiedUpstream) {
        principal = upstream.principal
        let paths = upstream.rules.settings.models.flatMap(\.secret)
        declared = Set(paths.compactMap { $0.split(separator: ".").last.map(String.init) })
    }

    /// Tokens of OAuth and OpenID Connect, in lower case and without separators (RFC 6749, 7521, 7591, 7636, 8628, 8693).
    private static let tokens: Set<String> = [
        "accesstoken", "refreshtoken", "idtoken", "idtokenhint", "devicecode", "codeverifier", "clientsecret",
        "clientassertion", "registrationaccesstoken", "subjecttoken", "actortoken", "oauthtokensecret",
    ]

    /// What the name of a member says.
    ///
    /// - Parameter usesDeclared: Whether `secret:` counts by name, because the place in the body is not known.
    func meaning(ofMember name: [UInt8], _ side: Side, usesDeclared: Bool) -> Meaning {
        var meaning = known.value(for: (side == .request ? [1] : [0]) + name) { readMeaning(ofMember: name, side) }
        if usesDeclared, !declared.isEmpty, declared.contains(String(decoding: name, as: UTF8.self)) {
            meaning.isSecret = true
        }
        return meaning
    }

    private func readMeaning(ofMember name: [UInt8], _ side: Side) -> Meaning {
        let plain = WeighedName.plain(name)
        var meaning = Meaning()
        let isFact = Self.facts.contains { plain.hasSuffix($0) }
        meaning.isSecret =
            Self.tokens.contains(plain)
            || side == .request
                && principal.reason(forParameter: name).map { $0 == .configured || !isFact } ?? false
        meaning.weighed = meaning.isSecret ? nil : WeighedName(name)
        meaning.company = Company(name)
        meaning.part = Self.namesOfNames.contains(plain) ? .name : Self.namesOfValues.contains(plain) ? .value : nil
        return meaning
    }

    private static let namesOfNames: Set<String> = [
        "name", "key", "path", "field", "fieldname", "header", "attribute", "property", "param", "parameter",
    ]
    private static let namesOfValues: Set<String> = ["value", "values", "val", "newvalue", "oldvalue", "stringvalue"]

    func isSecret(
        member name: [UInt8],
        _ value: @autoclosure () -> [UInt8],
        beside company: Company,
        _ side: Side,
        usesDeclared: Bool
    ) -> Bool {
        let meaning = meaning(ofMember: name, side, usesDeclared: usesDeclared)
        guard !meaning.isSecret, meaning.weighed != nil else { return meaning.isSecret }
        let company = side == .request ? company : company.subtracting(.body)
        return principal.reason(forParameter: name, value: value(), beside: company) != nil
    }

    /// Whether the value of a parameter is a secret, of a form or of a URL, where more names are parts of the principal.
    func isSecret(parameter name: [UInt8], _ value: [UInt8], beside company: Company, isForm: Bool) -> Bool {
        let company = isForm ? company.union(.body) : company
        return isSecret(member: name, value, beside: company, .request, usesDeclared: true)
            || !isForm && principal.reason(forParameter: name) != nil
    }

    /// How the names of facts about a credential end, such as `token_type`.
    private static let facts = [
        "type", "typehint", "expiresin", "expiresat", "expires", "expiry", "scope", "scopes", "method", "endpoint",
        "url", "uri", "count", "limit", "format", "algorithm", "version",
    ]
}
