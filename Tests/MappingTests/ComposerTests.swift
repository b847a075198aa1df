import Testing

@testable import Mapping

/// Documents put together from what is known of their objects, member by member.
@Suite struct ComposerTests {
    private func shelf() throws -> Shelf { try Shelf(Tracker.models()) }

    @Test func `without newer values the body is as received`() throws {
        var shelf = try shelf()
        shelf.receive("list", #"[{"id":1,"title":"a","user":{"id":2,"login":"x"}}, 7 ]"#, "Issue", list: true)
        #expect(shelf.compose("list") == .unchanged)
        shelf.receive("detail", #"{"title":"\u0061","user":{"id":2.0,"login":"x"},"id":1}"#, "Issue")
        #expect(shelf.compose("list") == .unchanged)
        #expect(shelf.compose("detail") == .unchanged)
    }

    @Test func `a newer value is shown in the shape of the document`() throws {
        var shelf = try shelf()
        shelf.receive("list", #"[ {"id":1, "title" : "a", "score":3, "extra":1} ]"#, "Issue", list: true)
        let changed = shelf.receive("detail", #"{"id":1,"title":"b","score":4,"extra":2,"state":"open"}"#, "Issue")
        #expect(changed == [ObjectName(model: "Issue", identity: "1")])
        // Local and undeclared members stay; a declared one that the document does not show is not added.
        #expect(shelf.shown("list") == #"[ {"id":1, "title" : "b", "score":3, "extra":1} ]"#)
        #expect(shelf.shown("detail") == "=")
        guard case .composed(let body) = shelf.compose("list") else {
            Issue.record("not composed")
            return
        }
        #expect(body.added.isEmpty)
    }

    @Test func `absent, null and a value are three states`() throws {
        var shelf = try shelf()
        shelf.receive("a", #"{"id":1,"title":"t","state":"s"}"#, "Issue")
        shelf.receive("b", #"{"id":1,"title":null}"#, "Issue")
        #expect(shelf.shown("a") == #"{"id":1,"title":null,"state":"s"}"#)
        shelf.receive("c", #"{"id":1,"title":"u"}"#, "Issue")
        #expect(shelf.shown("b") == #"{"id":1,"title":"u"}"#)
        #expect(shelf.shown("a") == #"{"id":1,"title":"u","state":"s"}"#)
    }

    @Test(arguments: [
        ("/issues?state=open", "closed", false), ("/issues?page=2&state=open", "closed", false),
        ("/issues?state=open", "open", true), ("/issues?sort=state", "closed", true), ("/issues", "closed", true),
        ("/issues?id=1", "closed", true),
    ])
    func `an object whose member is no longer as its list was asked for makes the list outdated`(
        url: String,
        state: String,
        isKnown: Bool
    ) throws {
        var shelf = try shelf()
        let former = state == "open" ? "x" : "open"
        shelf.receive("list", #"[{"id":1,"title":"t","state":"\#(former)"}]"#, "Issue", list: true)
        shelf.receive("detail", #"{"id":1,"title":"t","state":"\#(state)"}"#, "Issue")
        let (skeleton, pins) = try #require(shelf.documents["list"])
        let composed = Composer(models: shelf.models, lag: shelf.lag)
            .compose(skeleton: skeleton, pins: pins, url: url, observation: shelf.observations["list"]) {
                shelf.states[$0]
            }
        let newer = #"[{"id":1,"title":"t","state":"\#(state)"}]"#
        switch composed {
        case .composed(let body): #expect(isKnown && text(body.bytes) == newer)
        // With the upstream away, the newer value is shown.
        case .unknown(_, let partial?): #expect(!isKnown && text(partial.bytes) == newer)
        default: Issue.record("\(composed)")
        }
    }

    @Test func `an older response that arrives late changes no other document`() throws {
        var shelf = try shelf()
        shelf.receive("new", #"{"id":1,"title":"new"}"#, "Issue", start: 100, end: 110)
        #expect(shelf.receive("old", #"{"id":1,"title":"old"}"#, "Issue", start: 10, end: 20).isEmpty)
        #expect(shelf.shown("new") == "=")
        #expect(shelf.shown("old") == #"{"id":1,"title":"new"}"#)
    }

    @Test func `documents of overlapping reads that disagree both show the settled value`() throws {
        var shelf = try shelf()
        shelf.receive("a", #"{"id":1,"title":"a","state":"s"}"#, "Issue", start: 0, end: 10)
        shelf.receive("b", #"{"id":1,"title":"b","state":"s"}"#, "Issue", start: 5, end: 15)
        #expect(shelf.shown("a") == "=")
        #expect(shelf.shown("b") == #"{"id":1,"title":"a","state":"s"}"#)
    }

    @Test func `a contradiction gives way to a later response, also to one that says what was known before`() throws {
        var shelf = try shelf()
        let detail = #"{"id":1,"title":"known"}"#
        shelf.receive("before", detail, "Issue")
        shelf.receive("list", #"[{"id":1,"title":"one"},{"id":1,"title":"other"}]"#, "Issue", list: true)
        #expect(shelf.shown("list") == "=")
        #expect(shelf.receive("after", detail, "Issue") == [ObjectName(model: "Issue", identity: "1")])
        #expect(shelf.shown("list") == #"[{"id":1,"title":"known"},{"id":1,"title":"known"}]"#)
    }

    @Test func `a contradiction brings no older value back to a response that showed it before`() throws {
        var shelf = try shelf()
        shelf.receive("before", #"{"id":1,"title":"one"}"#, "Issue")
        shelf.receive("detail", #"{"id":1,"title":"known"}"#, "Issue")
        shelf.receive("list", #"[{"id":1,"title":"one"},{"id":1,"title":"other"}]"#, "Issue", list: true)
        #expect(shelf.shown("list") == "=")
        #expect(shelf.shown("before") == #"{"id":1,"title":"known"}"#)
    }

    @Test func `an object that a document shows several times looks the same everywhere in it`() throws {
        var shelf = try shelf()
        shelf.receive(
            "list",
            #"[{"id":1,"user":{"id":7,"login":"x"}},{"id":2,"user":{"login":"x","id":7,"name":"n"}}]"#,
            "Issue",
            list: true
        )
        shelf.receive("user", #"{"id":7,"login":"y","name":"m"}"#, "User")
        #expect(
            shelf.shown("list")
                == #"[{"id":1,"user":{"id":7,"login":"y"}},{"id":2,"user":{"login":"y","id":7,"name":"m"}}]"#
        )
    }

    @Test func `an object that one response shows in two ways stays as received until a newer value comes`() throws {
        var shelf = try shelf()
        let body = #"[{"id":1,"user":{"id":7,"login":"x"}},{"id":2,"user":{"id":7,"login":"z"}}]"#
        shelf.receive("list", body, "Issue", list: true)
        #expect(shelf.shown("list") == "=")
        shelf.receive("user", #"{"id":7,"login":"y"}"#, "User")
        #expect(shelf.shown("list") == body.replacingLogins(with: "y"))
    }

    @Test func `an object inside itself and a cycle are composed to their pinned depth`() throws {
        var shelf = try shelf()
        shelf.receive(
            "a",
            #"{"id":1,"title":"a","parent":{"id":2,"title":"b","parent":{"id":1,"title":"a"}}}"#,
            "Issue"
        )
        shelf.receive("b", #"{"id":1,"title":"c"}"#, "Issue")
        #expect(
            shelf.shown("a") == #"{"id":1,"title":"c","parent":{"id":2,"title":"b","parent":{"id":1,"title":"c"}}}"#
        )
        shelf.receive("self", #"{"id":3,"title":"x","parent":{"id":3,"title":"x"}}"#, "Issue")
        shelf.receive("self too", #"{"id":3,"title":"y"}"#, "Issue")
        #expect(shelf.shown("self") == #"{"id":3,"title":"y","parent":{"id":3,"title":"y"}}"#)
    }

    @Test func `names with escapes keep their spelling, and duplicate members keep their values`() throws {
        var shelf = try shelf()
        shelf.receive("a", #"{"\u0069d":1,"t\u0069tle":"a","state":1,"state":2}"#, "Issue")
        shelf.receive("b", #"{"id":1,"title":"b","state":"open"}"#, "Issue")
        #expect(shelf.shown("a") == #"{"\u0069d":1,"t\u0069tle":"b","state":1,"state":2}"#)
    }

    @Test func `the pinned spelling stays where the value is the same`() throws {
        var shelf = try shelf()
        shelf.receive("a", #"{"id":1,"title":1.0,"state":"é"}"#, "Issue")
        shelf.receive("b", #"{"id":1,"title":1,"state":"\u00e9","branch":1}"#, "Issue")
        #expect(shelf.shown("a") == "=")
    }

    @Test func `nested key paths are composed one by one`() throws {
        var shelf = try shelf()
        shelf.receive("a", #"{"id":1,"head":{"ref":"a","sha":"1"}}"#, "Issue")
        shelf.receive("b", #"{"id":1,"head":{"ref":"b","sha":"2"}}"#, "Issue")
        #expect(shelf.shown("a") == #"{"id":1,"head":{"ref":"b","sha":"1"}}"#)
    }

    @Test func `share all moves every member but the local ones`() throws {
        var shelf = try shelf()
        shelf.receive("a", #"[{"id":1,"name":"bug","rank":1,"new":{"a":1}}]"#, "Label", list: true)
        shelf.receive("b", #"{"id":1,"name":"fault","rank":2,"new":{"a":2}}"#, "Label")
        #expect(shelf.shown("a") == #"[{"id":1,"name":"fault","rank":1,"new":{"a":2}}]"#)
    }

    @Test(arguments: [true, false])
    func `with the upstream away, an object is shown as known before a write without a body`(isOwn: Bool) throws {
        var shelf = try shelf()
        let list = #"[{"id":1,"title":"a"}, {"id":2,"title":"b"},{"id":3,"title":"c"}]"#
        shelf.receive("list", list, "Issue", list: true)
        shelf.receive("one", #"{"id":1,"title":"A"}"#, "Issue")
        shelf.receive("two", #"{"id":2,"title":"B"}"#, "Issue")
        shelf.receive("three", #"{"id":3,"title":"C"}"#, "Issue")
        let (skeleton, pins) = try #require(shelf.documents["list"])
        let unknown = ObjectName(model: "Issue", identity: "2")
        let observation = try #require(shelf.observations["list"])
        func compose(isPartialWanted: Bool) -> Composition {
            var doubts: Set<Int64> = []
            return Composer(models: shelf.models, lag: shelf.lag).compose(
                skeleton: skeleton,
                pins: pins,
                observation: observation,
                isPartialWanted: isPartialWanted,
                doubts: &doubts
            ) { name in
                var state = shelf.states[name]
                if name == unknown { state?.mark = .unobserved(.max - 1, isOwn: isOwn) }
                return state
            }
        }
        guard case .unknown(let reason, let partial) = compose(isPartialWanted: true) else {
            Issue.record("composed")
            return
        }
        #expect(reason.contains("\(unknown)"))
        #expect(
            partial.map { String(decoding: $0.bytes, as: UTF8.self) }
                == #"[{"id":1,"title":"A"}, {"id":2,"title":"B"},{"id":3,"title":"C"}]"#
        )
        guard case .unknown(_, nil) = compose(isPartialWanted: false) else {
            Issue.record("a part was not wanted")
            return
        }
    }

    @Test func `a damaged document is not composed`() throws {
        let composer = Composer(models: try Tracker.models(), lag: 0)
        let skeleton = Array(#"["\u0001Issue:1"]"#.utf8)
        guard case .unknown = composer.compose(skeleton: skeleton, pins: [], state: { _ in nil }) else {
            Issue.record("composed")
            return
        }
    }

    @Test func `a failing look-up fails the composition`() throws {
        struct Unreadable: Error {}
        let composer = Composer(models: try Tracker.models(), lag: 0)
        #expect(throws: Unreadable.self) {
            try composer.compose(
                skeleton: Array(#""\u0001Issue:1""#.utf8),
                pins: [Array(#"{"id":1}"#.utf8)],
                state: { _ throws(Unreadable) in throw Unreadable() }
            )
        }
    }

    @Test func `an object of a model no longer declared keeps its bytes, and objects within it are composed`() throws {
        var shelf = try shelf()
        shelf.receive("a", #"{"id":1,"title":"a","user":{"id":2,"login":"x"}}"#, "Issue")
        shelf.receive("u", #"{"id":2,"login":"y"}"#, "User")
        let (skeleton, pins) = try #require(shelf.documents["a"])
        let rest = try Models(Tracker.models().declarations.filter { $0.name == "User" })
        let states = shelf.states
        let composition = Composer(models: rest, lag: 0).compose(skeleton: skeleton, pins: pins) { states[$0] }
        guard case .composed(let body) = composition else {
            Issue.record("not composed")
            return
        }
        #expect(text(body.bytes) == #"{"id":1,"title":"a","user":{"id":2,"login":"y"}}"#)
    }
}

extension String {
    /// The text with the value of every `login` replaced.
    fileprivate func replacingLogins(with login: String) -> String {
        split(separator: #""login":""#, omittingEmptySubsequences: false).enumerated().map { index, part in
            index == 0 ? String(part) : login + part.drop { $0 != "\"" }
        }.joined(separator: #""login":""#)
    }
}
