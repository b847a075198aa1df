import Foundation

/// Converts Base64 (RFC 4648 §4) to the encoded text; white space within the Base64 is ignored.
struct Base64Conversion: Conversion {
    private static let expectation = "a string in Base64 that encodes UTF-8 is expected"

    func forward(_ value: JSONSlice) -> ConversionResult {
        if value.isNull { return .value(value.json) }
        guard let text = value.string else { return .failed(reason: Self.expectation) }
        let packed = String(decoding: text.utf8.filter { $0 > 0x20 }, as: UTF8.self)
        guard let data = Data(base64Encoded: packed), let decoded = String(validating: data, as: UTF8.self) else {
            return .failed(reason: Self.expectation)
        }
        return .string(decoded)
    }

    func reverse(_ value: JSONSlice) -> ConversionResult {
        if value.isNull { return .value(value.json) }
        guard let text = value.string else { return .failed(reason: "a string is expected") }
        return .string(Data(text.utf8).base64EncodedString())
    }
}

/// Converts text with separators, such as `12,345.678`, to a number; every digit is kept.
struct NumberTextConversion: Conversion {
    private let grouping: [UInt8]
    private let decimal: [UInt8]

    init(grouping: String, decimal: String) throws(MappingError) {
        let separators = [grouping, decimal]
        guard !decimal.isEmpty, grouping != decimal,
            separators.allSatisfy({ $0.utf8.allSatisfy { $0 &- UInt8(ascii: "0") >= 10 && $0 != UInt8(ascii: "-") } })
        else {
            throw .invalidConversion(
                "the separators of a number must be two different ones that hold no digit and no minus, such as "
                    + "{ grouping: \",\", decimal: \".\" }"
            )
        }
        self.grouping = Array(grouping.utf8)
        self.decimal = Array(decimal.utf8)
    }

    func forward(_ value: JSONSlice) -> ConversionResult {
        if value.isNull { return .value(value.json) }
        guard let text = value.string, let number = number(Array(text.utf8)) else {
            return .failed(reason: "a string of a number such as \(example) is expected")
        }
        return .value(number)
    }

    func reverse(_ value: JSONSlice) -> ConversionResult {
        if value.isNull { return .value(value.json) }
        guard let number = value.number else { return .failed(reason: "a number is expected") }
        let plain = Array(number.canonicalText.utf8)
        guard !plain.contains(UInt8(ascii: "e")) else {
            return .failed(reason: "a number of at most 40 digits is expected")
        }
        let minus = plain.first == UInt8(ascii: "-") ? 1 : 0
        let point = plain.firstIndex(of: UInt8(ascii: ".")) ?? plain.endIndex
        var output = Array(plain[..<minus])
        for index in minus..<point {
            if index > minus, (point - index) % 3 == 0 { output += grouping }
            output.append(plain[index])
        }
        if point < plain.endIndex { output += decimal + plain[(point + 1)...] }
        return .string(String(decoding: output, as: UTF8.self))
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
        guard !fraction.isEmpty, fraction.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 }) else { return nil }
        return output + [UInt8(ascii: ".")] + fraction
    }

    /// Removes the digits before the decimal separator and splits them at the grouping separators.
    private func split(_ rest: inout ArraySlice<UInt8>) -> [[UInt8]] {
        var groups: [[UInt8]] = [[]]
        while let byte = rest.first {
            if byte &- UInt8(ascii: "0") < 10 {
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
