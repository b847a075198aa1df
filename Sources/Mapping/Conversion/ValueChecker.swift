import Foundation

/// The checks of one property, compiled once.
public struct ValueChecker: Sendable {
    private let checks: [Compiled]

    private enum Compiled: Sendable {
        case type([ValueCheck.JSONType])
        case range(minimum: JSONNumber?, maximum: JSONNumber?)
        case length(ClosedRange<Int>)
        case pattern(PatternSearch)
        case oneOf([JSONSlice])
        case notNull
    }

    /// Compiles checks; the error, `.invalidCheck`, says what is wrong with them.
    public init(_ checks: [ValueCheck]) throws(MappingError) {
        self.checks = try checks.map { (check) throws(MappingError) in try Self.compile(check) }
    }

    private static func compile(_ check: ValueCheck) throws(MappingError) -> Compiled {
        switch check {
        case .type(let types):
            guard !types.isEmpty else { throw .invalidCheck("no type is allowed; name at least one") }
            return .type(types)
        case .range(let minimum, let maximum):
            let (low, high) = (try minimum.map(number), try maximum.map(number))
            if let low, let high, high < low { throw .invalidCheck("the range ends before it begins") }
            return .range(minimum: low, maximum: high)
        case .length(let minimum, let maximum):
            let (low, high) = (minimum ?? 0, maximum ?? .max)
            guard low >= 0, low <= high else { throw .invalidCheck("the lengths allowed end before they begin") }
            return .length(low...high)
        case .pattern(let pattern):
            return .pattern(try PatternSearch(pattern))
        case .oneOf(let values):
            guard !values.isEmpty else { throw .invalidCheck("no value is allowed; name at least one") }
            return .oneOf(
                try values.map { (json) throws(MappingError) in
                    guard !JSONBody.isMalformed(json), let slice = JSONSlice(json) else {
                        throw .invalidCheck("\"\(String(decoding: json, as: UTF8.self))\" is not JSON")
                    }
                    return slice
                }
            )
        case .notNull:
            return .notNull
        }
    }

    private static func number(_ json: [UInt8]) throws(MappingError) -> JSONNumber {
        guard Reference.isNumber(String(decoding: json, as: UTF8.self)) else {
            throw .invalidCheck("\"\(String(decoding: json, as: UTF8.self))\" is not a number")
        }
        return json.withUnsafeBufferPointer { JSONNumber($0) }
    }

    /// Why a JSON value of the upstream's is not as it should be, for a person; nil when it is.
    ///
    /// The reason says what was expected and never quotes the value.
    public func fault(in value: [UInt8]) -> String? {
        guard let slice = JSONSlice(value) else { return "JSON is expected" }
        return fault(in: slice)
    }

    /// As `fault(in:)`, of a value within a text that is JSON.
    func fault(in value: JSONSlice) -> String? {
        for check in checks {
            if value.isNull {
                // Null says that there is no value: only what speaks of null itself can object.
                if case .notNull = check { return "null is not allowed" }
            } else if let fault = Self.fault(in: value, check) {
                return fault
            }
        }
        return nil
    }

    private static func fault(in value: JSONSlice, _ check: Compiled) -> String? {
        switch check {
        case .type(let types):
            let fits = types.contains { isOf(value, $0) }
            return fits ? nil : "of type \(types.map(\.rawValue).joined(separator: " or ")) is expected"
        case .range(let minimum, let maximum):
            guard let number = value.number else { return "a number is expected" }
            if let minimum, number < minimum { return "at least \(minimum.canonicalText) is expected" }
            if let maximum, maximum < number { return "at most \(maximum.canonicalText) is expected" }
            return nil
        case .length(let allowed):
            guard let length = length(of: value) else { return "a string or a list is expected" }
            if length < allowed.lowerBound { return "a length of at least \(allowed.lowerBound) is expected" }
            return length > allowed.upperBound ? "a length of at most \(allowed.upperBound) is expected" : nil
        case .pattern(let search):
            guard let text = value.string else { return "a string is expected" }
            return search.fault(in: text)
        case .oneOf(let values):
            guard !values.contains(where: { $0.isEqual(to: value) }) else { return nil }
            let shown = values.prefix(8).map { String(decoding: $0.bytes, as: UTF8.self) }.joined(separator: ", ")
            return "one of \(shown)\(values.count > 8 ? ", …" : "") is expected"
        case .notNull:
            return nil
        }
    }

    private static func isOf(_ value: JSONSlice, _ type: ValueCheck.JSONType) -> Bool {
        switch type {
        case .string: value.kind == .string
        case .number: value.kind == .number
        case .integer: value.number?.isWhole ?? false
        case .boolean: value.kind == .word && !value.isNull
        case .object: value.kind == .object
        case .array: value.kind == .array
        case .null: value.isNull
        }
    }

    /// Code points of a string, elements of a list; nil for other values.
    private static func length(of value: JSONSlice) -> Int? {
        switch value.kind {
        case .string: value.withBytes { JSONString.codePoints($0).count }
        case .array: value.elements.count
        case .object, .number, .word: nil
        }
    }
}

/// A regular expression that a string has to match as a whole, searched for with a bounded effort.
///
/// The engine is ICU's, which tries one way after the other: what a pattern such as `(a+)+b` costs may double with every
/// character. Such a search is given up after a number of steps that is always the same, and counts as a mismatch.
struct PatternSearch: Sendable {
    private let pattern: String
    private let expression: NSRegularExpression
    /// Longer strings are not searched; bytes.
    private static let longest = 10_000
    /// How often the engine may report that it is still busy, each time after ten thousand steps.
    private static let patience = 20

    init(_ pattern: String) throws(MappingError) {
        // By itself first: a bracket too many would close the one that is put around it.
        guard (try? NSRegularExpression(pattern: pattern)) != nil,
            let expression = try? NSRegularExpression(pattern: "\\A(?:\(pattern))\\z")
        else {
            throw .invalidCheck("\"\(pattern)\" is not a regular expression")
        }
        self.pattern = pattern
        self.expression = expression
    }

    /// Why a string is not as it should be, for a person; nil when it matches.
    func fault(in text: String) -> String? {
        guard text.utf8.count <= Self.longest else { return "a string of at most \(Self.longest) bytes is expected" }
        var (isFound, isGivenUp) = (false, false)
        var reports = 0
        let range = NSRange(location: 0, length: text.utf16.count)
        expression.enumerateMatches(in: text, options: .reportProgress, range: range) { match, _, stop in
            if match != nil {
                isFound = true
                stop.pointee = true
            } else {
                reports += 1
                isGivenUp = reports > Self.patience
                if isGivenUp { stop.pointee = true }
            }
        }
        if isFound { return nil }
        return isGivenUp
            ? "a string of the pattern \(pattern), and found to be one without a long search, is expected"
            : "a string of the pattern \(pattern) is expected"
    }
}
