import Foundation

extension Conversion {
    /// A conversion that is the same in both directions; `convert` returns nil for a value that does not fit.
    init(_ expectation: String, _ convert: @escaping @Sendable (JSONSlice) -> [UInt8]?) {
        let direction: Direction = { (value) throws(Misfit) in
            guard let json = convert(value) else { throw Misfit(expectation) }
            return json
        }
        self.init(forward: direction, reverse: direction)
    }

    /// A conversion that only checks a value.
    init(_ expectation: String, accepts isAccepted: @escaping @Sendable (JSONSlice) -> Bool) {
        self.init(expectation) { isAccepted($0) ? $0.json : nil }
    }

    static let builtIn: [String: Conversion] = [
        "base64": base64, "boolean": boolean, "date": rfc3339, "decimal": decimal, "integer": integer, "string": string,
        "url": url, "uuid": uuid,
    ]

    private static let string = Conversion("a string is expected", accepts: { $0.kind == .string })

    private static let integer = Conversion("a whole number is expected", accepts: { $0.number?.isWhole ?? false })

    /// Accepts a number, or a string spelled like one, as APIs write amounts; both keep every digit.
    private static let decimal = Conversion("a number, or a string of one, is expected") { value in
        value.kind == .number || value.string.map { JSONBody.isNumber($0) } ?? false
    }

    /// Accepts an absolute URL (RFC 3986; with letters outside ASCII, RFC 3987).
    private static let url = Conversion("a string that is an absolute URL is expected") { value in
        value.string.map { isAbsoluteURL(Array($0.utf8)) } ?? false
    }

    /// Whether a text is a scheme, a colon, and a nonempty rest in which nothing is left to be escaped.
    private static func isAbsoluteURL(_ text: [UInt8]) -> Bool {
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")), text[0].isLetter, colon + 1 < text.count,
            text[..<colon].allSatisfy({ $0.isLetter || $0.isDigit || "+-.".utf8.contains($0) })
        else { return false }
        return (colon + 1..<text.count).allSatisfy { index in
            let byte = text[index]
            guard byte == UInt8(ascii: "%") else {
                return byte >= 0x80 || byte.isLetter || byte.isDigit || "-._~:/?#[]@!$&'()*+,;=".utf8.contains(byte)
            }
            return index + 2 < text.count && text[index + 1...index + 2].allSatisfy { hexadecimalDigit($0) != nil }
        }
    }

    private static let uuid = Conversion("a string that is a UUID is expected") { value in
        guard let text = value.string?.utf8, text.count == 36 else { return false }
        return text.enumerated().allSatisfy { offset, byte in
            [8, 13, 18, 23].contains(offset) ? byte == UInt8(ascii: "-") : hexadecimalDigit(byte) != nil
        }
    }

    /// Accepts true and false; 1 and 0 count as booleans too, and come back as `true` and `false`.
    private static let boolean = Conversion("true or false is expected") { value in
        switch value.number?.canonicalText {
        case "1": Array("true".utf8)
        case "0": Array("false".utf8)
        default: value.kind == .boolean || value.isNull ? value.json : nil
        }
    }

    /// Converts Base64 (RFC 4648 §4) to the encoded text; white space within the Base64 is ignored.
    private static let base64 = Conversion(
        forward: { (value) throws(Misfit) in
            let packed = value.string.map { String(decoding: $0.utf8.filter { $0 > 0x20 }, as: UTF8.self) }
            guard let data = packed.flatMap({ Data(base64Encoded: $0) }),
                let text = String(validating: data, as: UTF8.self)
            else { throw Misfit("a string in Base64 that encodes UTF-8 is expected") }
            return JSONString.literal(text)
        },
        reverse: { (value) throws(Misfit) in
            guard let text = value.string else { throw Misfit("a string is expected") }
            return JSONString.literal(Data(text.utf8).base64EncodedString())
        }
    )

    /// Converts numbers written as text with separators, such as `12,345.678`; every digit is kept.
    static func number(grouping: String, decimal: String) throws(MappingError) -> Conversion {
        guard !decimal.isEmpty, grouping != decimal,
            (grouping + decimal).utf8.allSatisfy({ !$0.isDigit && $0 != UInt8(ascii: "-") })
        else {
            throw .invalidConversion(
                "the separators of a number must be two different ones that hold no digit and no minus, such as "
                    + "{ grouping: \",\", decimal: \".\" }"
            )
        }
        let (comma, point) = (Array(grouping.utf8), Array(decimal.utf8))
        return Conversion(
            forward: { (value) throws(Misfit) in
                guard let number = value.string.flatMap({ parsed(Array($0.utf8), comma, point) }) else {
                    throw Misfit("a string of a number such as 12\(grouping)345\(decimal)678 is expected")
                }
                return number
            },
            reverse: { (value) throws(Misfit) in
                guard let number = value.number else { throw Misfit("a number is expected") }
                let plain = Array(number.canonicalText.utf8)
                guard !plain.contains(UInt8(ascii: "e")) else {
                    throw Misfit("a number of at most 40 digits is expected")
                }
                let start = plain.first == UInt8(ascii: "-") ? 1 : 0
                let end = plain.firstIndex(of: UInt8(ascii: ".")) ?? plain.endIndex
                var output = Array(plain[..<start])
                for index in start..<end {
                    if index > start, (end - index) % 3 == 0 { output += comma }
                    output.append(plain[index])
                }
                if end < plain.endIndex { output += point + plain[(end + 1)...] }
                return JSONString.literal(String(decoding: output, as: UTF8.self))
            }
        )
    }

    /// The JSON number in a text; the digits form groups of three, or no groups at all.
    private static func parsed(_ text: [UInt8], _ comma: [UInt8], _ point: [UInt8]) -> [UInt8]? {
        let sign = text.prefix(1).filter { $0 == UInt8(ascii: "-") }
        let halves = text.dropFirst(sign.count).split(separator: point, maxSplits: 1, omittingEmptySubsequences: false)
        let groups = comma.isEmpty ? [halves[0]] : halves[0].split(separator: comma, omittingEmptySubsequences: false)
        guard !groups[0].isEmpty, halves.last?.isEmpty == false,
            (groups + halves.dropFirst()).joined().allSatisfy(\.isDigit),
            groups.count == 1 || groups[0].count <= 3 && groups.dropFirst().allSatisfy({ $0.count == 3 })
        else { return nil }
        let whole = groups.joined().drop { $0 == UInt8(ascii: "0") }
        let fraction = halves.count > 1 ? [UInt8(ascii: ".")] + halves[1] : []
        return sign + (whole.isEmpty ? [UInt8(ascii: "0")] : Array(whole)) + fraction
    }

    /// A declared map from values to values, for enumerations (strings) and for arbitrary JSON values.
    static func map(
        _ declared: [ConversionDeclaration.Pair],
        fallback: [UInt8]?,
        reverseFallback: [UInt8]?,
        isOneWay: Bool
    ) throws(MappingError) -> Conversion {
        guard !declared.isEmpty else { throw .invalidConversion("a map of values has no entry") }
        var pairs: [(from: JSONSlice, to: JSONSlice)] = []
        for pair in declared {
            let (wire, mapped) = (try JSONSlice(declared: pair.wire), try JSONSlice(declared: pair.mapped))
            if pairs.contains(where: { $0.from.isEqual(to: wire) }) {
                throw .invalidConversion("\(wire.spelled) is mapped twice")
            }
            if !isOneWay, let other = pairs.first(where: { $0.to.isEqual(to: mapped) }) {
                throw .invalidConversion(
                    "\(other.from.spelled) and \(wire.spelled) are both mapped to \(mapped.spelled), so that "
                        + "there is no way back; give each its own, use \"default\" for one of them, or write "
                        + "{ one_way: … } around the map"
                )
            }
            pairs.append((wire, mapped))
        }
        let (fallback, back) = (
            try fallback.map(JSONSlice.init(declared:)), try reverseFallback.map(JSONSlice.init(declared:))
        )
        return Conversion(
            forward: direction(pairs, fallback: fallback),
            reverse: direction(pairs.map { ($0.to, $0.from) }, fallback: back),
            convertsNull: true
        )
    }

    /// Replaces values by their partners; null without one stays null.
    ///
    /// Anything else is a misfit: the upstream has begun to send something new, and the user should know.
    private static func direction(_ pairs: [(from: JSONSlice, to: JSONSlice)], fallback: JSONSlice?) -> Direction {
        { (value) throws(Misfit) in
            if let pair = pairs.first(where: { $0.from.isEqual(to: value) }) { return pair.to.json }
            if value.isNull { return value.json }
            let reason = JSONSlice.expectation(of: pairs.map(\.from))
            guard let fallback else { throw Misfit(reason) }
            let shown = String(decoding: fallback.json.prefix(80), as: UTF8.self)
            throw Misfit("\(reason); the default \(shown) is shown instead", substitute: fallback.json)
        }
    }
}

extension JSONNumber {
    /// Whether the number has no fraction; `5.0` and `5e2` are whole.
    var isWhole: Bool { exponent >= 0 }
}
