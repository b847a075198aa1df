import Foundation
import HTTPSemantics
import Mapping
package import Proxy
import Settings

/// Replaces secrets in exchanges with placeholders: `REDACTED-1`, numbered by first appearance.
///
/// Secrets are the values of the fields and parameters that determine the principal, cookies, members declared `secret:` in
/// the config, and OAuth tokens. Once found, a value is replaced wherever it occurs. For one thread at a time.
package struct Redactor {
    private let upstream: ProxiedUpstream
    /// The number of each value; nil if all placeholders are alike, for comparisons.
    private var numbers: [[UInt8]: Int]?
    private var next: Int
    /// The values to search for in all bytes, each with its placeholder.
    private var known: [(value: [UInt8], placeholder: [UInt8])] = []
    /// The number of values learned.
    private(set) var learned = 0
    /// Names of members that look secret, with how often each was seen; see `suspicious`.
    package private(set) var suspects: [String: Int] = [:]

    static let mark = Array("REDACTED".utf8)
    /// Shorter values are not searched for elsewhere, because they would match by chance.
    private static let shortest = 8
    /// The maximum number of values to search for; beyond it, the oldest are dropped.
    private static let knownLimit = 2_000
    /// JSON members that are always secret (RFC 6749, OpenID Connect).
    private static let secretMembers: Set<String> = ["access_token", "refresh_token", "id_token"]
    private static let credentialEssences: Set<String> = ["bearer", "basic", "token", "digest", "negotiate", "apikey"]

    /// - Parameters:
    ///   - numbers: Whether placeholders are numbered; otherwise all are alike.
    ///   - first: The first number.
    package init(_ upstream: ProxiedUpstream, numbers: Bool, first: Int = 1) {
        self.upstream = upstream
        self.numbers = numbers ? [:] : nil
        next = first
        if let credential = upstream.settings.credential { learnField(Array(credential.value.bytes)) }
    }

    /// Redacts one exchange.
    ///
    /// - Parameter route: the path that selects the route of its response.
    package mutating func redact(_ exchange: inout WholeExchange, route: String) {
        exchange.target = String(decoding: redacted(url: Array(exchange.target.utf8)), as: UTF8.self)
        exchange.requestFields = exchange.requestFields.map { redacted(request: $0) }
        exchange.requestBody = redacted(requestBody: exchange.requestBody, exchange.requestFields)
        exchange.response.fields = redacted(response: exchange.response.fields)
        exchange.response.body = redactedResponseBody(of: exchange, route: route)
        guard !known.isEmpty else { return }
        exchange.target = String(decoding: replacingKnown(Array(exchange.target.utf8)), as: UTF8.self)
        exchange.requestFields = exchange.requestFields.map(replacingKnown)
        exchange.requestBody = replacingKnown(exchange.requestBody)
        exchange.response.fields = replacingKnown(exchange.response.fields)
        exchange.response.body = replacingKnown(exchange.response.body)
    }

    // MARK: Placeholders

    private mutating func placeholder(for value: [UInt8]) -> [UInt8] {
        // A placeholder stays: the client got it from a replay, or the recording is redacted again.
        if Self.isPlaceholder(value) { return numbers == nil ? Self.mark : value }
        guard numbers != nil else { return Self.mark }
        if let number = numbers?[value] { return Self.mark + Array("-\(number)".utf8) }
        numbers?[value] = next
        defer { next += 1 }
        return Self.mark + Array("-\(next)".utf8)
    }

    static func isPlaceholder(_ value: [UInt8]) -> Bool {
        guard value.starts(with: mark) else { return false }
        let rest = value.dropFirst(mark.count)
        return rest.isEmpty || rest.first == 0x2D && rest.count > 1 && rest.dropFirst().allSatisfy { $0 &- 0x30 < 10 }
    }

    /// Has a value replaced everywhere from now on; returns its placeholder.
    @discardableResult
    private mutating func learn(_ value: [UInt8]) -> [UInt8] {
        let placeholder = placeholder(for: value)
        guard value.count >= Self.shortest, !Self.isPlaceholder(value), !known.contains(where: { $0.value == value })
        else { return placeholder }
        var spellings = [value]
        if let text = String(validating: value, as: UTF8.self) {
            // As spelled in a URL, a form or a JSON string.
            let escaped = PercentEncoding.encode(text)
            let quoted = JSONText.string(text).bytes.dropFirst().dropLast()
            for spelling in [Array(escaped.utf8), Array(quoted), Array(text.replacing("/", with: "\\/").utf8)]
            where !spellings.contains(spelling) { spellings.append(spelling) }
        }
        learned += 1
        known += spellings.map { ($0, placeholder) }
        if known.count > Self.knownLimit { known.removeFirst(known.count - Self.knownLimit) }
        return placeholder
    }

    /// Replaces all values known so far.
    func replacingKnown(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        for (value, placeholder) in known.sorted(by: { $0.value.count > $1.value.count })
        where bytes.count >= value.count { bytes = Self.replacing(value, with: placeholder, in: bytes) }
        return bytes
    }

    private func replacingKnown(_ fields: Fields) -> Fields {
        Fields(fields.lines.map { Field(name: $0.name, value: replacingKnown($0.value)) })
    }

    static func replacing(_ value: [UInt8], with other: [UInt8], in bytes: [UInt8]) -> [UInt8] {
        var (result, start): ([UInt8], Int) = ([], 0)
        bytes.withUnsafeBytes { text in
            var position = 0
            while position + value.count <= text.count,
                let found = memchr(
                    text.baseAddress! + position,
                    Int32(value[0]),
                    text.count - value.count + 1 - position
                )
            {
                let place = text.baseAddress!.distance(to: UnsafeRawPointer(found))
                position = place + 1
                guard memcmp(found, value, value.count) == 0 else { continue }
                result += text[start..<place]
                result += other
                start = place + value.count
                position = start
            }
        }
        return start == 0 ? bytes : result + bytes[start...]
    }

    // MARK: Fields

    /// Redacts the value of a credential field, except for its scheme, which people may read.
    @discardableResult
    private mutating func learnField(_ value: [UInt8]) -> [UInt8] {
        guard let space = value.firstIndex(of: 0x20) else { return learn(value) }
        let scheme = String(decoding: value[..<space], as: UTF8.self).lowercased()
        guard Self.credentialEssences.contains(scheme) else { return learn(value) }
        let credential = Array(value[(space + 1)...])
        if scheme == "basic", let plain = Data(base64Encoded: Data(credential)),
            let colon = plain.firstIndex(of: 0x3A)
        {
            // Some APIs expect their key as the user name; short names are not searched for, long ones are.
            let password = Array(plain[(colon + 1)...])
            let placeholder = learn(credential)
            learn(password.isEmpty ? Array(plain[..<colon]) : password)
            return value[...space] + placeholder
        }
        return value[...space] + learn(credential)
    }

    private mutating func redacted(request fields: Fields) -> Fields {
        var result = Fields()
        for line in fields.lines {
            var line = line
            if line.isNamed("cookie") {
                line.value = redacted(cookies: line.value)
            } else if upstream.principal.hides(requestField: line.name) {
                line.value = learnField(line.value)
            } else if line.isNamed("referer") {
                line.value = redacted(url: line.value)
            }
            result.lines.append(line)
        }
        return result
    }

    private mutating func redacted(response fields: Fields) -> Fields {
        var result = Fields()
        for line in fields.lines {
            var line = line
            switch line.lowercasedName {
            case "set-cookie", "set-cookie2":
                let end = line.value.firstIndex(of: 0x3B) ?? line.value.count
                line.value = redacted(cookies: Array(line.value[..<end])) + line.value[end...]
            case "location", "content-location", "refresh": line.value = redacted(url: line.value)
            case "link": line.value = PrincipalFields.replacingURLs(inLink: line.value) { redacted(url: $0) }
            default: if upstream.principal.hides(responseField: line.name) { line.value = learnField(line.value) }
            }
            result.lines.append(line)
        }
        return result
    }

    private mutating func redacted(cookies value: [UInt8]) -> [UInt8] {
        var parts: [[UInt8]] = []
        for cookie in value.split(separator: 0x3B, omittingEmptySubsequences: false) {
            guard let equals = cookie.firstIndex(of: 0x3D) else {
                parts.append(Array(cookie))
                continue
            }
            parts.append(cookie[...equals] + learn(Array(cookie[(equals + 1)...])))
        }
        return Array(parts.joined(separator: [0x3B]))
    }

    /// A URL or target without the values of its secret parameters, and without user name and password.
    private mutating func redacted(url: [UInt8]) -> [UInt8] {
        let redacted = upstream.principal.replacingValues(in: url) { value in
            if value.isEmpty { return [] }
            let decoded = PercentEncoding.decode(String(decoding: value, as: UTF8.self)).map { Array($0.utf8) }
            return learn(decoded ?? Array(value))
        }
        guard let slashes = redacted.firstRange(of: [0x3A, 0x2F, 0x2F]) else { return redacted }
        let authority = redacted[slashes.upperBound...].prefix { $0 != 0x2F && $0 != 0x3F && $0 != 0x23 }
        guard let at = authority.lastIndex(of: 0x40) else { return redacted }
        let user = Array(redacted[slashes.upperBound..<at])
        if let colon = user.firstIndex(of: 0x3A) { learn(Array(user[(colon + 1)...])) }
        return redacted[..<slashes.upperBound] + learn(user) + redacted[at...]
    }

    // MARK: Bodies

    private mutating func redacted(requestBody body: [UInt8], _ fields: Fields?) -> [UInt8] {
        guard !body.isEmpty else { return body }
        let type = fields?.text("content-type")?.lowercased() ?? ""
        if type.hasPrefix("application/x-www-form-urlencoded") {
            return Array(redacted(url: [0x3F] + body).dropFirst())
        }
        guard let outline = JSONOutline(body) else { return body }
        let declared = Set(
            upstream.rules.settings.models.flatMap(\.secret).compactMap { $0.split(separator: ".").last }
        )
        let secrets = outline.members.filter { member in
            declared.contains(Substring(member.name)) || Self.secretMembers.contains(member.name)
                || upstream.principal.reason(forParameter: Array(member.name.utf8)) != nil
        }
        return replacing(secrets.map(\.range), in: body)
    }

    private mutating func redactedResponseBody(of exchange: WholeExchange, route: String) -> [UInt8] {
        let body = exchange.response.body
        guard let first = body.first(where: { $0 != 0x20 && $0 != 0x0A && $0 != 0x0D && $0 != 0x09 }),
            first == 0x7B || first == 0x5B, let outline = JSONOutline(body)
        else { return body }
        let subject = RouteSubject(
            method: exchange.method,
            path: route,
            query: ProxiedUpstream.query(ofURL: exchange.target),
            status: exchange.response.status,
            contentType: ProxiedUpstream.mediaType(exchange.response.fields)
        )
        var places: [Range<Int>] = []
        if let match = upstream.rules.body(subject) {
            let context = MappingContext(url: exchange.target, captures: match.captures, bound: match.bound)
            places = Normaliser(models: upstream.rules.models).secretPlaces(in: body, as: match.rule, in: context)
        }
        for member in outline.members where member.kind == .string {
            if Self.secretMembers.contains(member.name) {
                places.append(member.range)
            } else if PrincipalFields.isSecret(name: member.name), member.range.count >= 2 + Self.shortest,
                !places.contains(member.range), suspects.count < 1_000,
                !known.contains(where: { $0.value.elementsEqual(body[member.range].dropFirst().dropLast()) })
            {
                suspects[member.name, default: 0] += 1
            }
        }
        return replacing(places, in: body)
    }

    /// Replaces values with placeholders, as JSON strings.
    private mutating func replacing(_ places: [Range<Int>], in body: [UInt8]) -> [UInt8] {
        var (result, end): ([UInt8], Int) = ([], 0)
        for place in places.sorted(by: { $0.lowerBound < $1.lowerBound }) where place.lowerBound >= end {
            let value = Array(body[place])
            if value == Array("null".utf8) { continue }
            let text = (try? JSONDecoder().decode(String.self, from: Data(value))).map { Array($0.utf8) }
            result += body[end..<place.lowerBound] + [0x22] + learn(text ?? value) + [0x22]
            end = place.upperBound
        }
        return end == 0 ? body : result + body[end...]
    }
}
