import Mapping
import Yams

/// What a rule requires of a request and its response.
extension RouteDraft {
    static let demands: [ConfigKey<RouteDraft>] = [
        ConfigKey(
            "path",
            .text,
            example: "\"users/{login}\"",
            isRequired: true,
            "The pattern, in quotes. {name} and {name:#} match like \"*\" and \"#\", and capture what they match."
        ) { node, draft, reader in
            draft.path = reader.text(node, wanted: "a path pattern in quotes")
        },
        ConfigKey(
            "method",
            .text,
            example: "GET",
            "The method that the rule is for; GET includes HEAD. Without it: every method."
        ) { node, draft, reader in
            guard let text = reader.text(node, wanted: "a method such as GET") else { return }
            guard FieldName.complaint(text) == nil, text == text.uppercased() else {
                reader.errorHere(
                    node.place,
                    "\"\(text)\" is not a method; methods are in capitals, such as "
                        + (FieldName.complaint(text) == nil ? "\"\(text.uppercased())\"" : "\"GET\"")
                )
                return
            }
            draft.route.declaration.method = text
        },
        ConfigKey(
            "status",
            .either([.integer(100...599), .text]),
            example: "200",
            "The status that the rule is for: 201, 4xx or any. Without it: 2xx under routes, every other status under errors."
        ) { node, draft, reader in
            guard let text = reader.text(node, wanted: "a status such as 201, a class such as 2xx, or any") else {
                return
            }
            guard let status = StatusPattern(text) else {
                reader.errorHere(
                    node.place,
                    "\"\(text)\" is not a status; write one such as 201, a class such as 2xx, or any"
                )
                return
            }
            draft.status = status
        },
        ConfigKey(
            "query",
            .named(.text, name: "state"),
            example: "{ state: open }",
            "Query parameters that the request must have, with this value, or with any value if it is \"*\"."
        ) { node, draft, reader in
            guard let pairs = reader.pairs(node, wanted: "names of query parameters, each with a value") else { return }
            for (name, _, value) in pairs {
                guard let text = reader.text(value, wanted: "a value, or \"*\" for any") else { continue }
                draft.route.declaration.query[name] = .some(text == "*" ? nil : text)
            }
        },
        ConfigKey(
            "content_type",
            .text,
            example: "application/json",
            "The media type that the response must have."
        ) { node, draft, reader in
            guard let text = reader.text(node, wanted: "a media type such as application/json") else { return }
            guard text.split(separator: "/", omittingEmptySubsequences: false).count == 2, !text.contains(";") else {
                return reader.errorHere(
                    node.place,
                    "\"\(text)\" is not a media type without parameters, such as application/json"
                )
            }
            draft.route.declaration.contentType = text.lowercased()
        },
        .boolean(
            "fallthrough",
            \.route.declaration.fallsThrough,
            "Whether a more general pattern is tried if no rule of this one fits the method, status, query and type."
        ),
    ]
}

extension StatusPattern {
    /// Reads `201`, `2xx`, `any` or `*`.
    init?(_ text: String) {
        if text == "any" || text == "*" {
            self = .any
        } else if text.utf8.count == 3, text.hasSuffix("xx"), let digit = text.first?.wholeNumberValue,
            (1...5).contains(digit)
        {
            self = .class(digit)
        } else if let status = Int(text), (100...599).contains(status) {
            self = .exact(status)
        } else {
            return nil
        }
    }

    /// Whether a response with it can mean that a request was carried out.
    var mayBeSuccess: Bool {
        switch self {
        case .exact(let status): (200..<400).contains(status)
        case .class(let digit): digit == 2 || digit == 3
        case .any: true
        }
    }

    var exact: Int? {
        if case .exact(let status) = self { status } else { nil }
    }
}
