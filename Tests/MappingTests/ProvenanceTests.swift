import Testing

@testable import Mapping

/// Where an object's members come from.
@Suite struct ProvenanceTests {
    private func contribution(
        _ sequence: Int64,
        _ payload: String,
        _ kind: Observation.Kind = .detail
    ) -> Contribution {
        Contribution(
            observation: Observation(sequence: sequence, start: sequence * 10, end: sequence * 10 + 5, kind: kind),
            version: sequence,
            payload: Array(payload.utf8),
            origin: sequence
        )
    }

    private func models(_ properties: PropertyDeclaration..., local: [String] = []) throws -> Models {
        try Models([ModelDeclaration(name: "Thing", identity: ["id"], properties: properties, local: local)])
    }

    private func members(
        _ contributions: [Contribution],
        in models: Models,
        model: String = "Thing",
        lag: Lag = 0,
        others: [Contribution] = []
    ) -> [String: Provenance.Member] {
        var state = ObjectState()
        for contribution in contributions { _ = state.merge(contribution, model: model, models: models, lag: lag) }
        let found = state.provenance(model: model, models: models, lag: lag, others: others)
        return Dictionary(uniqueKeysWithValues: found.map { ($0.pointer, $0) })
    }

    @Test func `provenance distinguishes declared, local and undeclared members`() throws {
        let models = try models(Tracker.property("name"), Tracker.property("city", "place.city"), local: ["score"])
        let found = members(
            [contribution(1, #"{"id":1,"name":"a","score":2,"place":{"city":"c","zip":1},"x":0}"#)],
            in: models
        )
        #expect(
            found.mapValues(\.standing) == [
                "/id": .known, "/name": .known, "/score": .local, "/place/city": .known, "/place/zip": .undeclared,
                "/x": .undeclared,
            ]
        )
        #expect(found["/place/city"]?.properties == ["city"])
        #expect(found["/name"]?.moves == true)
        #expect(found["/id"]?.moves == false)
    }

    @Test func `a member names the response that showed it last`() throws {
        let models = try models(Tracker.property("name"), Tracker.property("size"))
        let found = members(
            [
                contribution(1, #"{"id":1,"name":"a","size":1}"#), contribution(2, #"{"id":1,"name":"a"}"#, .list),
            ],
            in: models
        )
        #expect(found["/name"]?.shown?.source == 2)
        #expect(found["/size"]?.shown?.source == 1)
    }

    @Test func `a member in doubt names the value that contradicts it`() throws {
        let models = try models(Tracker.property("name"), Tracker.property("only"))
        let found = members(
            [contribution(1, #"{"id":1,"name":"a"}"#), contribution(2, #"{"id":1,"name":"b","only":1}"#, .list)],
            in: models,
            lag: 1000
        )
        #expect(found["/name"].map { text($0.value ?? []) } == #""a""#)
        #expect(found["/name"]?.standing == .doubt)
        #expect(found["/name"]?.challenger.map { text($0.value) } == #""b""#)
        #expect(found["/only"]?.standing == .known)
    }

    @Test func `a settled value names what it replaced, and by which rule`() throws {
        let models = try models(Tracker.property("name"))
        let found = members(
            [contribution(1, #"{"id":1,"name":"a"}"#), contribution(2, #"{"id":1,"name":"b"}"#)],
            in: models
        )
        #expect(found["/name"]?.replaced == Knowledge.Former(value: Array(#""a""#.utf8), rule: .newer))
    }

    @Test func `a gathered member names its parts, and a failing value its fault`() throws {
        var sum = Tracker.property("count")
        sum.merge = .sum
        var checked = Tracker.property("level")
        checked.checks = [.range(minimum: Array("0".utf8), maximum: Array("9".utf8))]
        let models = try models(sum, checked)
        let failing = contribution(2, #"{"id":1,"count":5,"level":99}"#)
        let found = members(
            [contribution(1, #"{"id":1,"count":2,"level":3}"#), failing],
            in: models,
            others: [failing]
        )
        let count = try #require(found["/count"])
        #expect(count.standing == .gathered)
        #expect(count.value.map(text) == "7")
        #expect(count.items.map { text($0.value) } == ["2", "5"])
        #expect(found["/level"]?.standing == .known)
        #expect(found["/level"]?.value.map(text) == "3")
        #expect(found["/level"]?.quarantined.map { text($0.value) } == ["99"])
    }

    @Test func `objects in values are shown by their identities`() throws {
        let models = try Tracker.models()
        let found = members(
            [contribution(1, "{\"id\":1,\"user\":\"\\u0001User:7\",\"labels\":[\"\\u0001Label:8\"]}")],
            in: models,
            model: "Issue"
        )
        #expect(found["/user"]?.value.map(text) == "7")
        #expect(found["/labels"]?.value.map(text) == "[8]")
    }
}
