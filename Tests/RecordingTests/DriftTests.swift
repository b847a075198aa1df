import HTTPSemantics
import Testing

@testable import Recording

/// How much a difference matters.
@Suite struct DriftTests {
    private static func drift(_ old: String, _ new: String, status: Int = 200) -> [String] {
        Drift.between(
            .init(fields: Fields([Field("Content-Type", "application/json; charset=utf-8")]), body: Array(old.utf8)),
            .init(
                status: status,
                fields: Fields([Field("content-type", "application/JSON")]),
                body: Array(new.utf8)
            )
        ).map { "\($0.severity.rawValue): \($0.text)" }
    }

    @Test(arguments: [
        (#"{"a":1}"#, #"{ "a": 1 }"#, []), (#"{"a":1}"#, #"{"a":2}"#, ["info: a: other values"]),
        (#"{"a":1,"b":{"c":1,"d":2}}"#, #"{"a":1}"#, ["breaking: b: gone"]),
        (#"{"a":1}"#, #"{"a":"1"}"#, ["breaking: a: was number, is now string"]),
        (#"{"a":"1"}"#, #"{"a":1}"#, ["breaking: a: was string, is now number"]),
        (
            #"[{"a":"1"},{"a":"2"}]"#, #"[{"a":1},{"a":"2"}]"#,
            ["breaking: [].a: was string, is now number or string"]
        ),
        (#"{"a":1}"#, #"{"a":1,"b":{"c":1}}"#, ["notice: b: new"]),
        (#"{"a":{"b":1}}"#, #"{"a":null}"#, ["info: a: null now"]),
        (#"{"a":null}"#, #"{"a":{"b":1}}"#, ["notice: a.b: new"]),
        (#"[{"a":1},{"b":2}]"#, #"[{"a":1}]"#, ["breaking: [].b: gone"]),
        (#"{"l":[{"a":1}]}"#, #"{"l":[]}"#, ["info: l: the list is empty now"]),
        (#"{"l":[]}"#, #"{"l":[{"a":1}]}"#, []),
        (#"{"ab":1,"a":1}"#, #"{"ab":1}"#, ["breaking: a: gone"]),
    ])
    func `missing members and changed types are breaking, new members are listed`(
        old: String,
        new: String,
        drifts: [String]
    ) {
        #expect(Self.drift(old, new) == drifts)
    }

    @Test func `a changed status is breaking, and bodies that are not JSON are compared by bytes`() {
        #expect(Self.drift("{}", "{}", status: 404) == ["breaking: status: was 200, is now 404"])
        #expect(Self.drift("abc", "abcd") == ["info: body: other bytes; were 3, are now 4"])
    }
}
