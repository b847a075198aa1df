import Mapping
import Testing

private func error(_ declarations: [ModelDeclaration]) -> MappingError? {
    do throws(MappingError) {
        _ = try Models(declarations)
        return nil
    } catch {
        return error
    }
}

@Suite struct ModelsTests {
    private typealias Property = PropertyDeclaration

    @Test(arguments: ["", "1a", "a-b", "é", "a b", "_a", "a..b", ".a"])
    func `a name is a letter followed by letters, digits and underscores`(name: String) {
        #expect(error([ModelDeclaration(name: name)]) == .invalidName(kind: "model", name: name, model: nil))
        #expect(
            error([ModelDeclaration(name: "A", properties: [Property(name: name, from: "x")])])
                == .invalidName(kind: "property", name: name, model: "A")
        )
    }

    @Test func `names that differ only in case are one name`() {
        #expect(
            error([ModelDeclaration(name: "User"), ModelDeclaration(name: "USER")])
                == .duplicateModel("USER", other: "User")
        )
        let properties = [Property(name: "login", from: "a"), Property(name: "Login", from: "b")]
        #expect(
            error([ModelDeclaration(name: "A", properties: properties)])
                == .duplicateProperty("Login", other: "login", model: "A")
        )
    }

    @Test func `a relation needs a declared model`() {
        let property = Property(name: "user", from: "user", relation: .one("User"))
        #expect(
            error([ModelDeclaration(name: "A", properties: [property])])
                == .unknownModel("User", property: "user", model: "A")
        )
    }

    @Test func `MT-42 two properties do not read one key path`() {
        let properties = [Property(name: "a", from: "x.y"), Property(name: "b", from: "x.y")]
        #expect(
            error([ModelDeclaration(name: "A", properties: properties)])
                == .sameKeyPath("x.y", properties: ["a", "b"], model: "A")
        )
    }

    @Test(arguments: ["", ".", "a.", ".a", "a..b", "a\\"])
    func `a key path has no empty component and no lone backslash`(path: String) {
        #expect(
            error([ModelDeclaration(name: "A", properties: [Property(name: "a", from: path)])])
                == .invalidKeyPath(path, usedBy: "property a", model: "A")
        )
    }

    @Test func `a key path into a relation is refused: the related model must declare it`() {
        let user = Property(name: "user", from: "user", relation: .one("User"))
        for (use, declaration) in [
            ("identity", ModelDeclaration(name: "A", identity: ["user.id"], properties: [user])),
            ("keys", ModelDeclaration(name: "A", keys: ["user.id"], properties: [user])),
            ("local", ModelDeclaration(name: "A", properties: [user], local: ["user.id"])),
            ("modified", ModelDeclaration(name: "A", properties: [user], modified: "user.id")),
        ] {
            #expect(
                error([ModelDeclaration(name: "User"), declaration])
                    == .crossesRelation("user.id", usedBy: use, property: "user", model: "A", other: "User")
            )
        }
    }

    @Test func `an identity is no list, and names no property twice`() {
        let users = Property(name: "users", from: "users", relation: .many("User"))
        #expect(
            error([
                ModelDeclaration(name: "User"), ModelDeclaration(name: "A", identity: ["users"], properties: [users]),
            ])
                == .identityIsList("users", model: "A")
        )
        let id = Property(name: "id", from: "_id")
        #expect(
            error([ModelDeclaration(name: "A", identity: ["id", "_id"], properties: [id])])
                == .namedTwice("_id", usedBy: "identity", model: "A")
        )
    }

    @Test func `models may point at each other and at themselves`() {
        #expect(
            error([
                ModelDeclaration(name: "A", properties: [Property(name: "b", from: "b", relation: .one("B"))]),
                ModelDeclaration(name: "B", properties: [Property(name: "a", from: "a", relation: .many("A"))]),
                ModelDeclaration(
                    name: "C",
                    identity: ["id"],
                    properties: [Property(name: "c", from: "c", relation: .one("C"))]
                ),
            ]) == nil
        )
    }

    @Test func `every error is a sentence for the person who wrote the configuration`() {
        let error = MappingError.unknownModel("Usr", property: "user", model: "Issue")
        #expect(error.description == "model Issue, property user: there is no model Usr")
    }
}

@Suite struct ViewColumnTests {
    @Test func `a view has columns for identity, keys, properties and relations`() throws {
        let columns = try Tracker.models().columns(of: "Issue")
        #expect(
            columns.map(\.name) == [
                "identity", "id", "number", "title", "state", "reporterLogin", "user", "labels", "parent", "signature",
                "signatures",
                "branch", "headUser",
            ]
        )
        #expect(columns[0].role == .identity && columns[0].source == .identity)
        #expect(columns[1].role == .identity)
        #expect(columns[1].source == .value(path: #"$."id""#))
        #expect(columns[2].role == .key)
        #expect(
            columns[5].source
                == .derived(path: #"$."user""#, model: "User", inner: .value(path: #"$."login""#))
        )
        #expect(columns[6].source == .relation(path: #"$."user""#, arity: .one))
        #expect(columns[7].source == .relation(path: #"$."labels""#, arity: .many))
        #expect(columns[12].source == .relation(path: #"$."head"."user""#, arity: .one))
    }

    @Test func `every column of a view has a name of its own`() throws {
        let models = try Models([
            ModelDeclaration(
                name: "A",
                identity: ["meta.id", "context"],
                properties: [Tracker.property("JSON", "j"), Tracker.property("meta_id", "m")]
            )
        ])
        #expect(models.columns(of: "A").map(\.name) == ["identity", "meta_id", "context_", "JSON_", "meta_id_"])
        #expect(models.columns(of: "B").isEmpty)
    }

    @Test func `a dot within a name is escaped`() throws {
        let models = try Models([ModelDeclaration(name: "A", properties: [Tracker.property("a", "x\\.y.z")])])
        #expect(models.columns(of: "A").map(\.source) == [.value(path: #"$."x.y"."z""#)])
    }
}
