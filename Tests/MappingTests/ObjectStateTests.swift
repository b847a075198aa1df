import Testing

@testable import Mapping

/// One observation of a `Dated` object in a short history.
private struct Event: CustomStringConvertible {
    var start: Int64
    var end: Int64
    var kind: Observation.Kind = .detail
    var members: String

    var description: String { "\(kind)[\(start),\(end)]{\(members)}" }
}

private func contribution(_ event: Event, _ sequence: Int64) -> Contribution {
    Contribution(
        observation: Observation(sequence: sequence, start: event.start, end: event.end, kind: event.kind),
        version: sequence,
        payload: Array("{\"id\":1,\(event.members)}".utf8)
    )
}

private func state(_ events: [Event], lag: Lag = 0, in models: Models) -> ObjectState {
    var state = ObjectState()
    for (index, event) in events.enumerated() {
        _ = state.merge(contribution(event, Int64(index + 1)), model: "Dated", models: models, lag: lag)
    }
    return state
}

private func newest(_ events: [Event], _ member: String = "value", lag: Lag = 0) throws -> String {
    let models = try Tracker.models()
    return state(events, lag: lag, in: models).newest(member, model: "Dated", models: models).map(text) ?? "unknown"
}

@Suite struct ObjectStateTests {
    @Test func `the later of two reads is newer, whichever arrives first`() throws {
        let early = Event(start: 0, end: 5, members: #""value":1"#)
        let late = Event(start: 6, end: 9, members: #""value":2"#)
        #expect(try newest([early, late]) == "2")
        #expect(try newest([late, early]) == "2")
    }

    @Test func `if overlapping reads disagree, the first value stays and the member is in doubt`() throws {
        let one = Event(start: 0, end: 5, members: #""value":1"#)
        let two = Event(start: 4, end: 9, members: #""value":2"#)
        let same = Event(start: 4, end: 9, members: #""value":1.0"#)
        #expect(try newest([one, two]) == "1")
        #expect(try newest([two, one]) == "2")
        let models = try Tracker.models()
        #expect(state([one, two], in: models).knowledge.doubts.map(\.member) == ["value"])
        #expect(state([one, same], in: models).knowledge.doubts.isEmpty)
        let settled = state([one, two, Event(start: 10, end: 12, members: #""value":2"#)], in: models)
        #expect(settled.newest("value", model: "Dated", models: models).map(text) == "2")
        #expect(settled.knowledge.doubts.isEmpty)
    }

    @Test func `text of another encoding, as earlier versions of Larder have stored it, reaches no view as JSON`()
        throws
    {
        let models = try Tracker.models()
        func user(_ id: Int, _ login: [UInt8], at sequence: Int64) -> Contribution {
            Contribution(
                observation: Observation(sequence: sequence, start: sequence, end: sequence, kind: .detail),
                version: sequence,
                payload: Array("{\"id\":\(id),\"login\":\"".utf8) + login + Array("\"}".utf8)
            )
        }
        let latin = ObjectState(base: user(7, [0xDF], at: 2))
        #expect(latin.newestPayload(model: "User", models: models) == nil)
        #expect(latin.plainJSON(model: "User", models: models) == nil)
        #expect(latin.sharedJSON(model: "User", models: models, lag: 0) { _ in nil } == nil)
        let utf8 = ObjectState(base: user(8, Array("ß".utf8), at: 2))
        let states = [ObjectName(model: "User", identity: "7"): latin, ObjectName(model: "User", identity: "8"): utf8]
        let skeleton = Array(#"["\u0001User:7","\u0001User:8"]"#.utf8)
        // Another response's bytes, then its own.
        for login in [Array("s".utf8), [0xDF]] as [[UInt8]] {
            let composition = Composer(models: models, lag: 0).compose(
                skeleton: skeleton,
                pins: [user(7, login, at: 1).payload, user(8, Array("s".utf8), at: 1).payload]
            ) { states[$0] }
            guard case .unknown(_, nil) = composition else {
                Issue.record("\(composition)")
                continue
            }
        }
    }

    @Test func `a list does not override a value observed within the lag, and is remembered as a challenger`() throws {
        for kind in [Observation.Kind.detail, .write] {
            let known = Event(start: 0, end: 10, kind: kind, members: #""value":"known""#)
            let soon = Event(start: 39, end: 45, kind: .list, members: #""value":"list""#)
            let later = Event(start: 41, end: 46, kind: .list, members: #""value":"list""#)
            #expect(try newest([known, soon], lag: 30) == #""known""#)
            #expect(try newest([known, soon, later], lag: 30) == #""list""#)
            #expect(try newest([known, later], lag: 30) == #""list""#)
        }
    }

    @Test func `an embedded object lags as lists do`() throws {
        let models = try Tracker.models()
        var state = state([Event(start: 0, end: 10, members: #""value":1"#)], in: models)
        var embedded = contribution(Event(start: 20, end: 25, members: #""value":0"#), 2)
        embedded.isEmbedded = true
        _ = state.merge(embedded, model: "Dated", models: models, lag: 30)
        #expect(state.newest("value", model: "Dated", models: models).map(text) == "1")
    }

    @Test func `a write that cannot be ordered against a read leaves both unordered`() throws {
        let models = try Tracker.models()
        var state = state([Event(start: 0, end: 12, members: #""value":"read""#)], in: models)
        let write = contribution(Event(start: 5, end: 10, kind: .write, members: #""value":"written""#), 2)
        let merge = state.merge([write], model: "Dated", models: models, lag: 0)
        #expect(merge.unordered == 12)
    }

    @Test func `RK-28 the modification time decides before any clock`() throws {
        let new = Event(start: 0, end: 1, members: #""value":"new","updated_at":"2020-01-02T00:00:00.5Z""#)
        let old = Event(start: 5, end: 6, members: #""value":"old","updated_at":"2020-01-02T01:00:00+01:00""#)
        let equal = Event(start: 5, end: 6, members: #""value":"equal","updated_at":"2020-01-02T00:00:00.500Z""#)
        let none = Event(start: 5, end: 6, members: #""value":"none""#)
        let list = Event(start: 2, end: 3, kind: .list, members: #""value":"list","updated_at":"2021-01-02T00:00:00Z""#)
        #expect(try newest([new, old]) == #""new""#)
        #expect(try newest([old, new]) == #""new""#)
        #expect(try newest([new, equal]) == #""equal""#)
        #expect(try newest([new, none]) == #""none""#)
        #expect(try newest([new, list], lag: 100) == #""list""#)
    }

    @Test func `FJ-08 FJ-24 an absent member changes nothing, and null is a value`() throws {
        let full = Event(start: 0, end: 1, members: #""value":1"#)
        #expect(try newest([full, Event(start: 2, end: 3, members: #""other":1"#)]) == "1")
        #expect(try newest([full, Event(start: 2, end: 3, members: #""value":null"#)]) == "null")
        #expect(try newest([Event(start: 2, end: 3, members: #""other":1"#)]) == "unknown")
    }

    @Test func `a member that occurs twice in one object is no observation`() throws {
        let full = Event(start: 0, end: 1, members: #""value":1"#)
        let twice = Event(start: 2, end: 3, members: #""value":2,"v\u0061lue":3"#)
        #expect(try newest([full, twice]) == "1")
        #expect(try newest([twice]) == "unknown")
    }

    @Test func `a member that one response shows with different values is not observed`() throws {
        let models = try Tracker.models()
        var state = state([Event(start: 0, end: 1, members: #""value":1"#)], in: models)
        let two = contribution(Event(start: 5, end: 6, members: #""value":2"#), 9)
        let three = contribution(Event(start: 5, end: 6, members: #""value":3"#), 9)
        #expect(!state.merge([two, three], model: "Dated", models: models, lag: 0).isChanged)
        #expect(state.newest("value", model: "Dated", models: models).map(text) == "1")
        var unknown = ObjectState()
        _ = unknown.merge([two, three], model: "Dated", models: models, lag: 0)
        #expect(unknown.newest("value", model: "Dated", models: models) == nil)
    }

    @Test func `merging reports whether the newest value changed by JSON's equality`() throws {
        let models = try Tracker.models()
        var state = ObjectState()
        func merge(_ event: Event, _ sequence: Int64) -> Bool {
            state.merge(contribution(event, sequence), model: "Dated", models: models, lag: 0)
        }
        #expect(merge(Event(start: 0, end: 1, members: #""value":"é","x":1"#), 1))
        #expect(!merge(Event(start: 2, end: 3, members: #""value":"é","x":1"#), 2))
        #expect(!merge(Event(start: 4, end: 5, members: #""value":"\u00e9","x":2"#), 3))
        #expect(!merge(Event(start: 0, end: 1, members: #""value":"older""#), 4))
        #expect(merge(Event(start: 6, end: 7, members: #""value":null"#), 5))
        #expect(state.newest("value", model: "Dated", models: models).map(text) == "null")
    }

    @Test func `a slow read that began before a write is older than reads after the write`() throws {
        let write = Event(start: 0, end: 10, kind: .write, members: #""value":"written""#)
        let after = Event(start: 20, end: 30, members: #""value":"written""#)
        let slow = Event(start: 5, end: 40, members: #""value":"old""#)
        #expect(try newest([write, after, slow]) == #""written""#)
    }

    @Test func `an object of a model no longer declared keeps its newest version`() throws {
        var state = ObjectState()
        let new = contribution(Event(start: 0, end: 1, members: #""value":1"#), 1)
        let isChanged = state.merge(new, model: "Gone", models: .none, lag: 0)
        #expect(isChanged)
        #expect(state.base == new)
        #expect(state.mergedPayload(model: "Gone", models: .none) == nil)
        #expect(state.newest("value", model: "Gone", models: .none) == nil)
    }
}

@Suite struct MergedPayloadTests {
    private func merged(_ payloads: [String]) throws -> String? {
        let models = try Tracker.models()
        var state = ObjectState()
        for (index, payload) in payloads.enumerated() {
            let time = Int64(index * 10)
            let observation = Observation(sequence: time, start: time, end: time + 1, kind: .detail)
            let new = Contribution(observation: observation, version: time, payload: Array(payload.utf8))
            _ = state.merge(new, model: "Issue", models: models, lag: 0)
        }
        return state.mergedPayload(model: "Issue", models: models).map(text)
    }

    @Test func `if one response contains every newest value of an object, nothing is merged`() throws {
        #expect(try merged([#"{"id":1,"title":"a"}"#]) == nil)
        #expect(try merged([#"{"id":1,"title":"a","state":"s"}"#, #"{"id":1,"title":"b","state":"s"}"#]) == nil)
        // The older one says more, and the newer nothing else.
        #expect(try merged([#"{"id":1,"title":"a","state":"s"}"#, #"{"id":1,"title":"a"}"#]) == nil)
    }

    @Test func `the newest version gives the order of members, and those it lacks follow`() throws {
        #expect(
            try merged([#"{"id":1,"title":"a","state":"s","extra":1}"#, #"{ "id":1, "title":"b", "other":2 }"#])
                == #"{ "id":1, "title":"b", "other":2 ,"state":"s"}"#
        )
    }

    @Test func `members of inner objects are merged one by one`() throws {
        #expect(
            try merged([#"{"id":1,"head":{"ref":"a","user":"\u0001User:2"}}"#, #"{"id":1,"head":{"ref":"b"}}"#])
                == #"{"id":1,"head":{"ref":"b","user":"\u0001User:2"}}"#
        )
        #expect(
            try merged([#"{"id":1,"signature":{"name":"a","x":1}}"#, #"{"id":1,"title":"t"}"#])
                == #"{"id":1,"title":"t","signature":{"name":"a","x":1}}"#
        )
    }

    @Test func `people see references as bare identities`() throws {
        let models = try Tracker.models()
        let payload = #"{"id":1,"user":"\u0001User:7","labels":["\u0001Label:x","\u0001Label:9"]}"#
        let observation = Observation(sequence: 1, start: 0, end: 1, kind: .detail)
        let state = ObjectState(
            base: Contribution(observation: observation, version: 1, payload: Array(payload.utf8))
        )
        #expect(
            state.plainJSON(model: "Issue", models: models).map(text) == #"{"id":1,"user":7,"labels":["x",9]}"#
        )
        #expect(
            state.plainJSON(model: "Issue", models: models) { $0.model == "User" ? Array("\"7\"".utf8) : nil }
                .map(text) == #"{"id":1,"user":"7","labels":["x",9]}"#
        )
        #expect(state.identityJSON(model: "Issue", models: models) == Array("1".utf8))
    }
}
