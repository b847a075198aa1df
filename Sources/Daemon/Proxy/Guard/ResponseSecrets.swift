package import HTTPSemantics

/// Where the fields of a response hold secrets, by the names of fields and of parameters in their values.
///
/// Any field may contain a URL: `Location`, `Link`, `Operation-Location`, `X-Goog-Upload-URL`. So all values are searched alike.
extension PrincipalFields {
    /// The places in a field's value that hold secrets; in order, and apart.
    func secretPlaces(in line: Field) -> [Range<Int>] {
        guard !line.value.isEmpty else { return [] }
        if isSecret(responseField: line.name) { return [0..<line.value.count] }
        return secretPlaces(in: line.value, of: line) { _ in false }
    }

    /// Whether a field's value holds secrets, also in URLs that are escaped because they are parts of URLs or of JSON.
    ///
    /// - Parameter isKnown: whether what stands in a secret's place is none; it is given the text from there to its end.
    func holdsSecret(_ line: Field, besides isKnown: (ArraySlice<UInt8>) -> Bool = { _ in false }) -> Bool {
        guard !line.value.isEmpty else { return false }
        if isSecret(responseField: line.name) { return !isKnown(FieldCredentials.withoutScheme(line.value)) }
        return Self.spellings(of: line.value).contains { !secretPlaces(in: $0, of: line, besides: isKnown).isEmpty }
    }

    /// Whether a byte may be a part of what marks a secret in a value: `=`, `@`, or an escape; no value without one holds a secret.
    static func mayBeOfSecret(_ byte: UInt8) -> Bool { byte == 0x3D || byte == 0x40 || byte == 0x25 || byte == 0x5C }

    /// The secrets in the URLs of a field's value, also in escaped ones.
    func secretsOfURLs(in line: Field) -> [[UInt8]] {
        guard line.value.contains(0x3D) || line.value.contains(0x40) else { return [] }
        return Self.spellings(of: line.value).flatMap { text in
            secretPlaces(in: text, of: line) { _ in false }.map { Array(text[$0]) }
        }
    }

    /// A text, and what it stands for if it is escaped because it is a part of a URL or of JSON.
    private static func spellings(of text: [UInt8]) -> [[UInt8]] {
        var spellings = [text]
        // Most values have no escapes, and every stored response asks.
        guard text.contains(where: { $0 == 0x25 || $0 == 0x5C }) else { return spellings }
        while spellings.count < escapings {
            let last = spellings[spellings.count - 1]
            let plain = TargetNormaliser.unescaped(unescapedJSON(last)[...])
            if plain == last { break }
            spellings.append(plain)
        }
        return spellings
    }

    package func redacted(_ fields: Fields) -> Fields {
        Fields(
            fields.lines.map { line in
                var redacted = line
                for place in secretPlaces(in: line).reversed() {
                    redacted.value.replaceSubrange(place, with: Self.mark)
                }
                if holdsSecret(redacted, besides: { $0.starts(with: Self.mark) }) { redacted.value = Self.mark }
                return redacted
            }
        )
    }

    /// How often a URL may be escaped within others.
    private static let escapings = 3

    private static func unescapedJSON(_ text: [UInt8]) -> [UInt8] {
        guard text.contains(0x5C) else { return text }
        var (result, rest): ([UInt8], ArraySlice<UInt8>) = ([], text[...])
        while let backslash = rest.firstIndex(of: 0x5C) {
            result += rest[..<backslash]
            rest = rest[(backslash + 1)...]
            guard rest.first == 0x75,
                let code = UInt8(String(decoding: rest.dropFirst().prefix(4), as: UTF8.self), radix: 16)
            else { continue }
            result.append(code)
            rest = rest.dropFirst(5)
        }
        return result + rest
    }

    // MARK: Places in a text

    private func secretPlaces(in text: [UInt8], of line: Field, besides isKnown: (ArraySlice<UInt8>) -> Bool)
        -> [Range<Int>]
    {
        let parameters = Self.parameters(in: text)
        let places = parameters.filter { name, value in
            guard !value.isEmpty, !isKnown(text[value]) else { return false }
            let reason = reason(
                forParameter: text[name],
                value: TargetNormaliser.unescaped(text[value]),
                beside: Company(parameters.lazy.map { TargetNormaliser.unescaped(text[$0.name]) })
            )
            return reason != nil && !Self.isForReports(text[name], in: line)
        }
        return (places.map(\.value) + Self.users(in: text).filter { !isKnown(text[$0]) })
            .sorted { $0.lowerBound < $1.lowerBound }
    }

    /// Whether a parameter stands in a URL for a browser's reports, where it names the site: Heroku's `sid`, Sentry's key.
    private static func isForReports(_ name: ArraySlice<UInt8>, in line: Field) -> Bool {
        reportingFields.contains(where: line.isNamed)
            && reportingParameters.contains { FieldSyntax.equalsIgnoringCase(name, $0.utf8) }
    }

    private static let reportingFields = [
        "report-to", "reporting-endpoints", "nel", "expect-ct", "content-security-policy",
        "content-security-policy-report-only",
    ]
    private static let reportingParameters = ["sid", "sentry_key"]

    /// The parameters of the URLs and queries in a text.
    ///
    /// They begin after `?`, `&`, `;` or `#`. A text without white space and quotes may be a query by itself.
    private static func parameters(in text: [UInt8]) -> [(name: Range<Int>, value: Range<Int>)] {
        guard text.contains(0x3D) else { return [] }
        var found: [(name: Range<Int>, value: Range<Int>)] = []
        var begin = text.contains { $0 <= 0x20 || $0 == 0x22 } ? nil : 0
        for index in text.indices {
            switch text[index] {
            case 0x3F, 0x26, 0x3B, 0x23: begin = index + 1
            case 0x20, 0x09: if begin == index { begin = index + 1 } else { begin = nil }
            case 0x22, 0x27, 0x28, 0x2C, 0x2F, 0x3A, 0x3C, 0x3E: begin = nil
            case 0x3D:
                defer { begin = nil }
                guard let begin, begin < index else { continue }
                let rest = text[(index + 1)...]
                // A structured field (RFC 9651), such as `sig1=:…:` in `Signature`, or the end of Base64.
                if begin == 0, let first = rest.first, [0x28, 0x3A, 0x3D].contains(first) { continue }
                let end = rest.firstIndex { endsOfValues.contains($0) } ?? text.count
                found.append((begin..<index, (index + 1)..<end))
            default: break
            }
        }
        return found
    }

    /// White space and `"&#;<>`.
    private static let endsOfValues: Set<UInt8> = [0x09, 0x20, 0x22, 0x23, 0x26, 0x3B, 0x3C, 0x3E]

    /// The user names and passwords of the URLs in a text.
    private static func users(in text: [UInt8]) -> [Range<Int>] {
        guard text.contains(0x40) else { return [] }
        return text.indices.compactMap { index in
            guard text[index...].starts(with: [0x2F, 0x2F]),
                index == 0 || [0x09, 0x20, 0x22, 0x28, 0x2C, 0x3A, 0x3C, 0x3D].contains(text[index - 1])
            else { return nil }
            let rest = text[(index + 2)...]
            let authority = rest.prefix { $0 > 0x20 && ![0x22, 0x23, 0x2F, 0x3C, 0x3E, 0x3F].contains($0) }
            return authority.lastIndex(of: 0x40).flatMap { $0 > rest.startIndex ? rest.startIndex..<$0 : nil }
        }
    }
}
