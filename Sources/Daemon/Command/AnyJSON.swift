/// Any JSON value, for showing it to people.
///
/// Members come in alphabetical order and numbers in Swift's spelling; programs
/// ask for `--json`, which changes neither.
enum AnyJSON: Decodable {
    case value(ConfigJSON)
    case number(Double)
    case array([AnyJSON])
    case object([String: AnyJSON])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .value(.null)
        } else if let value = try? container.decode(Bool.self) {
            self = .value(.boolean(value))
        } else if let value = try? container.decode(Int.self) {
            self = .value(.number(value))
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .value(.string(value))
        } else if let value = try? container.decode([AnyJSON].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: AnyJSON].self))
        }
    }

    var text: String { json.text }
    var prettyText: String { json.prettyText }

    private var json: ConfigJSON {
        switch self {
        case .value(let value): value
        case .number(let value): .string("\(value)")
        case .array(let elements): .array(elements.map(\.json))
        case .object(let members): .object(members.sorted { $0.key < $1.key }.map { ($0.key, $0.value.json) })
        }
    }
}
