import Testing

@testable import Settings

/// Keys that leave each other nothing to say, and values that could never mean anything.
struct ConfigContradictionTests {
    @Test(
        arguments: [
            (
                "validate_across: computed",
                "computed needs to know how the upstream makes its entity tags; add for example"
            ),
            ("etag: { sha256: [Acept, body] }", "\"Acept\" is neither a field of \"principal\" nor one of \"context\""),
            ("etag: { sha256: [body, Accept] }", "the last member must be body"),
            ("etag: { sha256: [] }", "the last member must be body"),
            ("etag: { sha256: [Accept, accept, body] }", "\"accept\" occurs twice"),
            ("etag: { sha256: [\"a b\", body] }", "\"a b\" is not a header field's name"),
            ("etag: { md5: [body] }", "\"md5\""),
            (
                "validate_across: computed, etag: { sha256: [body] }, shared: true",
                "clients have their responses in common"
            ),
            (
                "validate_across: computed, etag: { sha256: [Accept, X-GitHub-OTP, Cookie, body] }, principal: [+X-GitHub-OTP]",
                nil
            ),
        ] as [(String, String?)]
    )
    func `a recipe for entity tags names fields that Larder knows, and then the body`(keys: String, part: String?) {
        let yaml = "upstreams: { a: { url: \"https://a.example\", \(keys) } }"
        let found = ConfigFile.parse(yaml, file: "x", environment: [:]).diagnostics.map(\.description)
        #expect(found.count == (part == nil ? 0 : 1), "\(found)")
        if let part { #expect(found.first?.contains(part) == true, "\(found)") }
    }

    private func complaints(_ yaml: String) -> [String] {
        ConfigFile.parse("upstreams: { a: { url: \"https://a.example\" } }\n" + yaml, file: "x", environment: [:])
            .diagnostics.map(\.description)
    }

    @Test(arguments: [
        ("../b", "paths are looked at without dot segments; write the path that \"..\" leads to"),
        ("a/../b", "paths are looked at without dot segments"), ("./b", "paths are looked at without dot segments"),
        ("%2e%2e/b", "write the path that \"%2e%2e\" leads to"), ("a/%2E", "paths are looked at without dot segments"),
        ("https://b.example/c", "a pattern is a path below the upstream's URL; leave out \"https://b.example\""),
        ("//b.example/c", "what begins with two slashes names a host"), ("a//b", "it has two slashes in a row"),
        ("", "it is empty; write \"/\" for the root itself"), ("a#b", "one that is part of a name is written %23"),
        ("a?b", "leave out what follows \"?\""), ("%zz", "is not valid percent-encoded UTF-8"),
    ])
    func `a pattern that no path can match is refused, under path and under invalidates`(text: String, part: String) {
        let invalidated = complaints("routes:\n  - { path: a, invalidates: [\"\(text)\"] }")
        #expect(invalidated.count == 1)
        #expect(invalidated.first?.hasPrefix("x:3:30: error: path \"\(text)\": ") == true, "\(invalidated)")
        #expect(invalidated.first?.contains(part) == true, "\(invalidated)")
        let path = complaints("routes:\n  - { path: \"\(text)\" }")
        #expect(path.first?.contains(part) == true, "\(path)")
    }

    @Test(
        arguments: [
            ("method: POST, read: true", nil), ("method: POST, read: graphql, fresh: 1m, stale: 1h", nil),
            ("method: POST, read: false", nil), ("method: POST, read: false, fresh: 1m", nil),
            ("read: true", "\"read\" applies to POST, but the rule to every method; write \"method: POST\", or"),
            ("method: GET, read: true", "\"read\" applies to POST, but the rule to GET; write \"method: POST\", or"),
            ("method: POST, read: graphq", "\"graphq\" is not one of false, true, graphql; did you mean \"graphql\"?"),
            (
                "method: POST, read: true, invalidates: [b]",
                "\"read\" says that the request changes nothing; remove \"read\" or"
            ),
            ("method: POST, read: true, cache: never", "\"cache: never\" stores nothing that could be read again"),
            (
                "method: POST, read: true, status: 404",
                "\"read\" is looked at before there is a response; remove \"status\""
            ),
            ("method: POST, read: true, content_type: a/b", "before there is a response; remove \"content_type\""),
            ("method: POST, fresh: 1m", "remove \"method\" or \"fresh\", or add \"read: true\" if it changes nothing"),
            ("method: PUT, fresh: 1m", "but the rule to PUT; remove \"method\" or \"fresh\""),
        ] as [(String, String?)]
    )
    func `read is for a POST that changes nothing and whose response may be stored`(keys: String, part: String?) {
        let found = complaints("routes:\n  - { path: a, \(keys) }")
        #expect(found.count == (part == nil ? 0 : 1), "\(found)")
        if let part { #expect(found.first?.contains(part) == true, "\(found)") }
    }

    @Test(arguments: [
        (
            "{ identity: [], on_delete: remove }",
            "2:41: error: objects of \"M\" have no identity, and so other responses never learn"
        ),
        (
            "{ identity: [], modified: at }",
            "2:40: error: objects of \"M\" have no identity, and so two responses are never"
        ),
        (
            "{ identity: [], keys: [a] }",
            "2:36: error: objects of \"M\" have no identity, and so none is found by a key"
        ),
        ("{ identity: [], identity_types: strict }", "2:46: error: objects of \"M\" have no identity"),
        ("{ identity: [], deleted_when: { has: a } }", "2:44: error: objects of \"M\" have no identity"),
        ("{ identity: id, modified: \"@url.id\" }", "2:40: error: \"@url.id\" does not come with the object"),
        ("{ identity: [a, b], modified: b }", "2:44: error: \"b\" is part of the identity, which never changes"),
    ])
    func `a model's keys without effect are reported at their line`(model: String, start: String) {
        let found = complaints("models: { M: \(model) }")
        #expect(found.count == 1 && found[0].hasPrefix("x:" + start), "\(found)")
    }

    @Test(arguments: [
        ("{ path: \"a/{id}\", object: { id: id } }", "x:4:31: error: \"object\" says which object of a model"),
        (
            "{ path: \"a/{id}\", model: N, object: { id: id } }",
            "x:4:41: error: objects of \"N\" have no identity, so no path names one"
        ),
        (
            "{ path: a, status: 404, invalidates: [b] }",
            "x:4:43: error: a write with such a response has changed nothing"
        ),
        (
            "{ path: a, status: 5xx, invalidates: [b] }",
            "x:4:43: error: a write with such a response has changed nothing"
        ),
        ("{ path: a, method: GET, invalidates: [b] }", "x:4:43: error: \"invalidates\" applies to writes"),
        (
            "{ path: a, method: PATCH, deletes: false }",
            "x:4:40: error: \"deletes\" applies to DELETE, but the rule to PATCH"
        ),
    ])
    func `a rule's keys without effect are reported at their line`(rule: String, start: String) {
        let found = complaints("models: { N: { identity: [] } }\nroutes:\n  - \(rule)")
        #expect(found.count == 1 && found[0].hasPrefix(start), "\(found)")
    }

    @Test func `a model or rule without contradictions is accepted`() {
        let models = """
            models:
              M: { identity: id, modified: at, local: [at], on_delete: keep, deleted_when: { has: gone } }
              B: { base: M, on_delete: remove, keys: [name] }
            routes:
              - { path: "m/{id}", model: M, object: { id: id }, deletes: false, invalidates: ["/", "**", "m/{id}", "a%20b", "a.b/..c"] }
              - { path: n, status: 3xx, invalidates: [m] }
            """
        #expect(complaints(models).isEmpty, "\(complaints(models))")
    }
}
