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

        package init() {}
    }

    package struct Body: Sendable, Equatable {
        /// JSON pointers of ignored members.
        package var ignore: [String] = []

        package init() {}
    }
}

extension RouteDraft {
    /// How a replay finds recorded requests.
    static let replaying: [ConfigKey<RouteDraft>] = [
        .section(
            "match",
            \.route.match,
            "Which requests are the same to a replay. Without it: method, path, query, body and representation count."
        )
    ]
}

extension RequestMatching: ConfigSection {
    static let keys: [ConfigKey<RequestMatching>] = [
        .section("query", \.query, "What of the query counts."),
        .texts(
            "headers",
            \.headers,
            example: "[X-Tenant]",
            "Request fields that count as well.",
            check: FieldName.complaint
        ),
        .section("body", \.body, "What of a JSON body counts."),
    ]
}

extension RequestMatching.Query: ConfigSection {
    static let keys: [ConfigKey<RequestMatching.Query>] = [
        .texts(
            "ignore",
            \.ignore,
            example: "[nonce, \"utm_*\"]",
            "Query parameters that do not count; \"*\" stands for any text.",
            check: ParameterName.complaint
        )
    ]
}

extension RequestMatching.Body: ConfigSection {
    static let keys: [ConfigKey<RequestMatching.Body>] = [
        .texts(
            "ignore",
            \.ignore,
            example: "[/nonce, /sent_at]",
            "JSON pointers of members that do not count.",
            check: { $0.hasPrefix("/") ? nil : "\"\($0)\" is no JSON pointer; write \"/\($0)\"" }
        )
    ]
}
