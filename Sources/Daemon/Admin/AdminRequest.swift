import Foundation
import HTTPSemantics
import HTTPServer
import Proxy
import Recording
import Settings
import Store

struct AdminRequest: Sendable {
    let method: String
    /// The path's components, percent-decoded one by one, so that `%2F` can be part of an id.
    let components: [String]
    /// The query's parameters in order, decoded.
    var query: [(name: String, value: String)]
    let fields: Fields
    var body: [UInt8]
    /// A body that the route reads itself, because it may be a large file.
    var upload: RequestBody?

    var captures: [String: String] = [:]

    /// Parses a request; nil if its target is not valid percent-encoded UTF-8 text.
    init?(method: String, path: String, query: String?, fields: Fields = Fields(), body: [UInt8] = []) {
        var components: [String] = []
        var inner = path.utf8[...]
        if inner.first == UInt8(ascii: "/") { inner.removeFirst() }
        if inner.last == UInt8(ascii: "/") { inner.removeLast() }
        // Empty components count, so that an unset variable in a path does not lead to another path.
        for piece in inner.isEmpty ? [] : inner.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            guard let component = Self.decode(piece, plusIsSpace: false) else { return nil }
            components.append(component)
        }
        var parameters: [(name: String, value: String)] = []
        for pair in (query ?? "").utf8.split(separator: UInt8(ascii: "&")) {
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = Self.decode(parts[0], plusIsSpace: true),
                let value = parts.count == 2 ? Self.decode(parts[1], plusIsSpace: true) : ""
            else { return nil }
            parameters.append((name, value))
        }
        (self.method, self.components, self.query) = (method, components, parameters)
        (self.fields, self.body) = (fields, body)
    }

    /// A parameter of the query; nil if it is absent or empty.
    func value(_ name: String) -> String? {
        query.first { $0.name == name }.flatMap { $0.value.isEmpty ? nil : $0.value }
    }

    func values(_ name: String) -> [String] { query.filter { $0.name == name }.map(\.value) }

    /// Decodes percent-escapes; nil for a broken escape or bytes that are not UTF-8.
    private static func decode(_ text: Substring.UTF8View, plusIsSpace: Bool) -> String? {
        let text = String(Substring(text))
        return PercentEncoding.decode(plusIsSpace ? text.replacing("+", with: " ") : text)
    }
}

/// A member of a small JSON body: a text, a whole number or a flag.
enum AdminScalar: Sendable, Equatable, Decodable {
    case null
    case flag(Bool)
    case number(Int64)
    case text(String)

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let flag = try? container.decode(Bool.self) {
            self = .flag(flag)
        } else if let number = try? container.decode(Int64.self) {
            self = .number(number)
        } else {
            self = .text(try container.decode(String.self))
        }
    }

    /// The value as a text; nil for flags, null and the empty text.
    var text: String? {
        switch self {
        case .text(let text): text.isEmpty ? nil : text
        case .number(let number): String(number)
        case .flag, .null: nil
        }
    }

    /// The value as a flag; a parameter without a value means true.
    var flag: Bool? {
        switch self {
        case .flag(let flag): flag
        case .text("true"), .text("1"), .text(""): true
        case .text("false"), .text("0"): false
        case .text, .number, .null: nil
        }
    }
}

extension AdminRequest {
    /// A boolean parameter of the query; false if it is absent.
    func flag(_ name: String) throws(ProblemDocument) -> Bool {
        guard let value = values(name).first else { return false }
        guard let flag = AdminScalar.text(value).flag else {
            throw ProblemDocument.badRequest("\(name) must be true or false; it was \"\(value)\"")
        }
        return flag
    }

    /// A whole number in the query; nil if it is absent or empty.
    func integer(_ name: String, in range: ClosedRange<Int>) throws -> Int? {
        guard let text = value(name) else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw ProblemDocument.badRequest("\(name) must be a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// A query parameter with one of a few values, listed in errors in this order; nil if it is absent or empty.
    func choice<Value>(_ name: String, of words: KeyValuePairs<String, Value>) throws -> Value? {
        try choice(name, among: words.map { ($0.key, $0.value) })
    }

    func choice<Value>(_ name: String, of type: Value.Type) throws -> Value?
    where Value: CaseIterable & RawRepresentable<String> {
        try choice(name, among: type.allCases.map { ($0.rawValue, $0) })
    }

    private func choice<Value>(_ name: String, among words: [(word: String, value: Value)]) throws -> Value? {
        guard let text = value(name) else { return nil }
        if let chosen = words.first(where: { $0.word == text }) { return chosen.value }
        let all = words.map(\.word)
        let list = all.dropLast().joined(separator: ", ") + " or " + (all.last ?? "")
        throw ProblemDocument.badRequest("\(name) is \(list); it was \"\(text)\"")
    }

    /// A duration in a body, such as `90s`, in microseconds.
    static func microseconds(_ text: String, of member: String) throws -> Int64 {
        do throws(InvalidValue) {
            let (seconds, attoseconds) = try Units.duration(text).components
            return seconds * 1_000_000 + attoseconds / 1_000_000_000_000
        } catch { throw ProblemDocument.badRequest("\(member): \(error.description)") }
    }

    var acceptsEvents: Bool { fields.combined("accept")?.lowercased().contains(EventStreamText.mediaType) == true }

    func capture(_ name: String) -> String { captures[name] ?? "" }

    /// The texts of the body's members by name, which must be of `names`; `advice` lists these in the error about another.
    func texts(_ names: [String], advice: String) throws -> [String: String] {
        var texts: [String: String] = [:]
        for (member, value) in try members(advice) {
            guard names.contains(member) else {
                throw ProblemDocument.badRequest("\(member) is not a member of this body: use \(advice)")
            }
            texts[member] = value.text
        }
        return texts
    }

    /// The members of the JSON object in the body, sorted by name; none if the body is empty.
    ///
    /// The media type does not matter: `curl -d` calls everything a form, and the guard keeps foreign pages out, not the type.
    ///
    /// - Parameter advice: the members that are read, for the error.
    func members(_ advice: String? = nil) throws -> [(name: String, value: AdminScalar)] {
        if body.allSatisfy({ $0 == 0x20 || (0x09...0x0D).contains($0) }) { return [] }
        do {
            let members = try JSONDecoder().decode([String: AdminScalar].self, from: Data(body))
            return members.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
        } catch {
            throw ProblemDocument.badRequest(
                "the body must be one JSON object whose members are texts, whole numbers or flags"
                    + (advice.map { "; use \($0)" } ?? "")
            )
        }
    }
}

struct Paging: Sendable, Equatable {
    static let maximum = 1000
    /// In the words of `next` in a body, and of what commands print.
    static let wrongAfter =
        "after must be the value at the end of the previous page: its `next`, or what follows \"continue with --after\""
    static let parameters: [AdminRoute.Parameter] = AdminRoute.Parameter.documented([
        "Rows of a page, 1 to \(maximum); 100 by default.": .init("limit", .integer),
        "The `next` of the previous page.": .init("after"),
    ])

    let limit: Int
    var after: Int64?

    init(_ request: AdminRequest) throws {
        limit = try Self.limit(request)
        if let text = request.value("after") {
            guard let cursor = Int64(text) else {
                throw ProblemDocument.badRequest(Self.wrongAfter)
            }
            after = cursor
        }
    }

    /// The page's size alone, for lists whose `after` is no number.
    static func limit(_ request: AdminRequest) throws -> Int { try request.integer("limit", in: 1...maximum) ?? 100 }
}

/// The upstream and the principal that a client wants data of.
enum Ownership {
    static let parameters: [AdminRoute.Parameter] = AdminRoute.Parameter.documented([
        "An upstream's name; every upstream's unless given.": .init("upstream"),
        "A principal's label, such as `anonymous`; every principal's unless given.": .init("principal"),
    ])
}

extension ProblemDocument {
    /// `detail` says what happened, and the remedy.
    init(_ status: Int, _ detail: String, fields: Fields = Fields()) {
        self.init(status: status, detail: detail)
        self.fields = fields
    }

    init(_ error: StoreError) { self.init(error == .closed ? 503 : 500, error.description) }

    init(_ error: any Error) {
        switch error {
        case let problem as ProblemDocument: self = problem
        case let error as StoreError: self.init(error)
        case let error as ConfigurationReplacementError: self.init(error)
        case let error as RecordingError: self.init(409, error.description)
        default: self.init(500, "\(error)")
        }
    }

    static func badRequest(_ detail: String) -> ProblemDocument { ProblemDocument(400, detail) }
    static func notFound(_ detail: String) -> ProblemDocument { ProblemDocument(404, detail) }
}
