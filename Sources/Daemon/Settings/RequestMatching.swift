import HTTPSemantics

/// What a replay compares of requests, besides method, path, query, body and representation.
package struct RequestMatching: Sendable, Equatable {
    package var query = Query()
    /// Request fields whose values must match as well.
    package var headers: [String] = []
    package var body = Body()

    package init() {}

    package struct Query: Sendable, Equatable {
        /// Names of ignored query parameters; `*` stands for any text.
        package var ignore: [String] = []
    }

    package struct Body: Sendable, Equatable {
        /// JSON pointers of ignored members.
        package var ignore: [String] = []
    }
}

extension RequestMatching: ConfigSection {
    static let keys: [ConfigKey<RequestMatching>] = documented([
        "What of the query counts.": .section("query", \.query),
        "Request fields that count as well.":
            .texts("headers", \.headers, example: "[X-Tenant]", check: FieldName.complaint),
        "What of a JSON body counts.": .section("body", \.body),
    ])
}

extension RequestMatching.Query: ConfigSection {
    static let keys: [ConfigKey<RequestMatching.Query>] = documented([
        "Query parameters that do not count; \"*\" stands for any text.":
            .texts("ignore", \.ignore, example: "[nonce, \"utm_*\"]", check: ParameterName.complaint)
    ])
}

extension RequestMatching.Body: ConfigSection {
    static let keys: [ConfigKey<RequestMatching.Body>] = documented([
        "JSON pointers of members that do not count.": .texts(
            "ignore",
            \.ignore,
            example: "[/nonce, /sent_at]",
            check: { $0.hasPrefix("/") ? nil : "\"\($0)\" is no JSON pointer; write \"/\($0)\"" }
        )
    ])
}
