import HTTPSemantics
import Store
import Testing

@testable import Proxy
@testable import Settings

@Suite struct ReadBodyTests {
    private static let json: Fields = ["Content-Type": "application/json"]

    private static func digest(
        _ body: String,
        _ kind: ReadingPost = .json,
        _ fields: Fields = json,
        _ persisted: PersistedQueries = PersistedQueries()
    ) throws(NotReadReason) -> String {
        if let reason = NotReadReason(fields, target: "/graphql", kind, length: 0) { throw reason }
        return try ReadBody(Array(body.utf8), kind, fields, of: "a", persisted).digest
    }

    private static func refusal(_ body: String, _ kind: ReadingPost = .graphQL, _ fields: Fields = json)
        -> NotReadReason?
    {
        do throws(NotReadReason) {
            _ = try digest(body, kind, fields)
            return nil
        } catch { return error }
    }

    @Test(arguments: [
        (#"{"a":1,"b":[true,null]}"#, #" { "b" : [ true , null ] , "a" : 1 } "#),
        (#"{"a":"é\/"}"#, #"{"\u0061":"\u00e9/"}"#),
        (#"[{"b":{"d":1,"c":2}}]"#, #"[{"b":{"c":2,"d":1}}]"#), (#""😀""#, #""\ud83d\ude00""#),
    ])
    func `bodies that differ only in white space, order of members or escapes have the same digest`(
        _ one: String,
        _ other: String
    ) throws {
        #expect(try Self.digest(one) == Self.digest(other))
    }

    @Test(arguments: [
        (#"{"a":1}"#, #"{"a":1.0}"#), (#"{"a":1}"#, #"{"a":"1"}"#), ("[1,2]", "[2,1]"), ("[1,2]", "[12]"),
        (#"{"a":null}"#, "{}"),
        (#"["a\nb"]"#, #"["a\\nb"]"#), (#"{"a":{"b":1}}"#, #"{"a":{},"b":1}"#), ("1e2", "100"),
        ("[\"\u{e9}\"]", "[\"e\u{301}\"]"), (#"{"a":1,"b":2}"#, #"{"a":2,"b":1}"#),
    ])
    func `bodies with other values, spellings of numbers or order of elements have different digests`(
        _ one: String,
        _ other: String
    ) throws {
        #expect(try Self.digest(one) != Self.digest(other))
    }

    @Test func `a body's digest depends on its media type, and not on the type's parameters or case`() throws {
        let other: Fields = ["Content-Type": "application/vnd.api+json"]
        let spelled: Fields = ["Content-Type": "Application/JSON; charset=\"UTF-8\""]
        #expect(try Self.digest("{}") != Self.digest("{}", .json, other))
        #expect(try Self.digest("{}") == Self.digest("{}", .json, spelled))
    }

    @Test(
        arguments: [
            ("", .notJSON), ("{", .notJSON), (#"{"a":1} x"#, .notJSON), (#"{"a":1,}"#, .notJSON), ("{'a':1}", .notJSON),
            (#"{"a":1,"a":1}"#, .ambiguous), (#"{"b":[{"a":1,"\u0061":2}]}"#, .ambiguous), (#"["\ud800"]"#, .ambiguous),
            (#"{"\udc00":1}"#, .ambiguous), (String(repeating: "[", count: 600), .notJSON),
            (String(repeating: "[", count: 600) + String(repeating: "]", count: 600), .notJSON),
            ("\"" + String(repeating: "x", count: 1 << 20) + "\"", .tooLarge),
        ] as [(String, NotReadReason)]
    )
    func `a body that is not JSON, or can be read in several ways, is passed on`(
        _ body: String,
        _ reason: NotReadReason
    ) {
        #expect(Self.refusal(body, .json) == reason)
    }

    @Test(
        arguments: [
            Fields(), ["Content-Type": "text/plain"], ["Content-Type": "application/graphql"],
            ["Content-Type": "application/json; charset=utf-16"],
            ["Content-Type": "application/json", "Content-Encoding": "gzip"],
            ["Content-Type": "application/json; charset=utf-7; x=1"],
        ] as [Fields]
    )
    func `a body that its fields do not declare as plain JSON is passed on`(_ fields: Fields) {
        #expect(Self.refusal("{}", .json, fields) == .notJSON)
    }

    @Test func `a body with two media types is passed on`() {
        var fields = Self.json
        fields.append("Content-Type", "application/json")
        #expect(Self.refusal("{}", .json, fields) == .notJSON)
    }

    @Test(
        arguments: [
            (#"{"query":"{ a }"}"#, nil),
            (#"{"query":"{ a }","variables":{"mutation":"mutation"},"operationName":null}"#, nil),
            (#"{"query":"query A { a } query B { b }","operationName":"B"}"#, nil),
            (#"[{"query":"{ a }"},{"query":"{ b }"}]"#, nil),
            (#"{"query":"{ a }","extensions":{"trace":1}}"#, nil),
            (#"{"query":"mutation { a }"}"#, .mutation), (#"{"query":"\u006dutation { a }"}"#, .mutation),
            (#"{"query":"query A { a } mutation B { b }","operationName":"A"}"#, .mutation),
            (#"{"query":"subscription { a }"}"#, .subscription),
            (#"[{"query":"{ a }"},{"query":"mutation { b }"}]"#, .mutation),
            (#"{"query":"{ a"}"#, .malformed), (#"{"query":"fragment F on T { a }"}"#, .malformed),
            (#"{"query":7}"#, .malformed),
            (#"{"query":""}"#, .malformed), ("[]", .noDocument), ("{}", .noDocument), ("7", .noDocument),
            ("[[]]", .noDocument),
            (#"{"query":null}"#, .noDocument), (#"{"variables":{}}"#, .noDocument),
            (#"{"query":"{ a }","id":"x"}"#, .elsewhere),
            (#"{"query":"{ a }","Query":"mutation { b }"}"#, .elsewhere), (#"{"id":"x"}"#, .elsewhere),
            (#"{"query":"{ a }","extensions":{"persistedQuery":{"version":1,"sha256Hash":"00"}}}"#, .elsewhere),
            (#"{"query":"{ a }","extensions":{"PersistedQuery":{}}}"#, .elsewhere),
            (#"{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"00"}}}"#, .unknownQuery),
            (#"{"extensions":{"persistedQuery":{"version":2,"sha256Hash":"00"}}}"#, .elsewhere),
        ] as [(String, NotReadReason?)]
    )
    func `a GraphQL body reads if every document in it does`(_ body: String, _ reason: NotReadReason?) {
        #expect(Self.refusal(body) == reason)
    }

    @Test(arguments: ["/graphql?query=mutation", "/graphql?x=1&%51uery=a", "/graphql?operationName=A", "/graphql?id=7"])
    func `a URL that may name the document is passed on`(_ target: String) {
        #expect(NotReadReason(Self.json, target: target, .graphQL, length: 0) == .elsewhere)
        #expect(NotReadReason(Self.json, target: target, .json, length: 0) == nil)
    }

    @Test func `a persisted query is known once a request has shown it with its SHA-256`() throws {
        let persisted = PersistedQueries()
        let name = Crypto.sha256([Array("{ a }".utf8)]).hexadecimal
        let extensions = #""extensions":{"persistedQuery":{"version":1,"sha256Hash":"\#(name)"}}"#
        func digest(_ body: String, of upstream: UpstreamKey = "a") throws(NotReadReason) -> String {
            try ReadBody(Array(body.utf8), .graphQL, Self.json, of: upstream, persisted).digest
        }
        #expect(throws: NotReadReason.unknownQuery) { try digest("{\(extensions)}") }
        _ = try digest(#"{"query":"{ a }",\#(extensions)}"#)
        _ = try digest("{\(extensions)}")
        #expect(throws: NotReadReason.unknownQuery) { try digest("{\(extensions)}", of: "b") }
    }

    @Test func `a URL with the digest of a body is taken apart, and no other`() throws {
        let body = try ReadBody(Array("{}".utf8), .json, Self.json, of: "a", PersistedQueries())
        #expect(body.url(of: "/a") == "/a?#body=\(body.digest)")
        #expect(body.url(of: "/a?b=c") == "/a?b=c#body=\(body.digest)")
        let split = try #require(ReadBody.split(body.url(of: "/a?b=c")))
        #expect(split == ("/a?b=c", body.digest))
        #expect(ProxiedUpstream.query(ofURL: body.url(of: "/a?b=c")) == "b=c")
        for url in [
            "", "/a", "/a#body=", "/a#body=x", "/a#body=\(body.digest)0", "/a#body=\(body.digest.uppercased())Z",
        ] {
            #expect(ReadBody.split(url) == nil)
        }
    }
}
