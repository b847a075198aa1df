import Testing

@testable import Mapping

/// Values that a response gives to the objects in it: from its URL and its header fields.
struct ResponseValueTests {
    private static let context = MappingContext(
        url: "/repos/larder?state=open+now&state=x&q=a%26b&empty=",
        captures: ["repo": "larder"],
        fields: ["etag": #""e""#]
    )
    private static let rule = BodyRule(model: "A", arity: .one)

    private func fixture() throws -> MapperFixture {
        try MapperFixture(
            ModelDeclaration(
                "A",
                Property("n"),
                Property("url", "@url"),
                Property("repo", "@url.repo"),
                Property("state", "@query.state"),
                Property("q", "@query.q"),
                Property("empty", "@query.empty"),
                Property("page", "@query.page"),
                Property("tag", "@header.ETag")
            )
        )
    }

    @Test func `a query parameter is a value, decoded, and the first of several counts`() throws {
        let shown = try fixture().map(#"{"n":1}"#, Self.rule, in: Self.context)
        #expect(shown.body.contains(#""state":"open now","q":"a&b","empty":"","tag":"\"e\""}"#))
        #expect(shown.warnings.isEmpty)
    }

    @Test func `a query parameter may be part of an identity`() throws {
        let models = try Models([ModelDeclaration("A", identity: ["@query.repo", "n"], Property("n"))])
        let decomposed = Decomposer(models: models)
            .decompose(json(#"{"n":1}"#), as: Self.rule, in: MappingContext(url: "/a?repo=x"))
        guard case .objects(let parts) = decomposed else {
            Issue.record("\(decomposed)")
            return
        }
        #expect(parts.occurrences.map(\.name.identity) == ["x:1"])
    }

    @Test func `when mapping back, a value taken from the response's context is compared with it`() throws {
        let fixture = try fixture()
        let shown = fixture.map(#"{"n":1}"#, Self.rule, in: Self.context)
        let back = try fixture.mapper.unmap(json(shown.body), as: Self.rule, in: Self.context)
        #expect(text(back.body) == #"{"n":1}"# && back.warnings.isEmpty)
        let changed = try fixture.mapper.unmap(
            json(#"{"n":1,"repo":"other","state":"x","page":"2","tag":"f"}"#),
            as: Self.rule,
            in: Self.context
        )
        #expect(text(changed.body) == #"{"n":1}"#)
        #expect(changed.warnings.map(\.kind) == [.notWritten, .notWritten, .notWritten, .notWritten])
        #expect(changed.warnings.map(\.pointer) == ["/repo", "/state", "/page", "/tag"])
        // Nothing contradicts a response of which nothing is known.
        #expect(try fixture.mapper.unmap(json(#"{"n":1,"repo":"other"}"#), as: Self.rule).warnings.isEmpty)
    }
}
