import Testing

@testable import CachePolicy
@testable import HTTPSemantics

@Suite struct ContextRestTests {
    private func rest(_ vary: String, _ request: (String, String)...) -> String {
        let request = Fields(request.map { Field($0, $1) })
        let varying = VaryField(Fields([Field("Vary", vary)]))
        let selection = VarySelection(varying, ignoring: ["accept-encoding"], request: request) ?? .none
        return ContextFields().rest(of: selection)
    }

    @Test func `request fields that Vary does not name are no part of the context`() {
        #expect(
            rest("X-Units, Larder-Other-Fields", ("X-Units", "metric"), ("Larder-Other-Fields", "a-b"))
                == "x-units=metric"
        )
    }

    @Test func `request fields that only Vary names form the rest of the context`() {
        #expect(rest("X-Units", ("X-Units", "metric")) == "x-units=metric")
        #expect(rest("X-B, X-A", ("X-A", "1"), ("X-B", "2")) == "x-a=1\nx-b=2")
        #expect(rest("X-Units, Accept-Encoding", ("Accept-Encoding", "gzip")) == "")
        // In the key already.
        let known = rest("Accept, Accept-Language, Foo-Version", ("Accept", "application/json"), ("Foo-Version", "1"))
        #expect(known == "")
    }
}
