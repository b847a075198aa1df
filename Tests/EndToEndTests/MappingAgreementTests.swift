import Foundation
import TestSupport
import Testing

/// What `larder map` says of a body, and what the daemon makes of it, are the same.
@Suite(.scripts) struct MappingAgreementTests: ModelFixtures {
    @Test func `a model's migrations are applied to what was stored before, also in the mapped view`() throws {
        let routes = #"routes: [ { path: "users/{id:#}", model: User }, { path: users, model: [User] } ]"#
        let (origin, larder) = try Self.daemon(
            "models: { User: { identity: id, properties: { fullName: name, created: created } } }\n" + routes,
            [
                "/users/1": #"{"id":1,"name":"Ada","age":36,"created":0}"#,
                "/users": #"[{"id":2,"name":"Bo","created":60}]"#,
            ]
        )
        #expect(try larder.get("/users/1", Self.mapped).text == #"{"id":1,"fullName":"Ada","created":0}"#)
        #expect(try larder.get("/users", Self.mapped).text == #"[{"id":2,"fullName":"Bo","created":60}]"#)
        #expect(try larder.waitForDocuments(2))
        larder.terminate()
        let raised = """
            models:
              User:
                identity: id
                properties: { fullName: full_name, created: { from: created, as: date } }
                version: 2
                migrations:
                  - { to: 1, rename: { name: full_name }, convert: { created: { date: unix } } }
                  - { to: 2, remove: [age] }
            """
        _ = try larder.folder.write(Self.config(origin, raised + "\n" + routes), to: "larder.yaml")
        try larder.start()
        for _ in 0..<2 {
            #expect(
                try larder.get("/users/1", Self.mapped).text
                    == #"{"id":1,"fullName":"Ada","created":"1970-01-01T00:00:00Z"}"#
            )
        }
        #expect(
            try larder.get("/users", Self.mapped).text
                == #"[{"id":2,"fullName":"Bo","created":"1970-01-01T00:01:00Z"}]"#
        )
        // The wire view is what the upstream sent.
        #expect(try larder.get("/users/1").text == #"{"id":1,"name":"Ada","age":36,"created":0}"#)
        #expect(origin.count() == 2)
        // What comes from now on is as declared.
        origin.behave { _ in .json(#"{"id":1,"full_name":"Ada L","created":"2024-01-01T00:00:00Z"}"#, Fresh.hour) }
        let newer = #"{"id":1,"fullName":"Ada L","created":"2024-01-01T00:00:00Z"}"#
        #expect(try larder.get("/users/1", Self.mapped + ["Cache-Control": "no-cache"]).text == newer)
        #expect(try larder.get("/users/1", Self.mapped).text == newer)
    }

    @Test func `MK-02: an identity is found in either spelling that the naming allows`() throws {
        let bodies = [
            "/cats/1": #"{"catID":"1","preferredName":"Jelly"}"#,
            "/cats/2": #"{"cat_id":"2","preferred_name":"Bean"}"#,
            "/cats": #"[{"catID":"1","preferredName":"Jellybean"}]"#,
        ]
        let (_, larder) = try Self.daemon(
            """
            models:
              Cat: { identity: catID, naming: snake_case, properties: { catID: {}, preferredName: {} } }
            routes: [ { path: cats, model: [Cat] }, { path: "cats/*", model: Cat } ]
            """,
            bodies
        )
        for (path, body) in bodies.sorted(by: { $0.key > $1.key }) {
            let shown = try larder.get(path, Self.mapped).text
            let printed = try Self.map(larder, path, body)
            #expect(printed.output == shown)
            #expect(printed.errors == "")
        }
        #expect(try larder.waitForObjects(2, of: "Cat"))
        #expect(try larder.get("/cats/1").text == #"{"catID":"1","preferredName":"Jellybean"}"#)
        #expect(try larder.sql("SELECT catID, preferredName FROM Cat ORDER BY 1") == ["1|Jellybean", "2|Bean"])
        #expect(try larder.admin("GET", "/objects/Cat/1?view=mapped").text.contains(#""preferredName":"Jellybean""#))
        // Both spellings at once say which object it is as little as one member twice.
        let both = try Self.map(larder, "/cats/3", #"{"catID":"3","cat_id":"4"}"#)
        #expect(both.errors.contains("key-collision") && both.errors.contains("identity-repeated"), "\(both.errors)")
    }

    @Test func `a path can bind a key that a model inherits`() throws {
        let (origin, larder) = try Self.daemon(
            """
            models:
              Account: { identity: id, keys: [login], properties: { login: login }, on_delete: remove }
              Person: { base: Account, properties: { bio: bio } }
            routes:
              - { path: people, model: [Person] }
              - { path: "people/{login}", model: Person, object: { login: login } }
            """,
            ["/people": #"[{"id":1,"login":"ada","bio":"x"}]"#]
        )
        _ = try larder.get("/people")
        #expect(try larder.waitForObjects(1, of: "Account"))
        origin.behave { _ in .empty(204) }
        #expect(try larder.request("DELETE", "/people/ada").status == 204)
        #expect(try larder.get("/people").text == "[]")
    }

    @Test func `a nested object without a model is shared only with documents that show the same members of it`() throws
    {
        let bodies = Monitor([
            "/items": #"[{"id":1,"p":{"a":1,"b":2},"l":[{"x":1,"y":1}],"w":{"a":1}}]"#,
            "/items/1": #"{"id":1,"p":{"a":9},"l":[{"x":2}],"w":{"b":1}}"#,
        ])
        let origin = try Origin { request in .json(bodies.current[request.path] ?? "{}", Fresh.hour) }
        let larder = try Larder(
            origin,
            config: Self.config(
                origin,
                """
                models: { Item: { identity: id, properties: { p: p, l: l, w: { from: w, merge: replace } } } }
                routes: [ { path: items, model: [Item] }, { path: "items/{id:#}", model: Item } ]
                """
            )
        )
        _ = try larder.get("/items")
        _ = try larder.get("/items/1")
        // What the detail does not mention may be gone, or not shown there: the upstream is asked.
        bodies.withLock { $0["/items"] = #"[{"id":1,"p":{"a":9,"b":2},"l":[{"x":2,"y":1}],"w":{"b":1}}]"# }
        let asked = try larder.get("/items")
        #expect(!asked.isHit)
        #expect(asked.text == bodies.current["/items"])
        #expect(origin.count() == 3)
        // The same members with other values move, and so does what is replaced as a whole.
        bodies.withLock {
            $0["/items/1"] = #"{"id":1,"p":{"a":10,"b":3},"l":[{"x":3,"y":2},{"x":4,"y":4}],"w":{"c":1}}"#
        }
        _ = try larder.get("/items/1", ["Cache-Control": "no-cache"])
        let composed = try larder.get("/items")
        #expect(composed.isHit)
        #expect(composed.text == #"[{"id":1,"p":{"a":10,"b":3},"l":[{"x":3,"y":2},{"x":4,"y":4}],"w":{"c":1}}]"#)
        #expect(origin.count() == 4)
        // An empty list and null have no members that could be missing.
        bodies.withLock { $0["/items/1"] = #"{"id":1,"p":null,"l":[],"w":null}"# }
        _ = try larder.get("/items/1", ["Cache-Control": "no-cache"])
        #expect(try larder.get("/items").text == #"[{"id":1,"p":null,"l":[],"w":null}]"#)
        #expect(origin.count() == 5)
    }

    @Test func `OV-40: the members of an envelope without a root are shown beside those of the object`() throws {
        let body = #"{"id":1,"n":"a","total_count":3,"extra":0}"#
        let (_, larder) = try Self.daemon(
            """
            models:
              Item: { identity: id, properties: { name: n } }
              Page: { identity: [], properties: { total: total_count } }
            routes: [ { path: "items/*", model: Item, envelope: Page } ]
            """,
            ["/items/1": body]
        )
        let shown = #"{"id":1,"name":"a","total":3}"#
        #expect(try larder.get("/items/1", Self.mapped).text == shown)
        #expect(try Self.map(larder, "/items/1", body).output == shown)
        let back = try Self.map(larder, "/items/1", shown, ["--reverse"])
        #expect(back.output == #"{"id":1,"n":"a","total_count":3}"#)
        #expect(back.errors == "")
    }

    @Test func `a value that equals its default is written back where it is asked for`() throws {
        let (_, larder) = try Self.daemon(
            """
            models: { Person: { identity: id, properties: { country: { from: country, default: unknown } } } }
            routes: [ { path: "people/*", model: Person } ]
            """,
            [:]
        )
        let shown = #"{"id":1,"country":"unknown"}"#
        let plain = try Self.map(larder, "/people/1", shown, ["--reverse"])
        #expect(plain.output == #"{"id":1}"#)
        #expect(plain.errors.contains("not-written at /country Person"), "\(plain.errors)")
        let whole = try Self.map(larder, "/people/1", shown, ["--reverse", "--defaults"])
        #expect(whole.output == shown && whole.errors == "", "\(whole)")
        let patch = try Self.map(larder, "/people/1", shown, ["--reverse", "--members", "country"])
        #expect(patch.output == #"{"country":"unknown"}"# && patch.errors == "", "\(patch)")
    }

    @Test func `MK-17: the daemon lists every kind of misfit that larder map reports`() throws {
        let bodies = [
            "/things": #"""
            [{"id":1,"n":"5","on":"maybe","at":"today","code":null,"meta":"x","deep":{"a":1},"size":"XL","owner":true,"c":{"lat":1},"k":1,"\u006b":2},
             {"id":2,"kind":"odd"},{"id":{}},{"other":1},7]
            """#,
            "/page": #"{"message":"try again"}"#, "/one": "[1]", "/scalar": "3", "/broken": "{\"id\":",
            "/zoo": #"[{"id":1,"legs":4}]"#, "/cat": #"{"id":1,"place":null,"lat":5}"#,
        ]
        let (_, larder) = try Self.daemon(
            """
            models:
              Thing:
                identity: id
                properties:
                  n: { from: n, type: integer, coerce: true }
                  on: { from: on, as: boolean }
                  at: { from: at, as: date }
                  code: { from: code, null: false }
                  deep: meta.deep
                  size: { from: size, one_of: [S, M] }
                  email: { from: email, required: true }
                  owner: { from: owner, model: Thing }
                  list: { from: deep, models: Thing }
                  k: k
              Cat:
                identity: id
                properties: { place: { from: place, model: Place }, place.latitude: lat }
              Place: { identity: [], properties: { latitude: lat } }
              Animal: { identity: id, cluster: [ { model: Bird, if: { has: wings } } ] }
              Bird: { base: Animal, properties: { wings: wings } }
            routes:
              - { path: things, model: [Thing] }
              - { path: page, model: [Thing], root: items }
              - { path: one, model: Thing }
              - { path: scalar, model: Thing }
              - { path: broken, model: Thing }
              - { path: zoo, model: [Animal] }
              - { path: cat, model: Cat }
            """,
            bodies
        )
        var told: Set<String> = []
        for (path, body) in bodies {
            _ = try larder.get(path)
            for line in try Self.map(larder, path, body).errors.split(separator: "\n") where line.hasPrefix("warning: ")
            {
                told.insert(String(line.dropFirst(9).prefix { $0 != " " && $0 != ":" }))
            }
        }
        #expect(told.count >= 17, "\(told.sorted())")
        func listed() throws -> [[String: Any]] {
            try larder.admin("GET", "/warnings?limit=200").object["warnings"] as? [[String: Any]] ?? []
        }
        let isSame = try eventually { Set(try listed().compactMap { $0["kind"] as? String }) == told }
        let kinds = Set(try listed().compactMap { $0["kind"] as? String })
        #expect(isSame, "\(kinds.symmetricDifference(told))")
        // What is coerced, or null against its declaration, is shown, and so it is not quarantined.
        let quarantined = try listed().filter { $0["kind"] as? String == "quarantined" }
        #expect(!quarantined.contains { ["Thing.n", "Thing.code"].contains($0["subject"] as? String ?? "") })
        let row = try #require(
            try listed().first {
                $0["kind"] as? String == "conversion-failed" && $0["subject"] as? String == "Thing.at"
            }
        )
        #expect(row["pointer"] as? String == "/0/at")
        #expect((row["url"] as? String)?.hasSuffix("/things") == true)
    }

    @Test func `a coerced value is shared with other documents like any other`() throws {
        let (_, larder) = try Self.daemon(
            """
            models: { Item: { identity: id, properties: { n: { from: n, type: integer, coerce: true }, s: { from: s, null: false } } } }
            routes: [ { path: items, model: [Item] }, { path: "items/*", model: Item } ]
            """,
            ["/items": #"[{"id":1,"n":"5","s":"x"}]"#, "/items/1": #"{"id":1,"n":"6","s":null}"#]
        )
        _ = try larder.get("/items")
        _ = try larder.get("/items/1")
        let list = try larder.get("/items")
        #expect(list.isHit)
        #expect(list.text == #"[{"id":1,"n":"6","s":null}]"#)
    }

    @Test func `a condition that names a property decides in SQL as it does in the mapped view`() throws {
        let body = #"[{"id":1,"type":"Org","plan":"p"},{"id":2,"type":"User","bio":"b"}]"#
        let (_, larder) = try Self.daemon(
            """
            models:
              Account:
                identity: id
                properties: { kind: type }
                cluster: [ { model: Group, if: { member: kind, is: Org } }, { model: Human } ]
              Group: { base: Account, properties: { plan: plan } }
              Human: { base: Account, properties: { bio: bio } }
            routes: [ { path: accounts, model: [Account] } ]
            """,
            ["/accounts": body]
        )
        let shown = #"[{"id":1,"kind":"Org","plan":"p"},{"id":2,"kind":"User","bio":"b"}]"#
        #expect(try larder.get("/accounts", Self.mapped).text == shown)
        #expect(try larder.waitForObjects(2, of: "Account"))
        #expect(try larder.sql("SELECT id, plan FROM \"Group\"") == ["1|p"])
        #expect(try larder.sql("SELECT id, bio FROM Human") == ["2|b"])
    }

    @Test func `larder map shows properties read from response fields, if given the fields`() throws {
        let origin = try Origin { _ in .json(#"[{"id":1}]"#, Fresh.hour + ["X-Rate": "9"]) }
        let larder = try Larder(
            origin,
            config: Self.config(
                origin,
                """
                models: { Item: { identity: id, properties: { rate: "@header.x-rate" } } }
                routes: [ { path: items, model: [Item] } ]
                """
            )
        )
        let shown = try larder.get("/items", Self.mapped).text
        #expect(shown == #"[{"id":1,"rate":"9"}]"#)
        #expect(try Self.map(larder, "/items", #"[{"id":1}]"#, ["-H", "X-Rate: 9"]).output == shown)
    }
}
