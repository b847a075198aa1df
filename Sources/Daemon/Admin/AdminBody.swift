import FoundationEssentials

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

    /// The value as a text that says something; nil for flags, null and the empty text.
    var text: String? {
        switch self {
        case .text(let text): text.isEmpty ? nil : text
        case .number(let number): String(number)
        case .flag, .null: nil
        }
    }

    /// The value as a flag; a parameter without a value is a yes.
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
    /// The members of the JSON object in the body, sorted by name; none when the body is empty.
    ///
    /// The media type is not asked for: `curl -d` calls everything a form, and what keeps foreign pages out is the
    /// guard, not the type.
    func members() throws(Problem) -> [(name: String, value: AdminScalar)] {
        if body.allSatisfy({ $0 == 0x20 || (0x09...0x0D).contains($0) }) { return [] }
        do {
            let members = try JSONDecoder().decode([String: AdminScalar].self, from: Data(body))
            return members.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
        } catch {
            throw .badRequest("the body must be one JSON object whose members are texts, whole numbers or flags")
        }
    }
}
