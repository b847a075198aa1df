import Basics

/// The meaning of a value by the name of its request field or query parameter.
///
/// The table is documented in docs/http-reference.md; both must be changed together.
package enum NameMeaning: Sendable, Equatable {
    /// The value does not depend on the principal.
    case harmless
    case unknown
    /// The value says on whose behalf the request is made, and is not a secret: a user, an account, a tenant.
    case identity(word: String)
    case credential(word: String)

    /// The meaning of a request field's name, in any case.
    package static func ofField(_ name: [UInt8]) -> NameMeaning {
        remembered(name, in: fields) {
            let whole = String(decoding: FieldSyntax.lowercased(name), as: UTF8.self)
            if Names.identities.contains(whole) { return .identity(word: whole) }
            if Names.credentials.contains(whole) { return .credential(word: whole) }
            if Names.harmless.contains(whole) || Names.neverSent.contains(where: { whole.hasPrefix($0) }) {
                return .harmless
            }
            let found = find(in: name, isField: true)
            if found == .unknown, Names.harmlessPrefixes.contains(where: { whole.hasPrefix($0) }) { return .harmless }
            return found
        }
    }

    /// The meaning of a query parameter's name, with escapes decoded.
    ///
    /// It is never harmless, because a parameter that is not a credential is a part of the URL. See also `WeighedName`.
    package static func ofParameter(_ name: [UInt8]) -> NameMeaning {
        remembered(name, in: parameters) {
            let whole = String(decoding: FieldSyntax.lowercased(name), as: UTF8.self)
            if Names.credentialParameters.contains(whole) { return .credential(word: whole) }
            let found = find(in: name, isField: false)
            return if case .credential = found { found } else { .unknown }
        }
    }

    // Every miss asks for all of its fields, and analysing a name takes microseconds.
    private typealias KnownNames = Memo<[UInt8], NameMeaning>
    private static let (fields, parameters) = (KnownNames(limit: 4_096), KnownNames(limit: 4_096))
    private static let responseFields = KnownNames(limit: 4_096)

    /// Clients choose the names, so long ones are not remembered.
    private static func remembered(_ name: [UInt8], in known: KnownNames, _ read: () -> NameMeaning) -> NameMeaning {
        name.count <= 64 ? known.value(for: name, read) : read()
    }

    /// Whether a value of this name is a credential itself, by the last word, and not a fact about one.
    ///
    /// `X-OAuth-Scopes` and `X-Auth-Email` are none, and a signature only serves to be verified.
    package static func isSecretItself(_ name: [UInt8]) -> Bool {
        let whole = String(decoding: FieldSyntax.lowercased(name), as: UTF8.self)
        if Names.credentials.contains(whole) || Names.credentialParameters.contains(whole) { return true }
        return [Words.separated(name), Words.divided(name)].contains { words in
            guard let last = words.last, !Names.signatures.contains(last),
                case .credential = meaning(of: last, after: words.dropLast().last, before: nil)
            else { return false }
            return true
        }
    }

    /// The same for the name of a response field, remembered as that of a request field is.
    package static func isSecretField(_ name: [UInt8]) -> Bool {
        remembered(name, in: responseFields) {
            // `Access-Control-Allow-Credentials` only permits some.
            FieldSyntax.equalsIgnoringCase(name.prefix(15), "access-control-".utf8) || !isSecretItself(name)
                ? .harmless : .credential(word: "")
        } != .harmless
    }

    /// Whether a parameter of `Authorization` is a secret, or a proof made with one.
    static func isSecret(authorizationParameter name: [UInt8]) -> Bool {
        isSecretItself(name) || Words.separated(name).last.map { Names.proofs.contains($0) } == true
    }

    /// Whether the value of a field protects a session against forged requests.
    package static func isForgeryToken(field name: [UInt8]) -> Bool {
        !Names.forgeryWords.isDisjoint(with: Words.separated(name) + Words.divided(name))
    }

    /// Finds the meaning by the words of a name, both as separated and as divided by capitals.
    private static func find(in name: [UInt8], isField: Bool) -> NameMeaning {
        let (whole, divided) = (Words.separated(name), Words.divided(name))
        let spellings = whole == divided ? [whole] : [whole, divided]
        var result = NameMeaning.unknown
        for words in spellings {
            for (index, word) in words.enumerated() {
                let (previous, next) = (words.prefix(index).last, words.dropFirst(index + 1).first)
                switch meaning(of: word, after: previous, before: next) {
                case .credential(let word): return .credential(word: word)
                case .identity(let word) where isField: result = .identity(word: word)
                case .harmless where result == .unknown: result = .harmless
                default: break
                }
            }
        }
        return result
    }

    private static func meaning(of word: String, after previous: String?, before next: String?) -> NameMeaning {
        // The word before decides, as in `page_token` and `Idempotency-Key`.
        if word == "token" || word == "key" {
            let markers = word == "token" ? Names.tokenMarkers : Names.keyMarkers
            return previous.map { markers.contains($0) } == true ? .harmless : .credential(word: word)
        }
        if Names.credentialWords.contains(word) { return .credential(word: word) }
        // As `sessionid` is.
        if word == "id", previous == "session" { return .credential(word: "session") }
        if word == "user", next == "agent" { return .harmless }
        if Names.identityWords.contains(word) { return .identity(word: word) }
        if Names.harmlessWords.contains(word) { return .harmless }
        if word == "id" || word == "uid", let previous, Names.harmlessIDs.contains(previous) { return .harmless }
        // What only qualifies a person, as in `X-Customer-Type`, names none.
        if Names.persons.contains(word), next == nil { return .identity(word: word) }
        if let previous, Names.identifiers(of: previous).contains(word) { return .identity(word: previous) }
        for ending in Names.identifiersOfPersons where word.hasSuffix(ending) {
            let owner = String(word.dropLast(ending.count))
            if Names.identifiers(of: owner).contains(ending) { return .identity(word: word) }
        }
        for ending in Names.credentialEndings where word.count > ending.count && word.hasSuffix(ending) {
            let rest = word.dropLast(ending.count)
            // Many English words end with "key".
            if ending == "key", !Names.ownersOfKeys.contains(where: { rest.hasSuffix($0) }) { continue }
            if ending == "token", Names.tokenMarkers.contains(where: { rest.hasSuffix($0) }) { return .harmless }
            return .credential(word: ending)
        }
        return .unknown
    }
}

/// The words of a name, in lower case.
enum Words {
    /// The words separated by characters other than letters and digits.
    static func separated(_ name: [UInt8]) -> [String] {
        name.split { !FieldSyntax.isLetter($0) && !FieldSyntax.isDigit($0) }
            .map { String(decoding: FieldSyntax.lowercased($0), as: UTF8.self) }
    }

    /// The same, also divided before capitals that begin a word, and between letters and digits.
    static func divided(_ name: [UInt8]) -> [String] {
        var words: [[UInt8]] = [[]]
        for (index, byte) in name.enumerated() {
            let previous = index > 0 ? name[index - 1] : 0
            let next = index + 1 < name.count ? name[index + 1] : 0
            let begins =
                isUpper(byte) && (isLower(previous) || isUpper(previous) && isLower(next))
                || FieldSyntax.isDigit(byte) != FieldSyntax.isDigit(previous)
            let isLetter = FieldSyntax.isLetter(byte)
            if begins || !isLetter && !FieldSyntax.isDigit(byte) { words.append([]) }
            if isLetter { words[words.count - 1].append(asciiLowercased(byte)) }
        }
        return words.filter { !$0.isEmpty }.map { String(decoding: $0, as: UTF8.self) }
    }

    private static func isUpper(_ byte: UInt8) -> Bool { byte &- 0x41 < 26 }
    private static func isLower(_ byte: UInt8) -> Bool { byte &- 0x61 < 26 }
}

/// The table of names and words, in lower case.
private enum Names {
    /// Words that mark a name as that of a credential, besides `key` and `token`.
    static let credentialWords: Set<String> = [
        "secret", "secrets", "auth", "oauth", "authorization", "authentication", "session", "sessionid", "sessid",
        "signature", "sig", "sign", "hmac", "password", "passwd", "pass", "pwd", "passphrase", "passcode", "credential",
        "credentials", "cookie", "jwt", "bearer", "otp", "totp", "assertion", "apikey", "appid", "impersonate",
        "impersonation", "verifier",
    ]

    /// Parameters that are credentials, although their words do not show it: those of sessions, CAS, SAML and WS-Federation.
    static let credentialParameters: Set<String> = [
        "sid", "connect.sid", "pgt", "pgtid", "pgtiou", "samlresponse", "samlart", "wresult",
    ]

    /// Such words at the end of compounds, as in `accesstoken`.
    static let credentialEndings = [
        "token", "secret", "password", "passwd", "signature", "credential", "credentials", "session", "sessionid",
        "sessid", "auth", "apikey", "key",
    ]

    /// Words before `key` that make such a compound a credential.
    static let ownersOfKeys = [
        "api", "access", "auth", "private", "secret", "subscription", "app", "application", "client", "user", "account",
        "license", "licence", "service", "security", "server", "master", "admin", "write", "read", "shared", "deploy",
        "project", "signing", "session", "consumer", "developer", "dev", "integration", "rest", "public", "pass",
    ]

    /// Words of request fields that say on whose behalf the request is made, wherever they stand in a name.
    static let identityWords: Set<String> = [
        "user", "username", "userid", "userinfo", "account", "accountid", "tenant", "tenantid", "sudo", "role",
        "behalf", "org", "orgid", "organization", "organisation", "workspace", "cert", "certificate", "clientcert",
        "login", "principal", "consumer", "email", "msisdn", "dn",
    ]

    /// Words for people and organisations, which count at the end of a name or before an identifier.
    static let persons: Set<String> = [
        "member", "customer", "person", "employee", "subscriber", "patient", "student", "company", "merchant",
        "partner", "team", "owner", "actor", "viewer", "visitor", "guest", "player", "buyer", "shopper", "identity",
        "subject",
    ]

    /// Words that count before an id only, because on their own they name a kind or a form.
    static let ownersOfIDs: Set<String> = [
        "client", "profile", "contact", "project", "site", "store", "shop", "seller", "vendor", "business", "school",
        "agency",
    ]

    static let ids: Set<String> = ["id", "uid", "uuid", "guid"]
    static let identifiersOfPersons: Set<String> = ids.union(["name", "number", "code"])

    /// The words that make an identifier of a person or an organisation when they follow this one.
    static func identifiers(of word: String) -> Set<String> {
        persons.contains(word) ? identifiersOfPersons : ownersOfIDs.contains(word) ? ids : []
    }

    /// Words before `token` that make it a position in a list, or a guard against forged requests.
    static let tokenMarkers: Set<String> = [
        "page", "next", "previous", "prev", "continuation", "continue", "cursor", "pagination", "sync", "resume",
        "skip", "delta", "csrf", "xsrf", "middleware",
    ]

    /// Words before `key` that make it the name of something.
    static let keyMarkers: Set<String> = [
        "idempotency", "idempotence", "cache", "surrogate", "sort", "order", "partition", "primary", "foreign", "start",
        "end",
    ]

    /// Words for proofs that a message is genuine.
    static let signatures: Set<String> = ["signature", "sig", "sign", "hmac"]

    /// Parameters of `Authorization` that prove the possession of a secret: those of Digest and Hawk, and signatures.
    static let proofs: Set<String> = signatures.union(["response", "mac"])

    static let forgeryWords: Set<String> = ["csrf", "xsrf", "csrftoken", "xsrftoken"]

    /// Words of fields for tracing and measuring.
    static let harmlessWords: Set<String> = [
        "trace", "tracing", "traceid", "traceparent", "tracestate", "span", "spanid", "correlation", "correlationid",
        "requestid", "telemetry", "timestamp", "retry", "useragent", "csrf", "xsrf", "idempotency",
    ]

    /// Words before `id` that make it the id of one request.
    static let harmlessIDs: Set<String> = [
        "request", "invocation", "transaction", "message", "attempt", "event", "call",
    ]

    /// Fields that are credentials, although their words do not show it.
    static let credentials: Set<String> = [
        "x-jfrog-art-api", "x-honeycomb-team", "x-ms-client-principal", "x-amzn-oidc-data", "authentication-info",
        "proxy-authentication-info",
    ]

    /// Fields that say on whose behalf the request is made, although their words do not show it.
    static let identities: Set<String> = [
        "x-scope-orgid", "x-uid", "uid", "dropbox-api-select-admin", "dropbox-api-path-root", "x-shopify-shop-domain",
        "remote-name", "remote-groups", "x-remote-group", "x-authentik-uid", "x-authentik-name", "x-authentik-groups",
    ]

    /// Fields that do not depend on the principal, but on the connection, the representation, the client's program or a single
    /// request.
    static let harmless: Set<String> = [
        "host", "connection", "keep-alive", "proxy-connection", "proxy-authorization", "te", "trailer",
        "transfer-encoding", "upgrade", "expect", "via", "date", "forwarded", "origin", "referer", "user-agent",
        "cache-control", "pragma", "range", "prefer", "priority", "dnt", "save-data", "dpop", "sec-websocket-key",
        "upgrade-insecure-requests", "x-requested-with", "x-atlassian-token", "purpose", "x-purpose", "x-moz",
        "device-memory", "dpr", "downlink", "ect", "rtt", "viewport-width", "width", "time-zone", "x-method-override",
        "x-http-method", "baggage", "b3", "newrelic", "x-goog-api-client", "x-stripe-client-telemetry", "x-amz-date",
        "x-amz-content-sha256", "amz-sdk-request", "x-request-start", "x-queue-start",
    ]

    /// Prefixes of fields that never go upstream.
    static let neverSent = ["x-forwarded-", "x-http-method-", "larder-", "sec-fetch-", "access-control-request-"]

    /// Prefixes of fields that are harmless unless their words have another meaning.
    static let harmlessPrefixes = [
        "accept", "content-", "if-", "sec-", "x-b3-", "ot-tracer-", "x-datadog-", "x-newrelic-", "x-instana-",
        "x-stainless-",
    ]
}
