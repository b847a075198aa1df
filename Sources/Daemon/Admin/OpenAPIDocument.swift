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
                Over TCP everything but health, readiness and metrics wants the token in `admin.token` beside the store. \
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
        var members: [(name: String, value: JSONText)] = [
            ("summary", .string(route.sentence)),
            ("operationId", .string(operationID(route))),
        ]
        let parameters =
            route.captureNames.map { parameter(.init(name: $0, sentence: "", isRequired: true), in: "path") }
            + route.query.map { parameter($0, in: "query") }
        if !parameters.isEmpty { members.append(("parameters", .array(parameters))) }
        if !route.body.isEmpty {
            let properties = route.body.map { (name: $0.name, value: schema($0.kind, sentence: $0.sentence)) }
            let object: JSONText = ["type": "object", "additionalProperties": false, "properties": .object(properties)]
            members.append(("requestBody", ["content": ["application/json": ["schema": object]]]))
        }
        var responses: [(name: String, value: JSONText)] = []
        var content: [(name: String, value: JSONText)] = []
        if let schema = route.schema {
            content.append(("application/json", ["schema": ResponseSchema.make(of: schema)]))
        }
        if route.mediaType != "application/json" || content.isEmpty {
            content.append((route.mediaType, ["schema": .object([])]))
        }
        responses.append(("200", ["description": "Done.", "content": .object(content)]))
        if route.access == .guarded { responses.append(("401", problem("The token is missing or wrong."))) }
        responses.append(("default", problem("What went wrong.")))
        members.append(("responses", .object(responses)))
        if route.access == .guarded { members.append(("security", [["token": .array([])], .object([])])) }
        return .object(members)
    }

    /// `getObjectsModelId` for `GET /objects/{model}/{id}`.
    private static func operationID(_ route: AdminRoute) -> String {
        let words = route.path.split { !$0.isLetter && !$0.isNumber }.map { $0.prefix(1).uppercased() + $0.dropFirst() }
        return route.method.lowercased() + (words.isEmpty ? "Page" : words.joined())
    }

    private static func parameter(_ parameter: AdminRoute.Parameter, in place: String) -> JSONText {
        let one = schema(parameter.kind, sentence: nil)
        var members: [(name: String, value: JSONText)] = [
            ("name", .string(parameter.name)), ("in", .string(place)), ("required", .bool(parameter.isRequired)),
            ("schema", parameter.isRepeatable ? ["type": "array", "items": one] : one),
        ]
        if !parameter.sentence.isEmpty { members.append(("description", .string(parameter.sentence))) }
        return .object(members)
    }

    private static func schema(_ kind: AdminRoute.Parameter.Kind, sentence: String?) -> JSONText {
        var members: [(name: String, value: JSONText)] = [("type", .string(kind.rawValue))]
        if let sentence { members.append(("description", .string(sentence))) }
        return .object(members)
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
