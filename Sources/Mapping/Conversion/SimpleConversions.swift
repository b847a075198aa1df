import Foundation

/// A conversion that accepts values of one type and leaves them unchanged.
struct CheckedConversion: Conversion {
    private let expectation: String
    private let isAccepted: @Sendable (JSONSlice) -> Bool

    func forward(_ value: JSONSlice) throws(Misfit) -> [UInt8] {
        guard isAccepted(value) else { throw Misfit(expectation) }
        return value.json
    }

    func reverse(_ value: JSONSlice) throws(Misfit) -> [UInt8] { try forward(value) }

    static let string = CheckedConversion(expectation: "a string is expected") { $0.kind == .string }

    static let integer = CheckedConversion(expectation: "a whole number is expected") { $0.number?.isWhole ?? false }

    /// Accepts a number, or a string spelled like one, as APIs write amounts; both keep every digit.
    static let decimal = CheckedConversion(expectation: "a number, or a string of one, is expected") { value in
        value.kind == .number || value.string.map { Reference.isNumber($0) } ?? false
    }

    /// Accepts an absolute URL (RFC 3986; with letters outside ASCII, RFC 3987).
    static let url = CheckedConversion(expectation: "a string that is an absolute URL is expected") { value in
        value.string.map { URLSyntax.isAbsolute(Array($0.utf8)) } ?? false
    }

    static let uuid = CheckedConversion(expectation: "a string that is a UUID is expected") { value in
        guard let text = value.string?.utf8, text.count == 36 else { return false }
        return text.enumerated().allSatisfy { offset, byte in
            [8, 13, 18, 23].contains(offset) ? byte == UInt8(ascii: "-") : hexadecimalDigit(byte) != nil
        }
    }
}

extension JSONNumber {
    /// Whether the number has no fraction; `5.0` and `5e2` are whole.
    var isWhole: Bool { exponent >= 0 }
}

/// The syntax of URLs (RFC 3986 §2, §3; RFC 3987 §2.2).
enum URLSyntax {
    /// Whether a text is a scheme, a colon, and a nonempty rest in which nothing is left to be escaped.
    static func isAbsolute(_ text: [UInt8]) -> Bool {
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")), isScheme(text[..<colon]) else { return false }
        let rest = text[(colon + 1)...]
        return !rest.isEmpty && rest.indices.allSatisfy { isAllowed(rest, at: $0) }
    }

    private static func isScheme(_ text: ArraySlice<UInt8>) -> Bool {
        guard let first = text.first, first.isLetter else { return false }
        return text.allSatisfy { $0.isLetter || $0.isDigit || "+-.".utf8.contains($0) }
    }

    private static func isAllowed(_ text: ArraySlice<UInt8>, at index: Int) -> Bool {
        let byte = text[index]
        if byte == UInt8(ascii: "%") {
            return index + 2 < text.endIndex && hexadecimalDigit(text[index + 1]) != nil
                && hexadecimalDigit(text[index + 2]) != nil
        }
        return byte >= 0x80 || byte.isLetter || byte.isDigit || "-._~:/?#[]@!$&'()*+,;=".utf8.contains(byte)
    }
}

/// Accepts true and false; 1 and 0 count as booleans too, and come back as `true` and `false`.
struct BooleanConversion: Conversion {
    func forward(_ value: JSONSlice) throws(Misfit) -> [UInt8] {
        if value.kind == .word { return value.json }
        switch value.number?.canonicalText {
        case "1": return Array("true".utf8)
        case "0": return Array("false".utf8)
        default: throw Misfit("true or false is expected")
        }
    }

    func reverse(_ value: JSONSlice) throws(Misfit) -> [UInt8] { try forward(value) }
}

/// Converts Base64 (RFC 4648 §4) to the encoded text; white space within the Base64 is ignored.
struct Base64Conversion: Conversion {
    func forward(_ value: JSONSlice) throws(Misfit) -> [UInt8] {
        let packed = value.string.map { String(decoding: $0.utf8.filter { $0 > 0x20 }, as: UTF8.self) }
        guard let data = packed.flatMap({ Data(base64Encoded: $0) }), let text = String(validating: data, as: UTF8.self)
        else { throw Misfit("a string in Base64 that encodes UTF-8 is expected") }
        return JSONString.literal(text)
    }

    func reverse(_ value: JSONSlice) throws(Misfit) -> [UInt8] {
        guard let text = value.string else { throw Misfit("a string is expected") }
        return JSONString.literal(Data(text.utf8).base64EncodedString())
    }
}

/// Converts text with separators, such as `12,345.678`, to a number; every digit is kept.
struct NumberTextConversion: Conversion {
    private let grouping: [UInt8]
    private let decimal: [UInt8]

    init(grouping: String, decimal: String) throws(MappingError) {
        let separators = [grouping, decimal]
        guard !decimal.isEmpty, grouping != decimal,
            separators.allSatisfy({ $0.utf8.allSatisfy { !$0.isDigit && $0 != UInt8(ascii: "-") } })
        else {
            throw .invalidConversion(
                "the separators of a number must be two different ones that hold no digit and no minus, such as "
                    + "{ grouping: \",\", decimal: \".\" }"
            )
        }
        self.grouping = Array(grouping.utf8)
        self.decimal = Array(decimal.utf8)
    }

    func forward(_ value: JSONSlice) throws(Misfit) -> [UInt8] {
        guard let text = value.string, let number = number(Array(text.utf8)) else {
            throw Misfit("a string of a number such as \(example) is expected")
        }
        return number
    }

    func reverse(_ value: JSONSlice) throws(Misfit) -> [UInt8] {
        guard let number = value.number else { throw Misfit("a number is expected") }
        let plain = Array(number.canonicalText.utf8)
        guard !plain.contains(UInt8(ascii: "e")) else { throw Misfit("a number of at most 40 digits is expected") }
        let minus = plain.first == UInt8(ascii: "-") ? 1 : 0
        let point = plain.firstIndex(of: UInt8(ascii: ".")) ?? plain.endIndex
        var output = Array(plain[..<minus])
        for index in minus..<point {
            if index > minus, (point - index) % 3 == 0 { output += grouping }
            output.append(plain[index])
        }
        if point < plain.endIndex { output += decimal + plain[(point + 1)...] }
        return JSONString.literal(String(decoding: output, as: UTF8.self))
    }

    private var example: String {
        "12" + String(decoding: grouping, as: UTF8.self) + "345" + String(decoding: decimal, as: UTF8.self) + "678"
    }

    /// The JSON number in a text; the digits form groups of three, or no groups at all.
    private func number(_ text: [UInt8]) -> [UInt8]? {
        var rest = text[...]
        var output: [UInt8] = []
        if rest.first == UInt8(ascii: "-") { output.append(rest.removeFirst()) }
        let groups = split(&rest)
        guard let first = groups.first, !first.isEmpty else { return nil }
        if groups.count > 1 {
            guard first.count <= 3, groups.dropFirst().allSatisfy({ $0.count == 3 }) else { return nil }
        }
        let whole = groups.joined().drop { $0 == UInt8(ascii: "0") }
        output += whole.isEmpty ? [UInt8(ascii: "0")] : Array(whole)
        guard !rest.isEmpty else { return output }
        guard rest.starts(with: decimal) else { return nil }
        let fraction = rest.dropFirst(decimal.count)
        guard !fraction.isEmpty, fraction.allSatisfy(\.isDigit) else { return nil }
        return output + [UInt8(ascii: ".")] + fraction
    }

    /// Removes the digits before the decimal separator and splits them at the grouping separators.
    private func split(_ rest: inout ArraySlice<UInt8>) -> [[UInt8]] {
        var groups: [[UInt8]] = [[]]
        while let byte = rest.first {
            if byte.isDigit {
                groups[groups.count - 1].append(rest.removeFirst())
            } else if !grouping.isEmpty, rest.starts(with: grouping) {
                rest = rest.dropFirst(grouping.count)
                groups.append([])
            } else {
                break
            }
        }
        return groups
    }
}

/// A declared map from values to values, for enumerations (strings) and for arbitrary JSON values.
struct ValueMapConversion: Conversion {
    private let pairs: [(wire: JSONSlice, mapped: JSONSlice)]
    private let fallback: [UInt8]?
    private let reverseFallback: [UInt8]?

    init(
        _ declared: [ConversionDeclaration.Pair],
        fallback: [UInt8]?,
        reverseFallback: [UInt8]?,
        isOneWay: Bool
    ) throws(MappingError) {
        guard !declared.isEmpty else { throw .invalidConversion("a map of values has no entry") }
        var pairs: [(wire: JSONSlice, mapped: JSONSlice)] = []
        for pair in declared {
            let (wire, mapped) = (try Self.slice(pair.wire), try Self.slice(pair.mapped))
            if pairs.contains(where: { $0.wire.isEqual(to: wire) }) {
                throw .invalidConversion("\(Self.text(wire)) is mapped twice")
            }
            if !isOneWay, let other = pairs.first(where: { $0.mapped.isEqual(to: mapped) }) {
                throw .invalidConversion(
                    "\(Self.text(other.wire)) and \(Self.text(wire)) are both mapped to \(Self.text(mapped)), so that "
                        + "there is no way back; give each its own, use \"default\" for one of them, or write "
                        + "{ one_way: … } around the map"
                )
            }
            pairs.append((wire, mapped))
        }
        self.pairs = pairs
        self.fallback = try fallback.map { (json) throws(MappingError) in try Self.slice(json).json }
        self.reverseFallback = try reverseFallback.map { (json) throws(MappingError) in try Self.slice(json).json }
    }

    private static func slice(_ json: [UInt8]) throws(MappingError) -> JSONSlice {
        guard !JSONBody.isMalformed(json), let slice = JSONSlice(json) else {
            throw .invalidConversion("\"\(String(decoding: json, as: UTF8.self))\" is not JSON")
        }
        return slice
    }

    private static func text(_ value: JSONSlice) -> String { String(decoding: value.bytes, as: UTF8.self) }

    var convertsNull: Bool { true }

    func forward(_ value: JSONSlice) throws(Misfit) -> [UInt8] {
        if let pair = pairs.first(where: { $0.wire.isEqual(to: value) }) { return pair.mapped.json }
        return try unknown(value, fallback, known: pairs.map(\.wire))
    }

    func reverse(_ value: JSONSlice) throws(Misfit) -> [UInt8] {
        if let pair = pairs.first(where: { $0.mapped.isEqual(to: value) }) { return pair.wire.json }
        return try unknown(value, reverseFallback, known: pairs.map(\.mapped))
    }

    /// The result for a value without an entry: null stays null.
    ///
    /// Anything else is a misfit: the upstream has begun to send something new, and the user should know.
    private func unknown(_ value: JSONSlice, _ fallback: [UInt8]?, known: [JSONSlice]) throws(Misfit) -> [UInt8] {
        if value.isNull { return value.json }
        let shown = known.prefix(8).map(Self.text).joined(separator: ", ") + (known.count > 8 ? ", …" : "")
        let reason = "one of \(shown) is expected"
        guard let fallback else { throw Misfit(reason) }
        let shownInstead = String(decoding: fallback.prefix(80), as: UTF8.self)
        throw Misfit("\(reason); the default \(shownInstead) is shown instead", substitute: fallback)
    }
}
