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
        lag: Int64 = 0,
        others: [Contribution] = []
    ) -> [String: Provenance.Member] {
        var state = ObjectState()
        for contribution in contributions { _ = state.merge(contribution, model: model, models: models, lag: lag) }
        let provenance = state.provenance(model: model, models: models, lag: lag, others: others)
        return Dictionary(uniqueKeysWithValues: provenance.members.map { ($0.pointer, $0) })
    }

    @Test func `declared, local and undeclared members are told apart`() throws {
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

    @Test func `all who show the newest value are named, the latest first`() throws {
        let models = try models(Tracker.property("name"), Tracker.property("size"))
        let found = members(
            [
                contribution(1, #"{"id":1,"name":"a","size":1}"#), contribution(2, #"{"id":1,"name":"a"}"#, .list),
            ],
            in: models
        )
        #expect(found["/name"]?.sightings.map(\.observation.sequence) == [2, 1])
        #expect(found["/size"]?.sightings.map(\.observation.sequence) == [1])
    }

    @Test func `a list that comes too soon is overruled by lag`() throws {
        let models = try models(Tracker.property("name"), Tracker.property("only"))
        let found = members(
            [contribution(1, #"{"id":1,"name":"a"}"#), contribution(2, #"{"id":1,"name":"b","only":1}"#, .list)],
            in: models,
            lag: 1000
        )
        #expect(found["/name"].map { text($0.value ?? []) } == #""a""#)
        #expect(found["/name"]?.overruled.map(\.rule) == [.lag])
    }

    @Test func `what only documents show any more is told as overruled`() throws {
        let models = try models(Tracker.property("name"))
        let old = contribution(1, #"{"id":1,"name":"a"}"#)
        let found = members([contribution(2, #"{"id":1,"name":"b"}"#)], in: models, others: [old])
        #expect(found["/name"]?.overruled.map { text($0.sighting.value) } == [#""a""#])
        #expect(found["/name"]?.overruled.map(\.rule) == [.later])
    }

    @Test func `what an answer contradicts itself about has its candidates`() throws {
        let models = try models(Tracker.property("name"), Tracker.property("size"))
        var (one, two) = (
            contribution(1, #"{"id":1,"name":"a","size":1}"#), contribution(1, #"{"id":1,"name":"b","size":1}"#)
        )
        (one.version, two.version) = (1, 2)
        var state = ObjectState()
        _ = state.merge([one, two], model: "Thing", models: models, lag: 0)
        let found = state.provenance(model: "Thing", models: models, lag: 0).members
        let name = try #require(found.first { $0.pointer == "/name" })
        #expect(name.standing == .contradicted)
        #expect(Set(name.sightings.map { text($0.value) }) == [#""a""#, #""b""#])
        #expect(found.first { $0.pointer == "/size" }?.standing == .known)
    }

    @Test func `gathered members name their parts, and failing values their fault`() throws {
        var sum = Tracker.property("count")
        sum.merge = .sum
        var checked = Tracker.property("level")
        checked.checks = [.range(minimum: Array("0".utf8), maximum: Array("9".utf8))]
        let models = try models(sum, checked)
        let found = members(
            [contribution(1, #"{"id":1,"count":2,"level":3}"#), contribution(2, #"{"id":1,"count":5,"level":99}"#)],
            in: models
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
