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

private func state(_ events: [Event], lag: Int64 = 0, in models: Models) -> ObjectState {
    var state = ObjectState()
    for (index, event) in events.enumerated() {
        _ = state.merge(contribution(event, Int64(index + 1)), model: "Dated", models: models, lag: lag)
    }
    return state
}

private func newest(_ events: [Event], _ member: String = "value", lag: Int64 = 0) throws -> String {
    let models = try Tracker.models()
    switch state(events, lag: lag, in: models).newest(member, model: "Dated", models: models, lag: lag) {
    case .value(let value): return text(value)
    case .unknown: return "unknown"
    case .disputed: return "disputed"
    }
}

@Suite struct ObjectStateTests {
    @Test func `the later of two reads is newer, whichever arrives first`() throws {
        let early = Event(start: 0, end: 5, members: #""value":1"#)
        let late = Event(start: 5, end: 9, members: #""value":2"#)
        #expect(try newest([early, late]) == "2")
        #expect(try newest([late, early]) == "2")
    }

    @Test func `reads that overlapped and disagree are disputed, and agree where they agree`() throws {
        let one = Event(start: 0, end: 5, members: #""value":1"#)
        let two = Event(start: 4, end: 9, members: #""value":2"#)
        let same = Event(start: 4, end: 9, members: #""value":1.0"#)
        #expect(try newest([one, two]) == "disputed")
        #expect(try newest([two, one]) == "disputed")
        #expect(try newest([one, same]) == "1.0")
    }

    @Test func `a dispute ends with the next read`() throws {
        let one = Event(start: 0, end: 5, members: #""value":1"#)
        let two = Event(start: 4, end: 9, members: #""value":2"#)
        #expect(try newest([one, two, Event(start: 9, end: 12, members: #""value":3"#)]) == "3")
    }

    @Test func `a write is as new as its answer, a read as old as its request`() throws {
        let write = Event(start: 0, end: 10, kind: .write, members: #""value":"w""#)
        let before = Event(start: 9, end: 50, members: #""value":"r""#)
        let after = Event(start: 10, end: 11, members: #""value":"r""#)
        let other = Event(start: 11, end: 11, kind: .write, members: #""value":"v""#)
        #expect(try newest([write, before]) == #""w""#)
        #expect(try newest([before, write]) == #""w""#)
        #expect(try newest([other, write]) == #""v""#)
        // A request sent in the instant of the answer: the sequence decides, the read came second.
        #expect(try newest([write, after]) == #""r""#)
    }

    @Test func `a list does not override a detail or a write until the lag is over`() throws {
        for kind in [Observation.Kind.detail, .write] {
            let known = Event(start: 0, end: 10, kind: kind, members: #""value":"known""#)
            let soon = Event(start: 39, end: 45, kind: .list, members: #""value":"list""#)
            let later = Event(start: 40, end: 45, kind: .list, members: #""value":"list""#)
            #expect(try newest([known, soon], lag: 30) == #""known""#)
            #expect(try newest([soon, known], lag: 30) == #""known""#)
            #expect(try newest([known, later], lag: 30) == #""list""#)
        }
        let first = Event(start: 0, end: 10, kind: .list, members: #""value":1"#)
        let second = Event(start: 11, end: 12, kind: .list, members: #""value":2"#)
        #expect(try newest([first, second], lag: 30) == "2")
    }

    @Test func `RK-28 the time of modification decides before any clock`() throws {
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

    @Test func `FJ-08 FJ-24 a member that is absent says nothing, null says null`() throws {
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

    @Test func `what one answer shows differently it does not observe`() throws {
        let models = try Tracker.models()
        var state = state([Event(start: 0, end: 1, members: #""value":1"#)], in: models)
        let two = contribution(Event(start: 5, end: 6, members: #""value":2"#), 9)
        let three = contribution(Event(start: 5, end: 6, members: #""value":3"#), 9)
        let isChanged = state.merge([two, three], model: "Dated", models: models, lag: 0)
        #expect(!isChanged)
        #expect(state.newest("value", model: "Dated", models: models, lag: 0) == .value(Array("1".utf8)))
    }

    @Test func `a contradiction lasts as long as any version that takes part in it`() throws {
        let models = try Models([ModelDeclaration(name: "Dated", identity: ["id"], sharesAll: true)])
        var state = ObjectState()
        let two = contribution(Event(start: 5, end: 6, members: #""value":2"#), 1)
        let three = contribution(Event(start: 5, end: 6, members: #""value":3,"title":1"#), 1)
        _ = state.merge([two, three], model: "Dated", models: models, lag: 0)
        let other = contribution(Event(start: 7, end: 8, members: #""other":1"#), 2)
        _ = state.merge(other, model: "Dated", models: models, lag: 0)
        #expect(state.newest("value", model: "Dated", models: models, lag: 0) == .unknown)
        #expect(state.newest("title", model: "Dated", models: models, lag: 0) == .value(Array("1".utf8)))
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
        #expect(state.contributions.map(\.version) == [5])
    }

    @Test func `a slow read that began before a write is older than reads after the write`() throws {
        let write = Event(start: 0, end: 10, kind: .write, members: #""value":"written""#)
        let after = Event(start: 20, end: 30, members: #""value":"written""#)
        let slow = Event(start: 5, end: 40, members: #""value":"old""#)
        for history in [[write, after, slow], [slow, write, after], [after, slow, write]] {
            #expect(try newest(history) == #""written""#)
        }
    }

    @Test func `a write is dropped once no read from before it can be on its way`() throws {
        let models = try Tracker.models()
        let write = Event(start: 0, end: 10, kind: .write, members: #""value":1"#)
        let soon = Event(start: 20, end: 30, members: #""value":2"#)
        let late = Event(start: 700_000_000, end: 700_000_001, members: #""value":3"#)
        #expect(state([write, soon], in: models).contributions.count == 2)
        #expect(state([write, soon, late], in: models).contributions.count == 1)
    }

    @Test func `contributions that say nothing newer are dropped, and sixteen are kept at most`() throws {
        let models = try Models([ModelDeclaration(name: "Dated", identity: ["id"], sharesAll: true)])
        let events = (0..<40).map { Event(start: $0 * 2, end: $0 * 2 + 1, members: "\"m\($0)\":1") }
        let state = state(events, in: models)
        #expect(state.contributions.count == ObjectState.maximumContributions)
        #expect(state.contributions[0].version == 40)
        let all = Event(start: 100, end: 101, members: (0..<40).map { "\"m\($0)\":2" }.joined(separator: ","))
        var whole = state
        _ = whole.merge(contribution(all, 99), model: "Dated", models: models, lag: 0)
        #expect(whole.contributions.map(\.version) == [99])
    }

    @Test func `an object of a model no longer declared keeps its newest version`() throws {
        var state = ObjectState()
        let new = contribution(Event(start: 0, end: 1, members: #""value":1"#), 1)
        let isChanged = state.merge(new, model: "Gone", models: .none, lag: 0)
        #expect(isChanged)
        #expect(state.contributions == [new])
        #expect(state.mergedPayload(model: "Gone", models: .none, lag: 0) == nil)
        #expect(state.newest("value", model: "Gone", models: .none, lag: 0) == .unknown)
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
        return state.mergedPayload(model: "Issue", models: models, lag: 0).map(text)
    }

    @Test func `one contribution that says it all needs no merging`() throws {
        #expect(try merged([#"{"id":1,"title":"a"}"#]) == nil)
        #expect(try merged([#"{"id":1,"title":"a","state":"s"}"#, #"{"id":1,"title":"b","state":"s"}"#]) == nil)
        // The older one says more, and the newer nothing else.
        #expect(try merged([#"{"id":1,"title":"a","state":"s"}"#, #"{"id":1,"title":"a"}"#]) == nil)
    }

    @Test func `the newest contribution gives the shape and the missing members follow`() throws {
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

    @Test func `references are shown bare to people`() throws {
        let models = try Tracker.models()
        let payload = #"{"id":1,"user":"\u0001User:7","labels":["\u0001Label:x","\u0001Label:9"]}"#
        let observation = Observation(sequence: 1, start: 0, end: 1, kind: .detail)
        let state = ObjectState(contributions: [
            Contribution(observation: observation, version: 1, payload: Array(payload.utf8))
        ])
        #expect(
            state.plainJSON(model: "Issue", models: models, lag: 0).map(text) == #"{"id":1,"user":7,"labels":["x",9]}"#
        )
        #expect(
            state.plainJSON(model: "Issue", models: models, lag: 0) { $0.model == "User" ? Array("\"7\"".utf8) : nil }
                .map(text) == #"{"id":1,"user":"7","labels":["x",9]}"#
        )
        #expect(state.identityJSON(model: "Issue", models: models) == Array("1".utf8))
    }
}
