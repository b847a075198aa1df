import Testing

@testable import Mapping

/// Objects that are gone, in documents that were observed before.
@Suite struct RemovalTests {
    static func models(_ policy: DeletionPolicy = .remove) throws -> Models {
        var label = ModelDeclaration(name: "Label", identity: ["id"], sharesAll: true)
        label.onDelete = policy
        var issue = ModelDeclaration(
            name: "Issue",
            identity: ["id"],
            properties: [
                Tracker.property("title"), Tracker.property("label", one: "Label"),
                Tracker.property("labels", many: "Label"),
                PropertyDeclaration(name: "byName", from: "by_name", relation: .keyed("Label")),
            ]
        )
        issue.onDelete = policy
        return try Models([label, issue])
    }

    /// What becomes of a body that was observed from 10 to 15; "=" as received, "?" not to be served.
    static func shown(
        _ body: String,
        _ model: String,
        list: Bool = true,
        gone: [String],
        at time: Int64 = 20,
        policy: DeletionPolicy = .remove,
        lag: Lag = 0,
        kind: Observation.Kind = .detail,
        as other: BodyRule? = nil
    ) throws -> String {
        let models = try models(policy)
        let rule = other ?? BodyRule(model: model, isList: list)
        guard case .objects(let parts) = Decomposer(models: models).decompose(Array(body.utf8), as: rule) else {
            return "opaque"
        }
        let observation = Observation(sequence: 1, start: 10, end: 15, kind: kind)
        let composition = Composer(models: models, lag: lag).compose(
            skeleton: parts.skeleton,
            pins: parts.occurrences.map(\.payload),
            keyed: parts.keyed,
            observation: observation
        ) { name in
            let base = parts.occurrences.last { $0.name == name }.map {
                Contribution(observation: observation, version: 1, payload: $0.payload)
            }
            let mark = gone.contains(name.description) ? ObjectMark.tombstone(time) : nil
            return ObjectState(base: base, mark: mark)
        }
        return switch composition {
        case .unchanged: "="
        case .composed(let body): text(body.bytes)
        case .unknown: "?"
        }
    }

    @Test(arguments: [
        (#"[{"id":1}, {"id":2} ,{"id":3}]"#, ["Label:1"], #"[{"id":2} ,{"id":3}]"#),
        (#"[{"id":1}, {"id":2} ,{"id":3}]"#, ["Label:2"], #"[{"id":1} ,{"id":3}]"#),
        (#"[{"id":1}, {"id":2} ,{"id":3}]"#, ["Label:3"], #"[{"id":1}, {"id":2}]"#),
        (#"[{"id":1}, {"id":2} ,{"id":3}]"#, ["Label:1", "Label:2"], #"[{"id":3}]"#),
        (#"[{"id":1}, {"id":2} ,{"id":3}]"#, ["Label:2", "Label:3"], #"[{"id":1}]"#),
        (#"[{"id":1}, {"id":2} ,{"id":3}]"#, ["Label:1", "Label:3"], #"[{"id":2}]"#),
        (#"[ {"id":1}, {"id":2} ,{"id":3} ]"#, ["Label:1", "Label:2", "Label:3"], "[]"),
        ("[\n  {\"id\":1}\n]\n", ["Label:1"], "[]\n"),
        ("[\n  {\"id\":1},\n  {\"id\":2}\n]\n", ["Label:1"], "[\n  {\"id\":2}\n]\n"),
        ("[\n  {\"id\":1},\n  {\"id\":2}\n]\n", ["Label:2"], "[\n  {\"id\":1}\n]\n"),
        (#"[null,{"id":1},7,"a,[b",{"id":2}]"#, ["Label:1", "Label:2"], #"[null,7,"a,[b"]"#),
        (#"[{"id":1},{"id":2},{"id":1},{"id":1},{"id":3}]"#, ["Label:1"], #"[{"id":2},{"id":3}]"#),
        (#"[{"id":1,"x":1.0,"x":"\u0061"},{"id":2}]"#, ["Label:2"], #"[{"id":1,"x":1.0,"x":"\u0061"}]"#),
        (#"[{"id":2}]"#, ["Label:1"], "="),
    ]) func `a deleted object leaves a list as if it had never been in it`(
        body: String,
        gone: [String],
        expected: String
    ) throws {
        #expect(try Self.shown(body, "Label", gone: gone) == expected)
    }

    @Test(arguments: [
        (#"{"id":7,"labels":[{"id":1},{"id":2}],"title":"a"}"#, #"{"id":7,"labels":[{"id":2}],"title":"a"}"#),
        (#"{"id":7, "labels" : [ {"id":1} ] }"#, #"{"id":7, "labels" : [] }"#),
        (#"{"id":7,"by_name":{"a":{"id":1}, "b":{"id":2}}}"#, #"{"id":7,"by_name":{"b":{"id":2}}}"#),
        (#"{"id":7,"by_name":{"b":{"id":2}, "a" : {"id":1}}}"#, #"{"id":7,"by_name":{"b":{"id":2}}}"#),
        (#"{"id":7,"by_name":{ "a\"\\":{"id":1} }}"#, #"{"id":7,"by_name":{}}"#),
        (#"{"id":7,"labels":[{"id":2}]}"#, "="),
        // Not in a list: nobody knows what stands there now.
        (#"{"id":7,"label":{"id":1}}"#, "?"),
        (#"{"id":7,"labels":[{"id":1}],"label":{"id":1}}"#, "?"),
        // Objects that nothing is declared of are no list.
        (#"{"id":7,"other":{"a":{"id":1}}}"#, "="),
    ]) func `a deleted object leaves the lists within objects`(body: String, expected: String) throws {
        #expect(try Self.shown(body, "Issue", list: false, gone: ["Label:1"]) == expected)
        let listed = expected == "=" || expected == "?" ? expected : "[\(expected)]"
        #expect(try Self.shown("[\(body)]", "Issue", gone: ["Label:1"]) == listed)
    }

    @Test(arguments: [
        (#"{"a":{"id":1}, "b":{"id":2} ,"c":{"id":3}}"#, ["Label:1"], #"{"b":{"id":2} ,"c":{"id":3}}"#),
        (#"{"a":{"id":1}, "b" : {"id":2} ,"c":{"id":3}}"#, ["Label:2"], #"{"a":{"id":1} ,"c":{"id":3}}"#),
        (#"{"a":{"id":1}, "b":{"id":2} ,"c":{"id":3}}"#, ["Label:3"], #"{"a":{"id":1}, "b":{"id":2}}"#),
        (#"{"a":{"id":1}, "b":{"id":2} ,"c":{"id":3}}"#, ["Label:1", "Label:2"], #"{"c":{"id":3}}"#),
        (#"{"a":{"id":1}, "b":{"id":2} ,"c":{"id":3}}"#, ["Label:1", "Label:3"], #"{"b":{"id":2}}"#),
        ("{\n  \"a\": {\"id\":1}\n}\n", ["Label:1"], "{}\n"),
        ("{\n  \"a\": {\"id\":1},\n  \"b\": {\"id\":2}\n}\n", ["Label:1"], "{\n  \"b\": {\"id\":2}\n}\n"),
        ("{\n  \"a\": {\"id\":1},\n  \"b\": {\"id\":2}\n}\n", ["Label:2"], "{\n  \"a\": {\"id\":1}\n}\n"),
        (
            #"{"n":null,"{,\"":{"id":1},"x":7,"y":"a,{b","z":{"id":2}}"#, ["Label:1", "Label:2"],
            #"{"n":null,"x":7,"y":"a,{b"}"#
        ),
        (#"{"a":{"id":1},"a":{"id":1},"b":{"id":2}}"#, ["Label:1"], #"{"b":{"id":2}}"#),
        (#"{"b":{"id":2}}"#, ["Label:1"], "="),
    ]) func `a deleted object leaves a body keyed by name as if it had never been in it`(
        body: String,
        gone: [String],
        expected: String
    ) throws {
        let rule = BodyRule(model: "Label", arity: .keyed)
        #expect(try Self.shown(body, "Label", gone: gone, as: rule) == expected)
        let envelope = BodyRule(model: "Label", arity: .keyed, root: "data.all")
        let wrapped = { (inner: String) in #"{"is":{"id":9}, "data":{"all" : \#(inner), "z":0}}"# }
        #expect(
            try Self.shown(wrapped(body), "Label", gone: gone, as: envelope)
                == (expected == "=" ? "=" : wrapped(expected))
        )
    }

    @Test func `a member beside objects keyed by name is not taken for one of them`() throws {
        var rule = BodyRule(model: "Label", arity: .keyed, root: "all")
        rule.also = [BodyRule(model: "Label", arity: .one, root: "best")]
        let body = #"{"best":{"id":1},"all":{"a":{"id":1},"b":{"id":2}}}"#
        #expect(
            try Self.shown(body, "Label", gone: ["Label:2"], as: rule) == #"{"best":{"id":1},"all":{"a":{"id":1}}}"#
        )
        #expect(try Self.shown(body, "Label", gone: ["Label:1"], as: rule) == "?")
        // Objects that stand under names of their own are no list.
        rule = BodyRule(model: "Label", arity: .one, root: "best")
        #expect(try Self.shown(#"{"best":{"id":1}}"#, "Label", gone: ["Label:1"], as: rule) == "?")
    }

    @Test func `a deleted object is removed with everything inside it`() throws {
        let body = #"[{"id":7,"labels":[{"id":1}]},{"id":8,"labels":[{"id":1},{"id":2}]}]"#
        #expect(try Self.shown(body, "Issue", gone: ["Issue:7", "Label:1"]) == #"[{"id":8,"labels":[{"id":2}]}]"#)
        #expect(try Self.shown(body, "Issue", gone: ["Issue:7", "Issue:8"]) == "[]")
    }

    @Test func `a body whose root object is deleted is fetched again`() throws {
        #expect(try Self.shown(#"{"id":1}"#, "Label", list: false, gone: ["Label:1"]) == "?")
    }

    @Test func `a list with a deleted object is fetched again or kept if the model says so`() throws {
        let body = #"[{"id":1},{"id":2}]"#
        #expect(try Self.shown(body, "Label", gone: ["Label:1"], policy: .stale) == "?")
        #expect(try Self.shown(body, "Label", gone: ["Label:1"], policy: .keep) == "=")
    }

    @Test func `a document newer than the deletion is served as received; one that overlaps it is fetched again`()
        throws
    {
        let body = #"[{"id":1},{"id":2}]"#
        #expect(try Self.shown(body, "Label", gone: ["Label:1"], at: 9) == "=")
        #expect(try Self.shown(body, "Label", gone: ["Label:1"], at: 12) == "?")
        #expect(try Self.shown(body, "Label", gone: ["Label:1"], at: 15) == #"[{"id":2}]"#)
        // Lists lag behind it, and what is beside others.
        #expect(try Self.shown(body, "Label", gone: ["Label:1"], at: 9, lag: 5, kind: .list) == #"[{"id":2}]"#)
        #expect(try Self.shown(body, "Label", gone: ["Label:1"], at: 9, lag: 0, kind: .list) == "=")
        #expect(try Self.shown(body, "Label", gone: ["Label:1"], at: 9, lag: 5) == #"[{"id":2}]"#)
        #expect(try Self.shown(#"{"id":1}"#, "Label", list: false, gone: ["Label:1"], at: 9, lag: 5) == "=")
    }

    @Test func `a document from before a write is fetched again if the write may have changed what it shows`() throws {
        let models = try Self.models()
        let old = Observation(sequence: 1, start: 10, end: 15, kind: .detail)
        let state = ObjectState(
            base: Contribution(observation: old, version: 1, payload: Array(#"{"id":1,"a":1}"#.utf8)),
            mark: .unobserved(20)
        )
        func compose(at start: Int64, _ state: ObjectState) -> Composition {
            let observation = Observation(sequence: 2, start: start, end: start + 5, kind: .list)
            let skeleton =
                Array("[".utf8) + Reference.literal(ObjectName(model: "Label", identity: "1")) + Array("]".utf8)
            let pins = [Array(#"{"id":1,"a":2}"#.utf8)]
            return Composer(models: models, lag: 0).compose(skeleton: skeleton, pins: pins, observation: observation) {
                _ in state
            }
        }
        guard case .unknown = compose(at: 10, state) else {
            Issue.record("served")
            return
        }
        guard case .unknown = compose(at: 20, state) else {
            Issue.record("served")
            return
        }
        // What was known before is no longer known.
        #expect(compose(at: 21, state) == .unchanged)
    }

    @Test func `a pattern is filled with another pattern's captures, percent-encoded`() throws {
        let pattern = try RoutePattern("repos/{owner}/{repo}/issues/**")
        let filled = pattern.filled(with: ["owner": "a b", "repo": "*"])
        #expect(filled.text == "repos/a%20b/%2A/issues/**")
        #expect(try RoutePattern(filled.text) == filled)
        #expect(filled.matches(path: "/repos/a%20b/*/issues/7"))
        #expect(!filled.matches(path: "/repos/a%20b/c/issues/7"))
        #expect(filled.onlyPath == nil)
        #expect(filled.plainStart == "/repos/")
        let only = try RoutePattern("users/{login}").filled(with: ["login": "ada"])
        #expect(only.onlyPath == "/users/ada")
        #expect(only.plainStart == "/users/ada")
        #expect(try RoutePattern("**").plainStart == "/")
        #expect(try RoutePattern("/").onlyPath == "/")
    }
}
