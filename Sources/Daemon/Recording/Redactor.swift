import Foundation
import HTTPSemantics
import Mapping
import Proxy
import Settings

/// Replaces secrets in exchanges with placeholders: `REDACTED-1`, numbered by first appearance.
///
/// Secrets are the values of the fields and parameters that determine the principal, cookies, members declared `secret:` in
/// the config, and OAuth tokens. Once found, a value is replaced wherever it occurs, in any spelling (`KnownValues`). For one
/// thread at a time.
final class Redactor {
    /// The number of each value; nil if all placeholders are alike, for comparisons.
    private var numbers: [[UInt8]: Int]?
    private var next: Int
    /// The values to search for in all bytes, oldest first, each with its placeholder.
    private var learnedValues: [(value: [UInt8], placeholder: [UInt8])] = []
    private var isLearned: Set<[UInt8]> = []
    private var known = KnownValues()
    private(set) var learned = 0
    private(set) var lookalikes = Lookalikes()
    private var names: [String: SecretNames] = [:]

    static let mark = Redaction.mark
    /// How a placeholder with a number begins.
    static let numbered = mark + [0x2D]
    /// The maximum number of values to search for; beyond it, the older half is dropped.
    private static let knownLimit = 2_000

    /// - Parameter numbers: Whether placeholders are numbered; otherwise all are alike.
    init(numbers: Bool, first: Int = 1) {
        self.numbers = numbers ? [:] : nil
        next = first
        if !numbers { known.insert(beginningOfPlaceholders: Self.numbered) }
    }

    /// Has the upstream's own credential replaced from now on, and those in fields that are in no exchange.
    func learnCredentials(of upstream: ProxiedUpstream, in fields: Fields = Fields()) {
        if let credential = upstream.settings.credential { credential.value.all.forEach { learn(field: $0) } }
        _ = redacted(fields, .request, upstream, names(of: upstream))
    }

    /// Redacts one exchange.
    ///
    /// - Parameter route: The path that selects the route of its response.
    /// - Throws: The reason why a body cannot be read; the exchange must then not be recorded.
    func redact(_ exchange: inout WholeExchange, of upstream: ProxiedUpstream, route: String) throws(UndecodableContent)
    {
        let request = ContentHead(exchange.requestFields ?? Fields())
        let response = ContentHead(exchange.response.fields)
        let names = names(of: upstream)
        let places = declaredPlaces(of: exchange, upstream, route)
        // What is known comes first each time: a name that is found within a value must not cut it in two.
        let target = replacingKnown(Array(exchange.target.utf8))
        exchange.target = String(decoding: redacted(url: target, names), as: UTF8.self)
        exchange.requestFields = exchange.requestFields.map { redacted($0, .request, upstream, names) }
        try CodedContent.change(&exchange.requestBody, request) { content, head in
            content = replacingKnown(content)
            redactNamed(&content, head, Look(names: names, side: .request))
        }
        exchange.response.fields = redacted(exchange.response.fields, .response, upstream, names)
        try CodedContent.change(&exchange.response.body, response) { content, head in
            content = replacingKnown(content)
            let declared = head.name == nil ? places(content) : nil
            if let declared, !declared.isEmpty { replace(declared, in: &content) }
            redactNamed(&content, head, Look(names: names, side: .response, usesDeclared: declared == nil))
        }
        exchange.target = String(decoding: replacingKnown(Array(exchange.target.utf8)), as: UTF8.self)
        exchange.requestFields = exchange.requestFields.map(replacingKnown)
        exchange.response.fields = replacingKnown(exchange.response.fields)
        lookalikes.record(path: exchange.target, isCounted: numbers != nil)
        try CodedContent.change(&exchange.requestBody, request, replaceKnownAndRecord)
        try CodedContent.change(&exchange.response.body, response, replaceKnownAndRecord)
    }

    /// Redacts the secrets in a target that its names show.
    func redacted(target: String, of upstream: ProxiedUpstream) -> String {
        guard target.utf8.contains(0x3D) else { return target }
        return String(decoding: redacted(url: Array(target.utf8), names(of: upstream)), as: UTF8.self)
    }

    private func names(of upstream: ProxiedUpstream) -> SecretNames {
        let known = names[upstream.name] ?? SecretNames(upstream)
        names[upstream.name] = known
        return known
    }

    private func replaceKnownAndRecord(_ content: inout [UInt8], _ head: ContentHead) {
        content = replacingKnown(content)
        if numbers != nil, !head.isOpaque { lookalikes.record(in: content) }
    }

    // MARK: Placeholders

    private func placeholder(for value: [UInt8]) -> [UInt8] {
        // A placeholder stays: the client got it from a replay, or the recording is redacted again.
        if Redaction.isMark(value) { return numbers == nil ? Self.mark : value }
        guard numbers != nil else { return Self.mark }
        if let number = numbers?[value] { return Self.mark + Array("-\(number)".utf8) }
        numbers?[value] = next
        defer { next += 1 }
        return Self.mark + Array("-\(next)".utf8)
    }

    /// Has a value replaced everywhere from now on; returns its placeholder.
    @discardableResult
    private func learn(_ value: [UInt8]) -> [UInt8] {
        if value.isEmpty { return [] }
        let placeholder = placeholder(for: value)
        guard !Redaction.isMark(value), !isLearned.contains(value), known.insert(value) != nil
        else { return placeholder }
        isLearned.insert(value)
        learnedValues.append((value, placeholder))
        learned += 1
        if learnedValues.count > Self.knownLimit {
            learnedValues.removeFirst(Self.knownLimit / 2)
            isLearned = Set(learnedValues.map(\.value))
            known = KnownValues()
            if numbers == nil { known.insert(beginningOfPlaceholders: Self.numbered) }
            for learned in learnedValues { known.insert(learned.value) }
        }
        return placeholder
    }

    /// Replaces all values known so far in bytes that have no content coding.
    func replacingKnown(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        CompressedText.change(&bytes) { content, _ in content = replacingKnown(content) }
        guard let result = known.replacing(in: bytes, by: placeholder(ofKnown:)) else { return bytes }
        return JSONOutline(result) == nil ? replacingKnown(inJSON: bytes) ?? result : result
    }

    /// The same in a message's body, whatever its codings; one that cannot be decoded is searched as it is.
    func replacingKnown(_ body: [UInt8], _ fields: Fields) -> [UInt8] {
        var changed = body
        do throws(UndecodableContent) {
            try CodedContent.change(&changed, ContentHead(fields)) { content, _ in content = replacingKnown(content) }
            return changed
        } catch { return replacingKnown(body) }
    }

    /// The same in lines, each of which is JSON.
    func replacingKnown(inLines bytes: [UInt8]) -> [UInt8] {
        // Most often there is nothing to replace, and no line is looked at alone.
        guard replacingKnown(bytes) != bytes else { return bytes }
        let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false).map { replacingKnown(Array($0)) }
        return Array(lines.joined(separator: [0x0A]))
    }

    private func placeholder(ofKnown number: Int) -> [UInt8] {
        // In a comparison, the first value stands for the placeholders with a number.
        if numbers == nil { return Self.mark }
        return learnedValues[number].placeholder
    }

    /// The same in JSON, where a value cannot replace a part of a number or of an escape; nil if it is none.
    private func replacingKnown(inJSON bytes: [UInt8]) -> [UInt8]? {
        guard let outline = JSONOutline(bytes) else { return nil }
        var edits: [Edit] = []
        for (_, value) in outline.values where value.kind == .number || value.kind == .string {
            let inner = Array(value.kind == .number ? value.bytes : value.bytes.dropFirst().dropLast())
            guard let replaced = known.replacing(in: inner, by: placeholder(ofKnown:)) else { continue }
            let string = [0x22] + replaced + [0x22]
            let isString = JSONOutline(string) != nil
            edits.append(Edit(range: value.bytes.indices, text: isString ? string : [0x22] + Self.mark + [0x22]))
        }
        return Edit.apply(edits, to: bytes)
    }

    private func replacingKnown(_ fields: Fields) -> Fields {
        Fields(fields.lines.map { Field(name: $0.name, value: replacingKnown($0.value)) })
    }

    // MARK: Fields

    private static let schemes: Set<String> = [
        "bearer", "basic", "token", "digest", "negotiate", "apikey", "api-key", "oauth", "dpop", "hmac", "bot", "ssws",
        "aws4-hmac-sha256", "hawk", "ntlm", "privatetoken", "splunk", "genie",
    ]

    /// Redacts the value of a credential field, except for its scheme, which people may read.
    @discardableResult
    private func learn(field value: [UInt8]) -> [UInt8] {
        let credential = FieldCredentials.withoutScheme(value)
        let scheme = value[..<credential.startIndex].split(whereSeparator: FieldSyntax.isWhitespace).first ?? []
        let hasScheme = Self.schemes.contains(String(decoding: FieldSyntax.lowercased(scheme), as: UTF8.self))
        let placeholder = learn(hasScheme ? Array(credential) : value)
        // The first word may be a scheme all the same.
        for secret in FieldCredentials.secrets(in: value) { learn(secret) }
        return hasScheme ? value[..<credential.startIndex] + placeholder : placeholder
    }

    private func redacted(_ fields: Fields, _ side: SecretNames.Side, _ upstream: ProxiedUpstream, _ names: SecretNames)
        -> Fields
    {
        var (result, isTokenNext) = (fields, false)
        var others: [Int] = []
        for index in fields.lines.indices {
            let (line, value) = (fields.lines[index], fields.lines[index].value)
            switch line.lowercasedName {
            case "cookie": result.lines[index].value = redacted(cookies: value)
            case "set-cookie", "set-cookie2":
                let cookie = redacted(cookies: Array(value.prefix { $0 != 0x3B }))
                result.lines[index].value = cookie + value.drop { $0 != 0x3B }
            case "sec-websocket-protocol":
                let tokens = FieldCredentials.tokens(inProtocols: value, isNext: &isTokenNext)
                let edits = tokens.map { Edit(range: $0, text: learn(Array(value[$0]))) }
                result.lines[index].value = Edit.apply(edits, to: value)
            case "location", "content-location", "refresh", "referer":
                result.lines[index].value = redacted(url: replacingKnown(value), names)
            case _ where upstream.principal.hides(line.name, side): result.lines[index].value = learn(field: value)
            default: others.append(index)
            }
        }
        for index in others {
            result.lines[index].value = redacted(text: replacingKnown(fields.lines[index].value), names)
        }
        return result
    }

    private func redacted(cookies value: [UInt8]) -> [UInt8] {
        let parts = value.split(separator: 0x3B, omittingEmptySubsequences: false).map { cookie in
            // A cookie without a name is all value, with the padding of Base64; a short one is a name without a value.
            let value = cookie.drop { $0 != 0x3D }.dropFirst()
            let isNamed = cookie.count < 16 || !FieldSyntax.trimmed(value).allSatisfy { $0 == 0x3D }
            let start = isNamed && cookie.contains(0x3D) ? value.startIndex : cookie.startIndex
            let text = FieldSyntax.trimmed(cookie[start...])
            let inner = FieldCredentials.unquoted(Array(text))
            let quote: [UInt8] = inner.count == text.count ? [] : [0x22]
            return cookie[..<text.startIndex] + quote + learn(inner) + quote + cookie[text.endIndex...]
        }
        return Array(parts.joined(separator: [0x3B]))
    }

    // MARK: Content

    private struct Look {
        let names: SecretNames
        let side: SecretNames.Side
        /// Whether `secret:` counts by name, because the place in the body is not known.
        var usesDeclared = true
        /// In how many other values the text is.
        var depth = 0

        /// Values within values beyond this are not looked at.
        static let maximumDepth = 6
    }

    /// Replaces the values in content that its names mark as secrets.
    private func redactNamed(_ content: inout [UInt8], _ head: ContentHead, _ look: Look) {
        if let name = head.name, look.names.isSecret(parameter: name, content, beside: [], isForm: true) {
            content = learn(content)
            return
        }
        let keys = content.withUnsafeBufferPointer(keyEdits)
        if !keys.isEmpty { content = Edit.apply(Edit.withoutOverlaps(keys), to: content) }
        guard !head.isOpaque else { return }
        let essence = head.essence
        let isForm = essence == "application/x-www-form-urlencoded"
        // `curl -d` sends JSON as a form, too.
        let first = content.first { $0 != 0x20 && $0 != 0x0A && $0 != 0x0D && $0 != 0x09 }
        let hasForm = isForm && first != 0x7B && first != 0x5B && first != 0x22
        if essence == "application/http" || essence == "message/http" { redactMessage(&content) }
        CompressedText.change(&content) { content, head in redactNamed(&content, head, look) }
        let edits = content.withUnsafeBufferPointer { hasForm ? formEdits($0, look) : textEdits($0, look) }
        if !edits.isEmpty { content = Edit.apply(Edit.withoutOverlaps(edits), to: content) }
    }

    /// Redacts the fields of a message in a body, as batches contain them.
    private func redactMessage(_ content: inout [UInt8]) {
        guard let end = content.firstRange(of: [0x0D, 0x0A, 0x0D, 0x0A]) else { return }
        var edits: [Edit] = []
        for line in content[..<end.lowerBound].split(separator: 0x0A) {
            guard let colon = line.firstIndex(of: 0x3A), NameMeaning.isSecretField(Array(line[..<colon]))
            else { continue }
            let value = FieldSyntax.trimmed(line.withoutReturn[(colon + 1)...])
            edits.append(Edit(range: value.startIndex..<value.endIndex, text: learn(field: Array(value))))
        }
        content = Edit.apply(edits, to: content)
    }

    private func redacted(text: [UInt8], _ names: SecretNames) -> [UInt8] {
        let edits = text.withUnsafeBufferPointer { textEdits($0, Look(names: names, side: .request)) }
        return edits.isEmpty ? text : Edit.apply(Edit.withoutOverlaps(edits), to: text)
    }

    private func redacted(url: [UInt8], _ names: SecretNames) -> [UInt8] {
        let edits = url.withUnsafeBufferPointer { urlEdits($0, Look(names: names, side: .request)) }
        return edits.isEmpty ? url : Edit.apply(Edit.withoutOverlaps(edits), to: url)
    }

    /// What is to be replaced in a text, which may be a form, JSON, a URL, or contain any of them.
    private func textEdits(_ text: UnsafeBufferPointer<UInt8>, _ look: Look) -> [Edit] {
        guard look.depth < Look.maximumDepth, text.count >= 3 else { return [] }
        let (names, side, usesDeclared) = (look.names, look.side, look.usesDeclared)
        if let credential = TextForm.credential(text) {
            return [Edit(range: credential, text: learn(Array(text[credential])))]
        }
        let isForm = TextForm.isForm(text, mayHaveLines: side == .request)
        var edits = keyEdits(text) + (isForm ? formEdits(text, look) : [])
        guard text.place(of: 0x22, from: 0) != nil
        else { return isForm ? edits : edits + urlEdits(inText: text, outside: [], look) }
        let scan = JSONScan(text) { names.meaning(ofMember: $0, side, usesDeclared: usesDeclared) }
        for value in scan.values {
            let isNamed = value.name.map { name in
                names.isSecret(
                    member: name,
                    scan.unescaped(value.range),
                    beside: scan.company(of: value).union(value.isString ? .body : []),
                    side,
                    usesDeclared: usesDeclared
                )
            }
            if isNamed == true || value.container != .plain {
                let secret = scan.unescaped(value.range)
                // What a secret object contains is not known to be a secret anywhere else.
                let isKnown = isNamed == true || value.container == .secretList
                let placeholder = isKnown ? learn(secret) : placeholder(for: secret)
                let quotes: [UInt8] = value.isString ? [] : [0x22]
                edits.append(Edit(range: value.range, text: quotes + placeholder + quotes))
            } else if value.isString {
                var inner = look
                inner.depth += 1
                edits += nestedEdits(text, value.range, .backslash, inner)
            }
        }
        return edits + urlEdits(inText: text, outside: scan.values.map(\.range), look)
    }

    private func formEdits(_ text: UnsafeBufferPointer<UInt8>, _ look: Look) -> [Edit] {
        parameterEdits(text, TextForm.parameters(of: text), look, isForm: true)
    }

    private func parameterEdits(
        _ text: UnsafeBufferPointer<UInt8>,
        _ pairs: [(name: [UInt8], value: Range<Int>)],
        _ look: Look,
        isForm: Bool
    ) -> [Edit] {
        var edits: [Edit] = []
        let company = Company(pairs.lazy.map(\.name))
        let inner = Look(names: look.names, side: isForm ? look.side : .request, depth: look.depth + 1)
        for (name, range) in pairs where !range.isEmpty {
            let value = TextForm.decoded(text[range], isForm: isForm)
            if look.names.isSecret(parameter: name, value, beside: company, isForm: isForm) {
                edits.append(Edit(range: range, text: learn(value)))
            } else if range.count >= 3 {
                edits += nestedEdits(text, range, .percent, inner)
            }
        }
        return edits
    }

    /// The edits of a URL: its parameters, user name and password.
    private func urlEdits(_ url: UnsafeBufferPointer<UInt8>, _ look: Look) -> [Edit] {
        guard look.depth < Look.maximumDepth else { return [] }
        var edits: [Edit] = []
        if let user = TextForm.userInformation(url) {
            if let colon = url[user].firstIndex(of: 0x3A) {
                learn(TextForm.decoded(url[colon + 1..<user.upperBound], isForm: false))
            }
            edits.append(Edit(range: user, text: learn(Array(url[user]))))
        }
        guard url.place(of: 0x3D, from: 0) != nil else { return edits }
        let bytes = Array(url)
        let pairs = URLParameters(bytes).map { parameter in
            (TargetNormaliser.unescaped(bytes[parameter.name]), parameter.value ?? 0..<0)
        }
        return edits + parameterEdits(url, pairs, look, isForm: false)
    }

    /// The edits of all that may be a URL in a text.
    ///
    /// - Parameter strings: Ranges that are looked at by themselves, in order.
    private func urlEdits(inText text: UnsafeBufferPointer<UInt8>, outside strings: [Range<Int>], _ look: Look)
        -> [Edit]
    {
        var edits: [Edit] = []
        var rest = strings[...]
        var inner = look
        inner.depth += 1
        for range in TextForm.references(in: text) {
            while let first = rest.first, first.upperBound <= range.lowerBound { rest.removeFirst() }
            if let first = rest.first, first.overlaps(range) { continue }
            edits += urlEdits(UnsafeBufferPointer(rebasing: text[range]), inner).map { $0.moved(by: range.lowerBound) }
        }
        return edits
    }

    private func keyEdits(_ text: UnsafeBufferPointer<UInt8>) -> [Edit] {
        PrivateKeys.ranges(in: text).compactMap { range in
            let key = UnsafeBufferPointer(rebasing: text[range])
            return Redaction.isMark(key) ? nil : Edit(range: range, text: learn(PrivateKeys.digits(of: key)))
        }
    }

    /// The edits of a value that is escaped in its text.
    private func nestedEdits(
        _ text: UnsafeBufferPointer<UInt8>,
        _ range: Range<Int>,
        _ escapes: UnescapedText.Escapes,
        _ look: Look
    ) -> [Edit] {
        var part = Array(text[range])
        // In a URL, too, many programs write `+` for a space.
        if escapes == .percent { for index in part.indices where part[index] == 0x2B { part[index] = 0x20 } }
        let inner = part.withUnsafeBufferPointer { UnescapedText(unescaping: $0, escapes) }
        return (inner?.bytes ?? part).withUnsafeBufferPointer { textEdits($0, look) }.map { edit in
            let source = inner?.source(of: edit.range) ?? edit.range
            // Only quotes need an escape, where a number becomes a string.
            let quote: [UInt8] = escapes == .percent ? Array("%22".utf8) : [0x5C, 0x22]
            let text = edit.text.flatMap { $0 == 0x22 ? quote : [$0] }
            return Edit(range: source, text: text).moved(by: range.lowerBound)
        }
    }

    // MARK: Declared members

    /// A function that finds the members declared `secret:` in a response's JSON; it returns nil for other content.
    private func declaredPlaces(of exchange: WholeExchange, _ upstream: ProxiedUpstream, _ route: String)
        -> (_ content: [UInt8]) -> [Range<Int>]?
    {
        let subject = RouteSubject(
            method: exchange.method,
            path: route,
            query: ProxiedUpstream.query(ofURL: exchange.target),
            status: exchange.response.status,
            contentType: ProxiedUpstream.mediaType(exchange.response.fields)
        )
        let target = exchange.target
        return { content in
            guard JSONOutline(content) != nil else { return nil }
            guard let match = upstream.rules.body(subject) else { return [] }
            let context = MappingContext(url: target, captures: match.captures, bound: match.bound)
            return Decomposer(models: upstream.rules.models).secretPlaces(in: content, as: match.rule, in: context)
        }
    }

    /// Replaces values with placeholders, as JSON strings.
    private func replace(_ places: [Range<Int>], in body: inout [UInt8]) {
        let edits = places.compactMap { place -> Edit? in
            let value = Array(body[place])
            if value == Array("null".utf8) { return nil }
            let text = (try? JSONDecoder().decode(String.self, from: Data(value))).map { Array($0.utf8) }
            return Edit(range: place, text: [0x22] + learn(text ?? value) + [0x22])
        }
        body = Edit.apply(Edit.withoutOverlaps(edits), to: body)
    }
}

extension PrincipalFields {
    /// Whether the value of a field may not be recorded: it is a credential, or a field that the configuration names.
    ///
    /// The value of `Set-Cookie` is partly secret.
    fileprivate func hides(_ name: [UInt8], _ side: SecretNames.Side) -> Bool {
        guard side == .request else { return redacted(Fields([Field(name: name, value: [0])])).lines[0].value != [0] }
        let lowercased = String(decoding: FieldSyntax.lowercased(name), as: UTF8.self)
        if ["cookie", "proxy-authorization", "authorization"].contains(lowercased) { return true }
        switch reason(forField: name) {
        case .configured, .credential, .notKnownHarmless: return true
        case .identity, nil: return NameMeaning.isSecretItself(name)
        }
    }
}
