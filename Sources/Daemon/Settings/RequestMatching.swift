/// What a replay compares of requests, besides method, path, query, body and representation.
package struct RequestMatching: Sendable, ConfigSection, Equatable {
    package var query = Query()
    /// Request fields whose values must match as well.
    package var headers: [String] = []
    package var body = Body()

    package init() {}

    static let keys: [ConfigKey<RequestMatching>] = documented([
        "What of the query counts.": .section("query", \.query),
        "Request fields that count as well.":
            .texts("headers", \.headers, example: "[X-Tenant]", check: FieldName.complaint),
        "What of a JSON body counts.": .section("body", \.body),
    ])

    package struct Query: Sendable, ConfigSection, Equatable {
        /// Names of ignored query parameters; `*` stands for any text.
        package var ignore: [String] = []

        static let keys: [ConfigKey<Query>] = documented([
            "Query parameters that do not count; \"*\" stands for any text.":
                .texts("ignore", \.ignore, example: "[nonce, \"utm_*\"]", check: ParameterName.complaint)
        ])
    }

    package struct Body: Sendable, ConfigSection, Equatable {
        /// JSON pointers of ignored members.
        package var ignore: [String] = []

        static let keys: [ConfigKey<Body>] = documented([
            "JSON pointers of members that do not count.":
                .texts("ignore", \.ignore, example: "[/nonce, /sent_at]") { pointer in
                    pointer.hasPrefix("/") ? nil : "is no JSON pointer; write \"/\(pointer)\""
                }
        ])
    }
}
