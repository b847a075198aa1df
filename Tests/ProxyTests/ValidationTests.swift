import DaemonTestSupport
import Store
import Testing

@testable import CachePolicy
@testable import HTTPSemantics
@testable import Proxy

@Suite struct ValidationTests {
    private static func stored(_ tag: String?, modified: Int64? = nil, date: Int64 = exampleDate)
        -> Validators
    {
        Validators(
            status: 200,
            entityTag: tag.flatMap { EntityTag(bytes($0)) },
            lastModified: modified,
            date: date
        )
    }

    private static let variants = [
        Variant(selection: [1], validators: stored("\"b\"", modified: exampleDate)),
        Variant(selection: [2], validators: stored("W/\"c\"")), Variant(selection: [3], validators: stored(nil)),
    ]

    /// The stored response that a 304 confirms, as a word for a table.
    private func selected(_ validation: Validation, _ lines: [(String, String)]) -> String {
        switch validation.selected(by: fields(lines), now: exampleDate) {
        case .chosen: "chosen"
        case .variant(let variant): "variant \(variant.selection[0])"
        case .others(let document): "document \(document) of another"
        case nil: "none"
        }
    }

    @Test func `all tags go into one If-None-Match; the date is sent only if one response is validated`() {
        let chosen = Self.stored("\"a\"", modified: exampleDate)
        let alone = Validation(chosen: chosen, variants: [])
        #expect(alone.fields == fields([("If-None-Match", "\"a\""), ("If-Modified-Since", date(exampleDate))]))
        let all = Validation(chosen: chosen, variants: Self.variants)
        #expect(all.fields == fields([("If-None-Match", "\"a\", \"b\", W/\"c\"")]))
        let other = Validation(chosen: nil, variants: [Self.variants[0]])
        #expect(other.fields == fields([("If-None-Match", "\"b\"")]))
        #expect(Validation(chosen: nil, variants: [Self.variants[2]]).isEmpty)
    }

    @Test func `entity tags that do not fit into a head are left out`() {
        let many = (0..<64).map { index in
            Variant(selection: [], validators: Self.stored("\"\(index)\(String(repeating: "x", count: 200))\""))
        }
        let value = Validation(chosen: Self.stored("\"a\""), variants: many).fields.text("if-none-match") ?? ""
        #expect(value.hasPrefix("\"a\", \"0x"))
        #expect(value.utf8.count <= 4096)
    }

    @Test(
        arguments: [
            ([("ETag", "\"a\"")], "chosen"), ([("ETag", "\"b\"")], "variant 1"), ([("ETag", "W/\"c\"")], "variant 2"),
            ([("ETag", "\"c\"")], "variant 2"), ([("ETag", "\"d\"")], "none"), ([], "none"),
            ([("Last-Modified", date(exampleDate))], "none"),
        ] as [([(String, String)], String)]
    )
    func `RFC 9111 §4.3.4: a 304 selects the response that it names`(_ lines: [(String, String)], _ expected: String) {
        #expect(selected(Validation(chosen: Self.stored("\"a\""), variants: Self.variants), lines) == expected)
    }

    @Test func `a weak tag releases no response to a client with other fields`() {
        let others = Variant(selection: [1], validators: Self.stored("\"b\""), needsStrongTag: true)
        let validation = Validation(chosen: nil, variants: [others])
        #expect(selected(validation, [("ETag", "\"b\"")]) == "variant 1")
        #expect(selected(validation, [("ETag", "W/\"b\"")]) == "none")
    }

    @Test(
        arguments: [
            ([("ETag", "\"x\"")], "document 7 of another"), ([("ETag", "W/\"x\"")], "document 7 of another"),
            ([("ETag", "\"a\"")], "chosen"), ([("ETag", "W/\"c\"")], "variant 2"), ([("ETag", "\"d\"")], "none"),
            ([], "none"), ([("Last-Modified", date(exampleDate))], "none"),
            ([("ETag", "\"x\""), ("ETag", "\"x\"")], "none"),
        ] as [([(String, String)], String)]
    )
    func `another principal's response counts only by the tag for it`(_ lines: [(String, String)], _ expected: String)
        throws
    {
        let tag = try #require(EntityTag(bytes("W/\"x\"")))
        let across = TagAcrossPrincipals.expected(tag, of: DocumentID(rawValue: 7))
        let chosen = Self.stored("\"a\"", modified: exampleDate)
        let validation = Validation(chosen: chosen, variants: Self.variants, across: across)
        #expect(selected(validation, lines) == expected)
        #expect(validation.fields == fields([("If-None-Match", "\"a\", \"b\", W/\"c\", W/\"x\"")]))
        let alone = Validation(chosen: nil, variants: [], across: across)
        #expect(selected(alone, lines) == (expected.hasPrefix("document") ? expected : "none"))
        #expect(alone.fields == fields([("If-None-Match", "W/\"x\"")]))
        let wrong = TagAcrossPrincipals.wrong(tag, of: DocumentID(rawValue: 7))
        #expect(selected(Validation(chosen: nil, variants: [], across: wrong), lines) == "none")
    }

    @Test func `a 304 without validators confirms the chosen response, and no variant`() {
        #expect(selected(Validation(chosen: Self.stored("\"a\""), variants: []), []) == "chosen")
        #expect(selected(Validation(chosen: nil, variants: [Self.variants[0]]), []) == "none")
        #expect(selected(Validation(chosen: nil, variants: [Self.variants[0]]), [("ETag", "\"b\"")]) == "variant 1")
    }
}
