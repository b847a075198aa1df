import Mapping
import Testing

@Suite struct NormaliserTests {
    static func models() throws -> Models {
        try Models([
            ModelDeclaration(
                name: "User",
                identity: ["id"],
                keys: ["login"],
                properties: [PropertyDeclaration(name: "login", from: "login")]
            ),
            ModelDeclaration(name: "Label", identity: ["id"], sharesAll: true),
            ModelDeclaration(
                name: "Issue",
                identity: ["id"],
                properties: [
                    PropertyDeclaration(name: "title", from: "title"),
                    PropertyDeclaration(name: "reporter", from: "user.login"),
                    PropertyDeclaration(name: "user", from: "user", relation: .one("User")),
                    PropertyDeclaration(name: "labels", from: "labels", relation: .many("Label")),
                ],
                local: ["score"],
                modified: "updated_at"
            ),
        ])
    }

    @Test func `a list of issues is taken apart into issues, users and labels`() throws {
        let body =
            #"[{"id":1,"user":{"login":"a","id":7},"labels":[{"id":3},{"id":4}],"updated_at":"2020"}, {"id":"x"}]"#
        guard
            case .objects(let parts) = Normaliser(models: try Self.models())
                .decompose(Array(body.utf8), as: BodyRule(model: "Issue", isList: true))
        else { return #expect(Bool(false)) }
        #expect(String(decoding: parts.skeleton, as: UTF8.self) == #"["\u0001Issue:1", "\u0001Issue:x"]"#)
        #expect(parts.occurrences.map(\.name.description) == ["Issue:1", "User:7", "Label:3", "Label:4", "Issue:x"])
        #expect(
            String(decoding: parts.occurrences[0].payload, as: UTF8.self)
                == #"{"id":1,"user":"\u0001User:7","labels":["\u0001Label:3","\u0001Label:4"],"updated_at":"2020"}"#
        )
        #expect(parts.occurrences[1].keys.map(\.value) == ["a"])
        #expect(parts.occurrences[0].modified == #""2020""#)
        #expect(parts.recomposes(to: Array(body.utf8)))
    }
}
