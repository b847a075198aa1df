import HTTPSemantics

/// The body of a response, with a sentence for each member that needs one.
///
/// Members may be added in later versions; those that are here keep their meaning.
package protocol AdminBody: Codable, Sendable {
    /// By the member's name in Swift.
    static var sentences: [String: String] { get }
}

/// The JSON Schema of a response (as OpenAPI 3.1 has it), made from the type that is encoded and decoded.
///
/// The type is decoded from nothing: what it asks for is what its JSON contains, and what it asks for without insisting may
/// be absent.
enum ResponseSchema {
    static func make<Body: Decodable>(of type: Body.Type) -> JSONText {
        let notes = Notes()
        // Only a type that asks for a certain value could fail, and no response is one.
        _ = try? notes.read(type)
        return notes.schema
    }

    /// `time_to_live` for `timeToLive`, as the encoder has it.
    fileprivate static func snakeCase(_ name: String) -> String {
        name.reduce(into: "") { $0 += $1.isUppercase ? "_" + $1.lowercased() : String($1) }
    }
}

/// What a type asks for while it is decoded.
private final class Notes {
    private var type: JSONText?
    private var items: JSONText?
    private var isObject = false
    private var isMap = false
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

    func scalar<Value>(_ type: JSONText, _ value: Value) -> Value {
        self.type = type
        return value
    }

    func element<Value: Decodable>(_ type: Value.Type) throws -> Value {
        let notes = Notes()
        defer { items = notes.schema }
        return try notes.read(type)
    }

    func beginObject() { isObject = true }

    func beginMap() { isMap = true }

    func member<Value: Decodable>(_ name: String, _ type: Value.Type, isRequired: Bool) throws -> Value {
        let notes = Notes()
        asked.insert(name)
        defer {
            let sentence = sentences[name].map { [(name: "description", value: JSONText.string($0))] } ?? []
            let name = ResponseSchema.snakeCase(name)
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
        notes.beginObject()
        return KeyedDecodingContainer(MembersAsker(notes: notes))
    }
    func unkeyedContainer() -> any UnkeyedDecodingContainer { ElementAsker(notes: notes) }
    func singleValueContainer() -> any SingleValueDecodingContainer { ValueAsker(notes: notes) }
}

/// Asks for one value.
private struct ValueAsker: SingleValueDecodingContainer {
    let notes: Notes
    var codingPath: [any CodingKey] { [] }

    // Only what may be any JSON asks first whether it is null; then nothing more is known of it.
    func decodeNil() -> Bool { true }
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try notes.read(type) }
    func decode(_ type: Bool.Type) -> Bool { notes.scalar("boolean", false) }
    func decode(_ type: String.Type) -> String { notes.scalar("string", "") }
    func decode(_ type: Double.Type) -> Double { notes.scalar("number", 0) }
    func decode(_ type: Float.Type) -> Float { notes.scalar("number", 0) }
    func decode(_ type: Int.Type) -> Int { notes.scalar("integer", 0) }
    func decode(_ type: Int8.Type) -> Int8 { notes.scalar("integer", 0) }
    func decode(_ type: Int16.Type) -> Int16 { notes.scalar("integer", 0) }
    func decode(_ type: Int32.Type) -> Int32 { notes.scalar("integer", 0) }
    func decode(_ type: Int64.Type) -> Int64 { notes.scalar("integer", 0) }
    func decode(_ type: UInt.Type) -> UInt { notes.scalar("integer", 0) }
    func decode(_ type: UInt8.Type) -> UInt8 { notes.scalar("integer", 0) }
    func decode(_ type: UInt16.Type) -> UInt16 { notes.scalar("integer", 0) }
    func decode(_ type: UInt32.Type) -> UInt32 { notes.scalar("integer", 0) }
    func decode(_ type: UInt64.Type) -> UInt64 { notes.scalar("integer", 0) }
}

/// Asks for one element of a list.
private struct ElementAsker: UnkeyedDecodingContainer {
    let notes: Notes
    var currentIndex = 0
    var count: Int? { nil }
    var isAtEnd: Bool { currentIndex > 0 }
    var codingPath: [any CodingKey] { [] }

    init(notes: Notes) {
        self.notes = notes
    }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        currentIndex += 1
        return try notes.element(type)
    }

    mutating func decodeNil() -> Bool { false }
    mutating func decode(_ type: Bool.Type) throws -> Bool { try notes.element(type) }
    mutating func decode(_ type: String.Type) throws -> String { try notes.element(type) }
    mutating func decode(_ type: Double.Type) throws -> Double { try notes.element(type) }
    mutating func decode(_ type: Float.Type) throws -> Float { try notes.element(type) }
    mutating func decode(_ type: Int.Type) throws -> Int { try notes.element(type) }
    mutating func decode(_ type: Int8.Type) throws -> Int8 { try notes.element(type) }
    mutating func decode(_ type: Int16.Type) throws -> Int16 { try notes.element(type) }
    mutating func decode(_ type: Int32.Type) throws -> Int32 { try notes.element(type) }
    mutating func decode(_ type: Int64.Type) throws -> Int64 { try notes.element(type) }
    mutating func decode(_ type: UInt.Type) throws -> UInt { try notes.element(type) }
    mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try notes.element(type) }
    mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try notes.element(type) }
    mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try notes.element(type) }
    mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try notes.element(type) }
    mutating func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        Asker(notes: notes).container(keyedBy: type)
    }
    mutating func nestedUnkeyedContainer() -> any UnkeyedDecodingContainer { self }
    mutating func superDecoder() -> any Decoder { Asker(notes: notes) }
}

/// Asks for members; of a dictionary, whose keys are not declared, for one that stands for all.
private struct MembersAsker<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let notes: Notes
    var codingPath: [any CodingKey] { [] }

    var allKeys: [Key] {
        notes.beginMap()
        return Key(stringValue: "").map { [$0] } ?? []
    }

    func contains(_ key: Key) -> Bool { true }
    func decodeNil(forKey key: Key) -> Bool { false }
    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try notes.member(key.stringValue, type, isRequired: true)
    }
    func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
        try notes.member(key.stringValue, type, isRequired: false) as Value
    }
    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool {
        try notes.member(key.stringValue, type, isRequired: true)
    }
    func decode(_ type: String.Type, forKey key: Key) throws -> String {
        try notes.member(key.stringValue, type, isRequired: true)
    }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double {
        try notes.member(key.stringValue, type, isRequired: true)
    }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float {
        try notes.member(key.stringValue, type, isRequired: true)
    }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int {
        try notes.member(key.stringValue, type, isRequired: true)
    }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 {
        try notes.member(key.stringValue, type, isRequired: true)
    }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 {
        try notes.member(key.stringValue, type, isRequired: true)
    }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 {
        try notes.member(key.stringValue, type, isRequired: true)
    }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 {
        try notes.member(key.stringValue, type, isRequired: true)
    }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt {
        try notes.member(key.stringValue, type, isRequired: true)
    }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 {
        try notes.member(key.stringValue, type, isRequired: true)
    }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 {
        try notes.member(key.stringValue, type, isRequired: true)
    }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 {
        try notes.member(key.stringValue, type, isRequired: true)
    }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 {
        try notes.member(key.stringValue, type, isRequired: true)
    }
    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
        try notes.member(key.stringValue, type, isRequired: false) as Bool
    }
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
        try notes.member(key.stringValue, type, isRequired: false) as String
    }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
        try notes.member(key.stringValue, type, isRequired: false) as Double
    }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
        try notes.member(key.stringValue, type, isRequired: false) as Int
    }
    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? {
        try notes.member(key.stringValue, type, isRequired: false) as Int64
    }
    func nestedContainer<Inner: CodingKey>(keyedBy type: Inner.Type, forKey key: Key) -> KeyedDecodingContainer<Inner> {
        Asker(notes: notes).container(keyedBy: type)
    }
    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedDecodingContainer { ElementAsker(notes: notes) }
    func superDecoder() -> any Decoder { Asker(notes: notes) }
    func superDecoder(forKey key: Key) -> any Decoder { Asker(notes: notes) }
}
