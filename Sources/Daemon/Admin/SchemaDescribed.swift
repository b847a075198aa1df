import HTTPSemantics

/// What is described to programs by a JSON Schema; these are the words of it (as OpenAPI 3.1 has them).
protocol SchemaDescribed {}

extension SchemaDescribed {
    static func object(required: [String], _ properties: [(name: String, value: JSONText)]) -> JSONText {
        [
            "type": "object", "required": .array(required.map { .string($0) }), "properties": .object(properties),
        ]
    }

    static func list(_ items: JSONText) -> JSONText { ["type": "array", "items": items] }
    static func text(_ sentence: String) -> JSONText { typed("string", sentence) }
    static func flag(_ sentence: String) -> JSONText { typed("boolean", sentence) }
    static func integer(_ sentence: String) -> JSONText { typed("integer", sentence) }

    static func typed(_ type: String, _ sentence: String) -> JSONText {
        ["type": .string(type), "description": .string(sentence)]
    }
}
