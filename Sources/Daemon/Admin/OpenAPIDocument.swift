import HTTPSemantics

/// The description of the admin side for programs, made from the table of routes (OpenAPI 3.1).
enum OpenAPIDocument {
    static func describe(_ routes: [AdminRoute], version: String) -> JSONText {
        var paths: [(name: String, value: JSONText)] = []
        for route in routes where !paths.contains(where: { $0.name == route.path }) {
            let operations = routes.filter { $0.path == route.path }
            paths.append((route.path, .object(operations.map { ($0.method.lowercased(), operation($0)) })))
        }
        return [
            "openapi": "3.1.0",
            "info": [
                "title": "Larder, admin side", "version": .string(version),
                "description": """
                Over TCP everything but health, readiness and metrics needs the token in `admin.token` beside the store. \
                On a Unix socket its permissions decide. Errors are problem documents (RFC 9457).
                """,
            ],
            "paths": .object(paths),
            "components": [
                "securitySchemes": ["token": ["type": "http", "scheme": "bearer"]],
                "schemas": ["Problem": problemSchema],
            ],
        ]
    }

    private static func operation(_ route: AdminRoute) -> JSONText {
        let parameters =
            route.captureNames.map { parameter(.init($0, isRequired: true), in: "path") }
            + route.query.map { parameter($0, in: "query") }
        let properties = route.body.map { (name: $0.name, value: schema($0.kind, sentence: $0.sentence)) }
        let object: JSONText = ["type": "object", "additionalProperties": false, "properties": .object(properties)]
        let isGuarded = route.access == .guarded
        var content: [(name: String, value: JSONText)] = []
        if let schema = route.schema {
            content.append(("application/json", ["schema": ResponseSchema.make(of: schema)]))
        }
        if route.mediaType != "application/json" || content.isEmpty {
            content.append((route.mediaType, ["schema": .object([])]))
        }
        return .object(present: [
            "summary": .string(route.sentence), "operationId": .string(operationID(route)),
            "parameters": parameters.isEmpty ? nil : .array(parameters),
            "requestBody": route.body.isEmpty ? nil : ["content": ["application/json": ["schema": object]]],
            "responses": .object(present: [
                "200": ["description": "Done.", "content": .object(content)],
                "401": isGuarded ? problem("The token is missing or wrong.") : nil,
                "default": problem("What went wrong."),
            ]),
            "security": isGuarded ? [["token": .array([])], .object([])] : nil,
        ])
    }

    /// `getObjectsModelId` for `GET /objects/{model}/{id}`.
    private static func operationID(_ route: AdminRoute) -> String {
        let words = route.path.split { !$0.isLetter && !$0.isNumber }.map { $0.prefix(1).uppercased() + $0.dropFirst() }
        return route.method.lowercased() + (words.isEmpty ? "Page" : words.joined())
    }

    private static func parameter(_ parameter: AdminRoute.Parameter, in place: String) -> JSONText {
        let one = schema(parameter.kind, sentence: nil)
        return .object(present: [
            "name": .string(parameter.name), "in": .string(place), "required": .bool(parameter.isRequired),
            "schema": parameter.isRepeatable ? ["type": "array", "items": one] : one,
            "description": parameter.sentence.isEmpty ? nil : .string(parameter.sentence),
        ])
    }

    private static func schema(_ kind: AdminRoute.Parameter.Kind, sentence: String?) -> JSONText {
        .object(present: ["type": .string(kind.rawValue), "description": sentence.map { .string($0) }])
    }

    private static func problem(_ description: String) -> JSONText {
        let reference: JSONText = ["schema": ["$ref": "#/components/schemas/Problem"]]
        return [
            "description": .string(description),
            "content": .object([(name: ProblemDocument.mediaType, value: reference)]),
        ]
    }

    private static let problemSchema: JSONText = [
        "type": "object", "required": ["type", "title", "status", "detail"],
        "properties": [
            "type": ["type": "string"], "title": ["type": "string"], "status": ["type": "integer"],
            "detail": ["type": "string"],
        ],
    ]
}

/// The JSON Schema of a response (as in OpenAPI 3.1), derived from the type that is encoded and decoded.
///
/// The type is decoded from an empty source: the members that it requests are those of its JSON, and the ones that it does not
/// require may be absent.
enum ResponseSchema {
    static func make<Body: Decodable>(of type: Body.Type) -> JSONText {
        let notes = Notes()
        // Only a type that requires a certain value could fail, and no response does.
        _ = try? notes.read(type)
        return notes.schema
    }
}

private final class Notes {
    private var type: JSONText?
    private var items: JSONText?
    var isObject = false
    var isMap = false
    private var required: [JSONText] = []
    private var properties: [(name: String, value: JSONText)] = []
    private var sentences: [String: String] = [:]
    private var asked: Set<String> = []

    func read<Value: Decodable>(_ type: Value.Type) throws -> Value {
        sentences = (type as? any AdminBody.Type)?.sentences ?? [:]
        let value = try Value(from: Asker(notes: self))
        let unused = sentences.keys.filter { !asked.contains($0) }
        assert(unused.isEmpty, "\(type) has no member \(unused)")
        return value
    }

    var schema: JSONText { .object(members) }

    private var members: [(name: String, value: JSONText)] {
        if let items { return [("type", "array"), ("items", items)] }
        if isMap { return [("type", "object"), ("additionalProperties", properties[0].value)] }
        if isObject {
            return [("type", "object"), ("required", .array(required)), ("properties", .object(properties))]
        }
        return type.map { [("type", $0)] } ?? []
    }

    /// Notes the type of a plain value and makes one up; nil for other types.
    func scalar<Value>(_ type: Value.Type) -> Value? {
        let value: Any
        switch type {
        case is Bool.Type: (self.type, value) = ("boolean", false)
        case is String.Type: (self.type, value) = ("string", "")
        case let number as any BinaryInteger.Type: (self.type, value) = ("integer", number.init(0 as Int))
        case let number as any BinaryFloatingPoint.Type: (self.type, value) = ("number", number.init(0 as Int))
        default: return nil
        }
        return value as? Value
    }

    func element<Value: Decodable>(_ type: Value.Type) throws -> Value {
        let notes = Notes()
        defer { items = notes.schema }
        return try notes.read(type)
    }

    func member<Value: Decodable>(_ name: String, _ type: Value.Type, isRequired: Bool) throws -> Value {
        let notes = Notes()
        asked.insert(name)
        defer {
            let sentence = sentences[name].map { [(name: "description", value: JSONText.string($0))] } ?? []
            let name = name.snakeCased
            if isRequired { required.append(.string(name)) }
            properties.append((name, .object(notes.members + sentence)))
        }
        return try notes.read(type)
    }
}

private struct Asker: Decoder {
    let notes: Notes
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        notes.isObject = true
        return KeyedDecodingContainer(MembersAsker(notes: notes))
    }
    func unkeyedContainer() -> any UnkeyedDecodingContainer { ElementAsker(notes: notes) }
    func singleValueContainer() -> any SingleValueDecodingContainer { ValueAsker(notes: notes) }
}

// In each of the containers one generic method serves for those that the protocol requires for every plain type.

private struct ValueAsker: SingleValueDecodingContainer {
    let notes: Notes
    var codingPath: [any CodingKey] { [] }

    // Only a type that may be any JSON checks for null first; then nothing more is known about it.
    func decodeNil() -> Bool { true }
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try notes.scalar(type) ?? notes.read(type) }
}

private struct ElementAsker: UnkeyedDecodingContainer {
    let notes: Notes
    var currentIndex = 0
    var count: Int? { nil }
    var isAtEnd: Bool { currentIndex > 0 }
    var codingPath: [any CodingKey] { [] }

    init(notes: Notes) { self.notes = notes }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        currentIndex += 1
        return try notes.element(type)
    }

    mutating func decodeNil() -> Bool { false }
    mutating func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        Asker(notes: notes).container(keyedBy: type)
    }
    mutating func nestedUnkeyedContainer() -> any UnkeyedDecodingContainer { self }
    mutating func superDecoder() -> any Decoder { Asker(notes: notes) }
}

/// Decodes members; for a dictionary, whose keys are not declared, one that stands for all.
private struct MembersAsker<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let notes: Notes
    var codingPath: [any CodingKey] { [] }

    var allKeys: [Key] {
        notes.isMap = true
        return Key(stringValue: "").map { [$0] } ?? []
    }

    func contains(_ key: Key) -> Bool { true }
    func decodeNil(forKey key: Key) -> Bool { false }
    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try notes.member(key.stringValue, type, isRequired: true)
    }
    private func optional<Value: Decodable>(_ type: Value.Type, _ key: Key) throws -> Value? {
        try notes.member(key.stringValue, type, isRequired: false) as Value
    }
    func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
        try optional(type, key)
    }
    // The protocol has separate methods for plain types, whose defaults would request a required value.
    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? { try optional(type, key) }
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? { try optional(type, key) }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? { try optional(type, key) }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? { try optional(type, key) }
    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? { try optional(type, key) }
    func nestedContainer<Inner: CodingKey>(keyedBy type: Inner.Type, forKey key: Key) -> KeyedDecodingContainer<Inner> {
        Asker(notes: notes).container(keyedBy: type)
    }
    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedDecodingContainer { ElementAsker(notes: notes) }
    func superDecoder() -> any Decoder { Asker(notes: notes) }
    func superDecoder(forKey key: Key) -> any Decoder { Asker(notes: notes) }
}
