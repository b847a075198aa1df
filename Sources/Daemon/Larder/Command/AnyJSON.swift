import HTTPSemantics

/// Any JSON value, for showing it to people.
///
/// Members come in alphabetical order; programs ask for `--json`, which does not change that.
struct AnyJSON: Decodable {
    private let json: JSONText

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            json = .null
        } else if let value = try? container.decode(Bool.self) {
            json = .bool(value)
        } else if let value = try? container.decode(Int64.self) {
            json = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            json = .number(value)
        } else if let value = try? container.decode(String.self) {
            json = ReadableJSON.number(in: value).map { .raw(Array($0.utf8)) } ?? .string(value)
        } else if let value = try? container.decode([AnyJSON].self) {
            json = .array(value.map(\.json))
        } else {
            let members = try container.decode([String: AnyJSON].self).sorted { $0.key < $1.key }
            json = .object(members.map { (name: $0.key, value: $0.value.json) })
        }
    }

    var text: String { json.text }
    var prettyText: String { json.prettyText }
}
