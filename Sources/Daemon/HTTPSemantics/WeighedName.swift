/// A name whose values are credentials only sometimes: the value decides, and the names beside it.
///
/// `code` is a credential of OAuth, and the code of a country is not. The cache key, the request key of replays, the recorder and the store's guard
/// ask this one table, so that all agree on what is a part of the URL. A value taken for a credential makes requests equal in
/// replays, so it must look like one. The table is documented in docs/http-reference.md; both must be changed together.
package enum WeighedName: String, Sendable {
    /// OAuth's authorization code.
    case code
    /// A ticket of CAS, the proof of a login.
    case ticket
    /// A personal identification number, or that of a card.
    case pin
    /// A member of a JSON Web Key that only a private one has (RFC 7518 §6).
    case privateKey

    /// The name of a parameter, with escapes decoded, or of a member, in any case; nil if its values do not matter.
    package init?(_ name: some Collection<UInt8>) {
        guard name.count <= 64 else { return nil }
        let plain = Self.plain(name)
        switch plain {
        case "code": self = .code
        case "ticket", "lt": self = .ticket
        case "d", "p", "q", "dp", "dq", "qi", "k": self = .privateKey
        case "cvv", "cvc", "cvv2", "cvc2": self = .pin
        default:
            // As in `new_pin` and `cardPin`.
            guard plain.hasSuffix("pin"), Words.divided(Array(name)).last == "pin" else { return nil }
            self = .pin
        }
    }

    /// In lower case and without separators, as `redirect_uri` and `redirectUri` mean the same.
    package static func plain(_ name: some Sequence<UInt8>) -> String {
        String(decoding: FieldSyntax.lowercased(name.filter { $0 != 0x5F && $0 != 0x2D }), as: UTF8.self)
    }

    /// Whether a value is a credential, with escapes decoded.
    package func isCredential(_ value: some Collection<UInt8>, beside company: Company) -> Bool {
        switch self {
        case .code: company.contains(.grant) || company.contains(.oauth) && Self.looksRandom(value)
        case .ticket: Self.isTicket(value, isPlain: !company.contains(.service))
        case .pin:
            (company.contains(.person) || company.contains(.body) && !company.contains(.place)) && Self.isNumber(value)
        case .privateKey: company.contains(.key) && Self.looksRandom(value)
        }
    }

    // MARK: Values

    /// Whether a text looks as if a machine had chosen it at random, as tokens are, and not like a word, a number or a date.
    ///
    /// What stands for a redacted credential counts as one.
    static func looksRandom(_ value: some Collection<UInt8>) -> Bool {
        if Redaction.isMark(value) { return true }
        guard value.count >= 8,
            value.allSatisfy({ FieldSyntax.isLetter($0) || FieldSyntax.isDigit($0) || separators.contains($0) })
        else { return false }
        let pieces = value.split { separators.contains($0) }
        return pieces.contains { isRandom($0, isShort: value.count < 16) }
    }

    private static let separators: Set<UInt8> = Set("-._~+/=:".utf8)

    /// - Parameter isShort: Whether it takes more to distinguish it from the codes that people use: `SUMMER2024`, `B07XJ8C8F5`.
    private static func isRandom(_ piece: some Collection<UInt8>, isShort: Bool) -> Bool {
        guard piece.count >= (isShort ? 8 : 6) else { return false }
        let letters = piece.count(where: FieldSyntax.isLetter)
        let capitals = piece.count { $0 &- 0x41 < 26 }
        if letters == 0 { return false }
        if letters < piece.count {
            let changes = zip(piece, piece.dropFirst()).count { FieldSyntax.isDigit($0) != FieldSyntax.isDigit($1) }
            return changes >= 2 && (!isShort || capitals < letters)
        }
        // Words of one case are shorter, and those with a capital each have few of them.
        if capitals <= 1 || capitals == letters { return piece.count > 15 }
        return piece.count >= 12 && capitals * 7 > piece.count * 2
    }

    /// Whether a text is a ticket such as `ST-1856339-aA5Yuvrxzpv8Tau1cYQ7`.
    ///
    /// - Parameter isPlain: Whether nothing else says so, as when a client is sent back with it.
    private static func isTicket(_ value: some Collection<UInt8>, isPlain: Bool) -> Bool {
        if isPlain ? Redaction.isMark(value) : looksRandom(value) { return true }
        let pieces = value.split(separator: 0x2D, maxSplits: 2)
        guard pieces.count == 3, kinds.contains(where: { pieces[0].elementsEqual($0.utf8) }),
            pieces[1].allSatisfy(FieldSyntax.isDigit)
        else { return false }
        return !isPlain || pieces[2].count >= 8
    }

    private static let kinds = ["ST", "PT", "PGT", "TGT", "LT", "PGTIOU"]

    /// Whether a text may be the number of a card or a person, or is another secret in its place.
    private static func isNumber(_ value: some Collection<UInt8>) -> Bool {
        (3...12).contains(value.count) && value.allSatisfy(FieldSyntax.isDigit) || looksRandom(value)
    }
}

/// What the names beside a value say about it.
package struct Company: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// OAuth's parameters that only a request for a token has (RFC 6749 §4.1.3, RFC 7636).
    static let grant = Company(rawValue: 1)
    /// OAuth's other parameters, some of which others use, too.
    static let oauth = Company(rawValue: 2)
    /// CAS's name for where a ticket is valid.
    static let service = Company(rawValue: 4)
    /// A person, an account or a card.
    static let person = Company(rawValue: 8)
    /// A place, whose `pin` may be a postal code.
    static let place = Company(rawValue: 16)
    /// The kind of a JSON Web Key.
    static let key = Company(rawValue: 32)
    /// The value is text in a request's body.
    package static let body = Company(rawValue: 64)

    /// What one name says, with escapes decoded.
    package init(_ name: some Collection<UInt8>) {
        self = name.count > 32 ? [] : Self.table[WeighedName.plain(name)] ?? []
    }

    /// What several names say together.
    package init(_ names: some Sequence<some Collection<UInt8>>) {
        self = names.reduce(into: []) { $0.formUnion(Company($1)) }
    }

    private static let table: [String: Company] = {
        let names: [(Company, String)] = [
            (.grant, "granttype codeverifier"), (.service, "service targetservice"), (.key, "kty"),
            (.oauth, "state sessionstate redirecturi clientid clientsecret responsetype codechallenge iss granttype"),
            (.oauth, "codeverifier idtoken"),
            (.person, "user username userid login email account accountid accountnumber accountno iban card"),
            (.person, "cardnumber cardno cardid pan phone phonenumber mobile msisdn customer customerid"),
            (.person, "customernumber member memberid"),
            (.place, "city state country countrycode district address street area locality region town zip zipcode"),
            (.place, "postcode postalcode pincode line1 addressline1 latitude longitude lat lon lng"),
        ]
        var table: [String: Company] = [:]
        for (company, names) in names {
            for name in names.split(separator: " ") { table[String(name), default: []].insert(company) }
        }
        return table
    }()
}

/// What stands in the place of a credential, in logs, in the store and in recordings: `REDACTED`, or `REDACTED-1`.
package enum Redaction {
    package static let mark = Array("REDACTED".utf8)

    /// Whether a text stands for a credential.
    package static func isMark(_ value: some Collection<UInt8>) -> Bool {
        guard value.starts(with: mark) else { return false }
        // The comparison of requests takes the hyphen away.
        let number = value.dropFirst(mark.count).drop { $0 == 0x2D }
        return number.allSatisfy(FieldSyntax.isDigit)
    }
}
