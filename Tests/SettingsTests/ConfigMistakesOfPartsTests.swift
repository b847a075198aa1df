import Testing

/// Parts of a config that do not go together, and rules that say nothing.
struct ConfigMistakesOfPartsTests {
    @Test func `upstreams whose addresses or prefixes collide are reported`() {
        #expect(
            complaints("upstreams: { a: { url: 'https://a.example' }, b: { url: 'https://b.example' } }") == [
                "1:47: \"b\" and \"a\" are both served at 127.0.0.1:8787; give each a prefix, or an address of its own by \"listen\""
            ]
        )
        #expect(
            complaints(
                "upstreams: { a: { url: 'https://a.example', prefix: /x }, b: { url: 'https://b.example', prefix: /x/y } }"
            ) == [
                "1:98: the prefix /x/y of \"b\" and /x of \"a\" overlap at 127.0.0.1:8787; let neither begin with the other"
            ]
        )
        // Whatever is wrong with the addresses.
        let mistakes = complaints(
            "upstreams: { a: { url: 'https://a.example', prefix: /x }, b: { url: 'https://b.example', prefix: /x },"
                + " c: { url: 'https://c.example' }, d: { url: 'https://d.example', listen: nonsense } }\nlisten: nonsense"
        )
        #expect(mistakes.count == 4)
        for text in [
            "the prefix /x of \"b\" and /x of \"a\" overlap at the same addresses; let neither begin with the other",
            "\"c\" and \"a\" are both served at the same addresses; give each a prefix, or an address of its own by \"listen\"",
        ] {
            #expect(mistakes.contains { $0.hasSuffix(text) }, "\(text)")
        }
        #expect(
            complaints(
                "upstreams: { a: { url: 'https://a.example' }, A: { url: 'https://b.example', listen: '127.0.0.1:1' } }"
            ) == ["1:47: \"A\" and \"a\" are the same name but for capitals; rename one"]
        )
        #expect(
            complaints(
                "upstreams: { a: { url: 'https://a.example', prefix: /x }, b: { url: 'https://b.example', prefix: /xy } }"
            ).isEmpty
        )
    }

    @Test(arguments: [
        ("User: {}", "2:17: models.User: \"identity\" is missing; add it, for example `identity: id`"),
        ("2User: { identity: id }", "2:11: model name \"2User\" is not a letter followed by letters, digits and _"),
        (
            "User: { identity: id }, USER: { identity: id }",
            "2:35: model \"USER\" differs only in capitals from \"User\", in line 2; rename one"
        ),
        (
            "User: { identity: id, properties: { a: { from: b, as: dte } } }",
            "2:65: models.User.properties.a.as: there is no conversion \"dte\"; did you mean \"date\"?"
        ),
        (
            "User: { identity: id, properties: { a: { model: Usr } } }",
            "2:59: there is no model \"Usr\"; did you mean \"User\"?"
        ),
        (
            "User: { identity: id, properties: { a: { model: User, models: User } } }",
            "2:73: models.User.properties.a: \"model\" (one object), \"models\" (a list of them) and \"keyed\" (an object of them) exclude each other"
        ),
        (
            "User: { identity: id, properties: { a: } }",
            "2:50: models.User.properties.a: nothing was found here; write the member it is read from, or { from: …, as: …, model: … }"
        ),
        (
            "User: { identity: id, properties: { a: { as: { enum: { } } } } }",
            "2:64: models.User.properties.a.as.enum: it has no case; write { open: open, closed: done }"
        ),
        (
            "User: { identity: id, properties: { a: 'b..c' } }",
            "2:47: model User, property a: \"b..c\" is not a key path; write member names separated by dots, \\. for a dot within a name"
        ),
        ("User: { identity: id, share: some }", "2:40: models.User.share: \"some\" is not one of declared, all"),
    ])
    func `a mistake in a model says what to write instead`(_ model: String, _ message: String) {
        #expect(complaints(one + "models: { \(model) }") == [message])
    }

    @Test(arguments: [
        ("{ model: User }", "3:11: routes.1: \"path\" is missing; add it, for example `path: \"users/{login}\"`"),
        ("{ path: a, model: Usr }", "3:29: there is no model \"Usr\"; did you mean \"User\"?"),
        (
            #"{ path: a, model: "[User]" }"#,
            "3:29: routes.1.model: the brackets of a list go outside the quotes; write model: [User]"
        ),
        (
            "{ path: a, model: [User, User] }",
            "3:29: routes.1.model: write one model, in brackets if the body is a list of its objects"
        ),
        (
            "{ path: a, method: get }",
            "3:30: routes.1.method: \"get\" is not a method; methods are in capitals, such as \"GET\""
        ),
        (
            "{ path: a, status: 2x }",
            "3:30: routes.1.status: \"2x\" is not a status; write one such as 201, a class such as 2xx, or any"
        ),
        (
            "{ path: a, root: items }",
            "3:28: \"root\" says where a model is found, but the rule names none; add \"model\""
        ),
        (
            "{ path: a, cache: never, fresh: 5m }",
            "3:43: \"cache: never\" stores nothing that could be fresh or stale; remove one of the two"
        ),
        (
            "{ path: a, cache: never, vary: { ignore: [X-A] } }",
            "3:42: \"cache: never\" stores nothing that could be found again; remove one of the two"
        ),
        (
            "{ path: a, cache: never, key: { sort: true } }",
            "3:41: \"cache: never\" stores nothing that could be found again; remove one of the two"
        ),
        (
            "{ path: a, cache: force, stale: 1d }",
            "3:43: \"cache: force\" alone keeps responses fresh for ever, so that they are never stale; add \"fresh\" with a duration"
        ),
        (
            "{ path: a, method: POST, fresh: 1m }",
            "3:43: \"fresh\" applies to GET, but the rule to POST; remove \"method\" or \"fresh\", or add \"read: true\" if it changes nothing"
        ),
        (
            "{ path: a, key: { ignore: ['a=b'] } }",
            "3:38: routes.1.key.ignore: \"a=b\" is not a query parameter's name; write it without \"?\", \"=\" and \"&\""
        ),
        (
            "{ path: a, query: { x: '1' }, key: { ignore: [x] } }",
            "3:46: \"key\" ignores the parameter \"x\", but \"query\" demands it, so it makes a difference; remove it there"
        ),
        (
            "{ path: a, query: { x: '1', y: '*' } }, { path: a, query: { x: '*', y: '1' } }",
            "3:59: \"a\" has the same pattern, method and status as the rule in line 3, and one request can have the query of both, so it is unclear which of the two applies; remove one, or give one a further parameter"
        ),
        ("{ path: a, cache: always }", "3:29: routes.1.cache: \"always\" is not one of never, force"),
        (
            "{ path: 'a/**/b' }",
            "3:19: path \"a/**/b\": \"**\" must be the last component; nothing after it would be looked at"
        ),
        ("{ path: 'a/{x}', model: User, object: { id: y } }", "3:51: \"a/{x}\" has no capture \"y\"; it has x"),
        (
            "{ path: 'a/{x}/b/c', method: POST, invalidates: ['b/{y}'] }",
            "3:60: \"a/{x}/b/c\" has no capture \"y\"; it has x. Write \"*\" for any component"
        ),
        (
            "{ path: a, method: POST, invalidates: ['b/{y}'] }",
            "3:50: \"a\" has no capture \"y\"; it has none. Write \"*\" for any component"
        ),
        (
            "{ path: a, method: GET, invalidates: [b] }",
            "3:49: \"invalidates\" applies to writes, but the rule to GET; remove \"method\" or \"invalidates\""
        ),
        (
            "{ path: a, method: POST, invalidates: ['b?x=1'] }",
            "3:50: path \"b?x=1\": a pattern matches the path only; leave out what follows \"?\""
        ),
        (
            "{ path: a, model: User, object: { id: y } }",
            "3:45: \"a\" has no capture \"y\"; it has none; write {y} there"
        ),
        (
            "{ path: 'a/{x}', model: User, object: { login: x } }",
            "3:51: \"login\" is not an identity, key or property of model \"User\"; known are id"
        ),
        (
            "{ path: 'a/{x}', model: [User], object: { id: x } }",
            "3:51: \"object\" is for one object, but the body is a list; write \"model: User\" or remove \"object\""
        ),
        (
            "{ path: 'a/{x}' }, { path: 'a/*' }",
            "3:38: \"a/*\" has the same pattern, method and status as the rule in line 3, so it is unclear which of the two applies; remove one, or give one a method, status or query of its own"
        ),
    ])
    func `a mistake in a route says what to write instead`(_ route: String, _ message: String) {
        #expect(complaints(one + "models: { User: { identity: id } }\nroutes: [ \(route) ]") == [message])
    }

    @Test func `a path that YAML takes for a comment is explained`() {
        #expect(
            complaints(one + "routes:\n  - path: #\n") == [
                "3:10: routes.1.path: nothing was found here; write a path pattern in quotes; a \"#\" begins a comment, so quote a value that has one"
            ]
        )
    }

    @Test func `rules for errors must match error statuses and name models`() {
        #expect(
            complaints(one + "errors: [{ path: '**', status: 200, model: X }, { path: a }, { path: b, fresh: 5m }]")
                == [
                    "2:32: \"errors\" is for responses that are not 2xx; move this rule to \"routes\"",
                    "2:44: there is no model \"X\"; declare it under \"models\"",
                    "2:49: the rule names no model; add one, for example \"model: Problem\"",
                    "2:62: the rule names no model; add one, for example \"model: Problem\"",
                    "2:73: errors.3: unknown key \"fresh\" here; it belongs under \"routes\"",
                ]
        )
    }

    @Test func `a mistake in what several upstreams share is reported once`() {
        let yaml = """
            upstreams: { a: { url: "https://a.example", prefix: /a }, b: { url: "https://b.example", prefix: /b } }
            models: { User: { identity: id, properties: { boss: { model: Boss } } } }
            """
        #expect(complaints(yaml) == ["2:62: there is no model \"Boss\"; declare it under \"models\""])
    }
}
