import Foundation
import TestSupport
import Testing

/// What one model reads of an object is the same in the wire and the mapped view, in SQL, in `/objects` and in
/// `larder map`.
@Suite(.scripts) struct ModelSurfacesTests: ModelFixtures {
    // MARK: Clusters

    private static let conditions = [
        "{ member: type, is: org }", "{ has: type }", "{ any: [ { member: type, is: [org, team] }, { has: seats } ] }",
        "{ not: { not: { member: type, is: org } } }", "{ all: [ { has: meta }, { member: meta.kind, is: 1 } ] }",
    ]

    private static func cluster(_ condition: String, base: String, rest: String = "") -> String {
        """
        models:
          Acc: { identity: id, properties: { login: login\(base) }\(rest), cluster: [ { model: Org, if: \(condition) }, { model: Person } ] }
          Org: { base: Acc, properties: { plan: plan } }
          Person: { base: Acc, properties: { bio: bio } }
          Repo: { identity: id, properties: { owner: { from: owner, model: Acc }, all: { from: all, models: Acc }, by: { from: by, keyed: Acc } } }
        routes:
          - { path: "accs/{id:#}", model: Acc }
          - { path: accs, model: [Acc] }
          - { path: repos, model: [Repo] }
        """
    }

    @Test(arguments: conditions, ["", ", kind: type", "local"])
    func `an object of a cluster has one model, whether its bare identity, a list or its own response shows it`(
        condition: String,
        base: String
    ) throws {
        let org = #"{"id":7,"login":"o","type":"org","meta":{"kind":1},"plan":"p","bio":"b"}"#
        let isProperty = base == ", kind: type"
        let (_, larder) = try Self.daemon(
            Self.cluster(
                condition,
                base: isProperty ? base : "",
                rest: base == "local" ? ", local: [type, meta]" : ""
            ),
            [
                "/accs/7": org, "/repos": #"[{"id":1,"owner":7,"all":[7],"by":{"a":7}}]"#,
                "/accs": #"[{"id":7,"login":"n","plan":"q","bio":"c"}]"#,
            ]
        )
        let shown = #"{"id":7,"login":"o"\#(isProperty ? #","kind":"org""# : ""),"plan":"p"}"#
        #expect(try larder.get("/accs/7", Self.mapped).text == shown)
        #expect(try Self.map(larder, "/accs/7", org).output == shown)
        func isEverywhere(_ shown: String) throws {
            #expect(
                try larder.get("/repos", Self.mapped).text
                    == #"[{"id":1,"owner":\#(shown),"all":[\#(shown)],"by":{"a":\#(shown)}}]"#
            )
            #expect(try Self.object(larder, "Org/7").contains(shown))
            #expect(try larder.admin("GET", "/objects/Person").text.contains(#""objects":[]"#))
            #expect(try larder.sql("SELECT plan FROM Org") == [shown.contains(#""p""#) ? "p" : "q"])
            #expect(try larder.sql("SELECT bio FROM Person") == [])
        }
        #expect(try larder.waitForObjects(1, of: "Acc"))
        try isEverywhere(shown)
        // A later response without the members that decide leaves it what it is.
        _ = try larder.get("/accs")
        let newer = shown.replacing(#""login":"o""#, with: #""login":"n""#).replacing(
            #""plan":"p""#,
            with: #""plan":"q""#
        )
        try isEverywhere(newer)
        #expect(try larder.get("/accs/7", Self.mapped).text == newer)
        // A condition that compares a member is decided by what is known of it.
        guard condition.hasPrefix("{ member") else { return }
        #expect(try larder.get("/accs", Self.mapped).text == #"[{"id":7,"login":"n","plan":"q"}]"#)
    }

    @Test func `earlier responses of an object count once its concrete model is known`() throws {
        let bodies = [
            "/accs/7": #"{"id":7,"plan":"p"}"#, "/accs": #"[{"id":7,"login":"o","bio":"b"}]"#,
            "/repos": #"[{"id":1,"owner":{"id":7,"seats":2}}]"#,
        ]
        let (origin, larder) = try Self.daemon(
            Self.cluster("{ member: type, is: org }", base: "")
                .replacing("{ plan: plan }", with: "{ plan: plan, seats: seats }"),
            bodies
        )
        for path in ["/accs/7", "/repos", "/accs"] { _ = try larder.get(path) }
        #expect(try larder.waitForDocuments(3))
        #expect(try Self.object(larder, "Person/7").contains(#"{"id":7,"login":"o","bio":"b"}"#))
        origin.behave { _ in .json(#"{"id":7,"type":"org"}"#, Fresh.hour) }
        _ = try larder.get("/accs/7", ["Cache-Control": "no-cache"])
        let org = #"{"id":7,"login":"o","plan":"p","seats":2}"#
        #expect(try eventually { try Self.object(larder, "Org/7").contains(org) })
        #expect(try larder.sql("SELECT login, plan, seats FROM Org") == ["o|p|2"])
        for (path, body) in bodies where path != "/accs/7" { #expect(try larder.get(path).text == body) }
    }

    // MARK: Null on a key path

    @Test func `null on a property's key path is shown as null on every surface`() throws {
        let mapping = """
            models: { Item: { identity: id, properties: { inner: m.in, deep: m.a.b } } }
            routes: [ { path: "items/{id:#}", model: Item }, { path: items, model: [Item] } ]
            """
        let list = #"[{"id":1,"m":null}]"#
        let (origin, larder) = try Self.daemon(
            mapping,
            ["/items/1": #"{"id":1,"m":{"in":5,"x":3,"a":{"b":6}}}"#, "/items": list]
        )
        let stream = try Follower(larder, "/items/1", Self.mapped)
        #expect(stream.wait(for: #"{"id":1,"inner":5,"deep":6}"#))
        _ = try larder.get("/items")
        let null = #"{"id":1,"inner":null,"deep":null}"#
        #expect(stream.wait(for: null))
        for _ in 1...2 {
            #expect(try larder.get("/items", Self.mapped).text == "[\(null)]")
            #expect(try larder.get("/items/1", Self.mapped).text == null)
            #expect(try larder.get("/items/1").text == #"{"id":1,"m":null}"#)
            #expect(try Self.object(larder, "Item/1").contains(null))
            #expect(try larder.sql("SELECT coalesce(inner, '-'), coalesce(deep, '-') FROM Item") == ["-|-"])
            #expect(try larder.waitForDocuments(2))
            try larder.restart()
        }
        #expect(try Self.map(larder, "/items", list).output == "[\(null)]")
        #expect(origin.count() == 2)
        // The list does not show which members to write for an object.
        let newer = #"{"id":1,"m":{"in":7}}"#
        origin.behave { .json($0.path == "/items" ? "[\(newer)]" : newer, Fresh.hour) }
        _ = try larder.get("/items/1", ["Cache-Control": "no-cache"])
        #expect(try larder.get("/items").text == "[\(newer)]")
        #expect(try larder.get("/items", Self.mapped).text == #"[{"id":1,"inner":7}]"#)
        #expect(try larder.sql("SELECT inner FROM Item") == ["7"])
    }

    // MARK: Identities

    @Test func `each document keeps its own spelling of an identity that is a property`() throws {
        let (_, larder) = try Self.daemon(
            """
            models: { User: { identity: id, properties: { id: id, name: name } } }
            routes: [ { path: users, model: [User] }, { path: "users/{id:#}", model: User } ]
            """,
            ["/users": #"[{"id":"1","name":"Ada"}]"#, "/users/1": #"{"id":1,"name":"Ada L"}"#]
        )
        _ = try larder.get("/users")
        _ = try larder.get("/users/1")
        let list = try larder.get("/users")
        #expect(list.isHit)
        #expect(list.text == #"[{"id":"1","name":"Ada L"}]"#)
        #expect(try larder.get("/users", Self.mapped).text == list.text)
    }

    @Test func `an object that is identified by its name is shown in place of its name`() throws {
        let (_, larder) = try Self.daemon(
            """
            models:
              User: { identity: "@key", properties: { login: "@key", name: name } }
              Post: { identity: id, properties: { author: { from: author, model: User }, by: author.name } }
            routes: [ { path: users, model: { keyed: User }, root: users }, { path: posts, model: [Post] } ]
            """,
            ["/users": #"{"users":{"ada":{"name":"Ada"}}}"#, "/posts": #"[{"id":1,"author":"ada"}]"#]
        )
        _ = try larder.get("/users")
        #expect(try larder.waitForObjects(1, of: "User"))
        let posts = try larder.get("/posts", Self.mapped)
        #expect(posts.text == #"[{"id":1,"author":{"login":"ada","name":"Ada"},"by":"Ada"}]"#)
        #expect(posts["Larder-Synthetic"] == #""/0/author", "/0/by""#)
        #expect(try larder.waitForObjects(1, of: "Post"))
        #expect(try Self.object(larder, "Post/1").contains(#"{"id":1,"author":"ada","by":"Ada"}"#))
        #expect(try Self.object(larder, "User/ada").contains(#"{"login":"ada","name":"Ada"}"#))
        #expect(try larder.sql("SELECT author, by FROM Post") == ["ada|Ada"])
        #expect(try larder.get("/posts").text == #"[{"id":1,"author":"ada"}]"#)
    }

    @Test(arguments: ["7", #"{"id":7}"#])
    func `an object that shows only its identity is filled in, also at the end of a key path`(user: String) throws {
        let (_, larder) = try Self.daemon(
            """
            models:
              User: { identity: id, properties: { login: login } }
              Post: { identity: id, properties: { user: { from: user, model: User }, author: user.login } }
            routes: [ { path: "users/{id:#}", model: User }, { path: posts, model: [Post] } ]
            """,
            ["/users/7": #"{"id":7,"login":"ada"}"#, "/posts": #"[{"id":1,"user":\#(user)}]"#]
        )
        _ = try larder.get("/users/7")
        #expect(try larder.waitForObjects(1, of: "User"))
        let shown = #"{"id":1,"user":{"id":7,"login":"ada"},"author":"ada"}"#
        let posts = try larder.get("/posts", Self.mapped)
        #expect(posts.text == "[\(shown)]")
        #expect(try larder.waitForObjects(1, of: "Post"))
        #expect(try Self.object(larder, "Post/1").contains(#"{"id":1,"user":7,"author":"ada"}"#))
        #expect(try larder.sql("SELECT user, author FROM Post") == ["7|ada"])
        #expect(try larder.get("/posts").text == #"[{"id":1,"user":\#(user)}]"#)
    }

    @Test func `a reference may be one of the keys of its model, or the parts of an identity`() throws {
        let repo = #"{"owner":"ada","name":"engine","stars":3}"#
        let (_, larder) = try Self.daemon(
            """
            models:
              User: { identity: id, keys: [login], properties: { login: login, name: name } }
              Repo: { identity: [owner, name], properties: { stars: stars } }
              Issue:
                identity: id
                properties:
                  author: { from: author, model: User, by: login }
                  watchers: { from: watchers, models: User, by: login }
                  repo: { parts: { owner: repo_owner, name: repo_name }, model: Repo }
            routes:
              - { path: "users/{id:#}", model: User }
              - { path: "repos/*", model: Repo }
              - { path: issues, model: [Issue] }
            """,
            [
                "/users/7": #"{"id":7,"login":"ada","name":"Ada"}"#, "/repos/1": repo,
                "/issues":
                    #"[{"id":1,"author":"ada","watchers":["bo","ada"],"repo_owner":"ada","repo_name":"engine"}]"#,
            ]
        )
        #expect(
            try larder.get("/issues", Self.mapped).text
                == #"[{"id":1,"author":"ada","watchers":["bo","ada"],"repo":{"owner":"ada","name":"engine"}}]"#
        )
        _ = try larder.get("/users/7")
        _ = try larder.get("/repos/1")
        #expect(try larder.waitForObjects(1, of: "Repo"))
        let ada = #"{"id":7,"login":"ada","name":"Ada"}"#
        let issues = try larder.get("/issues", Self.mapped)
        #expect(issues.text == #"[{"id":1,"author":\#(ada),"watchers":["bo",\#(ada)],"repo":\#(repo)}]"#)
        #expect(issues["Larder-Synthetic"] == #""/0/author", "/0/watchers/1", "/0/repo/stars""#)
        #expect(
            try Self.object(larder, "Issue/1")
                .contains(#""author":"ada","watchers":["bo","ada"],"repo":{"owner":"ada","name":"engine"}"#)
        )
        #expect(
            try larder.sql(
                "SELECT u.name, r.stars FROM Issue i JOIN User u ON u.login = i.author JOIN Repo r ON r.identity = i.repo"
            ) == ["Ada|3"]
        )
        #expect(try larder.get("/issues").text.contains(#""author":"ada","watchers":["bo","ada"],"repo_owner":"ada""#))
    }

    @Test func `naming holds for an identity that no property names`() throws {
        let (_, larder) = try Self.daemon(
            """
            models: { Cat: { identity: catID, keys: [tagNo], naming: snake_case, properties: { fullName: {} } } }
            routes: [ { path: cats, model: [Cat] } ]
            """,
            ["/cats": #"[{"cat_id":1,"tag_no":"x","full_name":"J"},{"catID":2,"fullName":"K"}]"#]
        )
        #expect(
            try larder.get("/cats", Self.mapped).text == #"[{"catID":1,"fullName":"J"},{"catID":2,"fullName":"K"}]"#
        )
        #expect(try larder.waitForObjects(2, of: "Cat"))
        #expect(try larder.sql("SELECT identity, fullName FROM Cat ORDER BY 1") == ["1|J", "2|K"])
        #expect(try Self.object(larder, "Cat/x").contains(#"{"catID":1,"fullName":"J"}"#))
    }

    @Test func `the names of an enumeration may be numbers`() throws {
        let issue = #"{"id":1,"state":"closed"}"#
        let (_, larder) = try Self.daemon(
            """
            models: { Issue: { identity: id, properties: { state: { from: state, as: { enum: { open: 0, closed: 1 } } } } } }
            routes: [ { path: "issues/*", model: Issue } ]
            """,
            ["/issues/1": issue]
        )
        #expect(try larder.get("/issues/1", Self.mapped).text == #"{"id":1,"state":1}"#)
        #expect(try Self.map(larder, "/issues/1", issue).output == #"{"id":1,"state":1}"#)
        #expect(try larder.waitForObjects(1, of: "Issue"))
        #expect(try larder.sql("SELECT state, typeof(state), state_raw FROM Issue") == ["1|integer|closed"])
    }

    @Test func `a member of a compound identity has its own value in SQL`() throws {
        let (_, larder) = try Self.daemon(
            """
            models: { Issue: { identity: ["@url.repo", number], properties: { title: title } } }
            routes: [ { path: "repos/{repo}/issues", model: [Issue] } ]
            """,
            ["/repos/x/issues": #"[{"number":1,"title":"Leak"}]"#]
        )
        _ = try larder.get("/repos/x/issues")
        #expect(try larder.waitForObjects(1, of: "Issue"))
        #expect(try larder.sql("SELECT identity, number, title FROM Issue") == ["x:1|1|Leak"])
    }

    // MARK: Versions

    @Test
    func `a response of an earlier version is fetched again, or shown as it is, and never mixed with newer values`()
        throws
    {
        let routes = #"routes: [ { path: "users/{id:#}", model: User }, { path: users, model: [User] } ]"#
        let old = #"[{"id":1,"name":"Ada","created":0},{"id":2,"name":"Bo","created":0}]"#
        let (origin, larder) = try Self.daemon(
            "models: { User: { identity: id, properties: { name: name, created: created } } }\n" + routes,
            ["/users": old]
        )
        _ = try larder.get("/users")
        #expect(try larder.waitForObjects(2, of: "User"))
        larder.terminate()
        let raised = """
            models:
              User:
                identity: id
                properties: { name: full_name, created: { from: created, as: date } }
                version: 1
                migrations: [ { to: 1, rename: { name: full_name }, convert: { created: { date: unix } } } ]
            """
        _ = try larder.folder.write(Self.config(origin, raised + "\n" + routes), to: "larder.yaml")
        try larder.start()
        // Nothing newer is known: the bytes are those received.
        #expect(try larder.get("/users").text == old)
        origin.behave { request in
            request.path == "/users/1"
                ? .json(#"{"id":1,"full_name":"Ada L","created":"2000-01-01T00:00:00Z"}"#, Fresh.hour) : .empty(503)
        }
        _ = try larder.get("/users/1")
        let mixed = try larder.get("/users", ["Cache-Control": "stale-if-error=3600"])
        #expect(mixed.text == old)
        #expect(
            try larder.get("/users", Self.mapped + ["Cache-Control": "stale-if-error=3600"]).text
                == #"[{"id":1,"name":"Ada L","created":"2000-01-01T00:00:00Z"},{"id":2,"name":"Bo","created":"1970-01-01T00:00:00Z"}]"#
        )
        let new = #"[{"id":1,"full_name":"Ada L","created":"2000-01-01T00:00:00Z"}]"#
        origin.behave { _ in .json(new, Fresh.hour) }
        #expect(try larder.get("/users").text == new)
    }

    @Test(arguments: [("union", "[1,2,3]", "[1,2]", "[3]"), ("sum", "5", "2", "3"), ("keep", "2", "2", "3")])
    func `merged values are renamed with their member, on every surface`(
        merge: String,
        merged: String,
        first: String,
        second: String
    ) throws {
        func models(_ member: String, _ version: String) -> String {
            """
            models:
              Item: { identity: id, properties: { value: { from: \(member), merge: \(merge) }, name: name }\(version) }
            routes: [ { path: "items/{id:#}", model: Item }, { path: items, model: [Item] } ]
            """
        }
        let bodies = [
            "/items/1": "{\"id\":1,\"old\":\(first),\"name\":\"a\"}", "/items": "[{\"id\":1,\"old\":\(second)}]",
        ]
        let (origin, larder) = try Self.daemon(models("old", ""), bodies)
        for path in ["/items/1", "/items"] { _ = try larder.get(path) }
        #expect(try larder.waitForDocuments(2))
        func expectMerged() throws {
            // After a restart the rows are brought to the new version in the background.
            #expect(try eventually { try larder.sql("SELECT value, name FROM Item") == ["\(merged)|a"] })
            #expect(try Self.object(larder, "Item/1").contains(#"{"id":1,"value":\#(merged),"name":"a"}"#))
            // Each response keeps its own.
            #expect(try larder.get("/items/1", Self.mapped).text == #"{"id":1,"value":\#(first),"name":"a"}"#)
            for (path, body) in bodies { #expect(try larder.get(path).text == body) }
        }
        try expectMerged()
        larder.terminate()
        let version = ", version: 1, migrations: [ { to: 1, rename: { old: new } } ]"
        _ = try larder.folder.write(Self.config(origin, models("new", version)), to: "larder.yaml")
        try larder.start()
        try expectMerged()
        #expect(origin.count() == 2)
    }
}
