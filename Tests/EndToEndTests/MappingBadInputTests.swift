import Foundation
import TestSupport
import Testing

/// Bodies that break every expectation of their models: each reaches the client as it came, each misfit is told of, and no
/// two strangers become one object.
@Suite(.scripts) struct MappingBadInputTests {
    private static func config(_ origin: Origin) -> String {
        """
        upstreams: { api: { url: "\(origin.url)" } }
        models:
          User:
            identity: id
            keys: [login]
            properties:
              login: login
              name: profile.name
              tags: "tags[].name"
              friend: { from: friend, model: User }
              friends: { from: friends, models: User }
              byName: { from: by_name, keyed: User }
              createdAt: { from: created_at, as: date }
              first: "matrix[][].x"
          Strict: { identity: id, identity_types: strict, properties: { x: x } }
          Pair: { identity: [a, b.c], properties: { x: x } }
        routes:
          - { path: users, model: [User] }
          - { path: strict, model: [Strict] }
          - { path: pairs, model: [Pair] }
          - { path: wrapped, model: [User], root: data.items }
        """
    }

    private static let bodies: [String: String] = [
        "long":
            #"[{"id":"\#(String(repeating: "x", count: 10_000))"},{"id":\#(String(repeating: "9", count: 10_000))}]"#,
        "odd": #"[{"id":true},{"id":[1]},{"id":{}},{"id":null},{"id":""},{"id":"\ud800"},{}]"#,
        "numbers":
            #"[{"id":-1},{"id":1.5},{"id":"1.5"},{"id":1.50},{"id":1e400},{"id":-0},{"id":12345678901234567890123}]"#,
        "unicode": "[{\"id\":\"\u{E9}\",\"login\":\"a\"},{\"id\":\"e\u{301}\",\"login\":\"b\"},{\"id\":\"E\u{301}\"}]",
        "names": #"[{"id":1,"profile.name":"no","":"empty","Login":"A","LOGIN":"B","login":"c"}]"#,
        "twice": #"[{"id":2,"login":"a","login":"b"},{"id":3,"id":4},{"id":5,"\u0069d":6}]"#,
        "paths":
            #"[{"id":7,"profile":[{"name":1}],"tags":"x","friend":[1],"friends":{"id":8},"by_name":[1],"matrix":[1,[2,{"x":3}],null]}]"#,
        "nulls": #"[{"id":9,"profile":null,"tags":null,"friend":null,"friends":null,"by_name":null,"matrix":null}]"#,
        "elements": #"[null,1,"a",[],{},{"id":10}]"#,
        "pairs":
            #"[{"a":1,"b":2},{"a":1,"b":{"c":3}},{"a":1,"b":[{"c":3}]},{"a":"1:3","b":{"c":""}},{"a":"1","b":{"c":"3:"}}]"#,
        "scalar": "7", "empty": "", "cut": #"[{"id":1,"#,
        "deep": String(repeating: "[", count: 600) + String(repeating: "]", count: 600),
        "mark": "\u{FEFF}[{\"id\":1}]", "reserved": #"[{"id":1,"login":"\u0001User:2"}]"#,
    ]

    @Test func `after bad input no body is lost, no objects are mixed up, and the daemon goes on`() throws {
        let origin = try Origin { request in
            .json(Self.bodies[String(request.target.split(separator: "?").last ?? "")] ?? "", Fresh.hour)
        }
        let larder = try Larder(config: Self.config(origin))
        let paths = ["users", "strict", "pairs", "wrapped"]
        for (name, body) in Self.bodies.sorted(by: { $0.key < $1.key }) {
            for path in paths {
                for view in ["wire", "wire", "raw"] {
                    let answer = try larder.get("/\(path)?\(name)", ["Larder-View": view])
                    #expect(answer.status == 200 && answer.text == body, "\(path) \(name) \(view)")
                }
                #expect(try larder.get("/\(path)?\(name)", ["Larder-View": "mapped"]).status == 200, "\(path) \(name)")
            }
        }
        #expect(try larder.waitForQuiet())
        // Once more: what the others told has changed nothing where nothing was told.
        for name in ["long", "odd", "numbers", "unicode", "pairs"] {
            for path in paths {
                #expect(try larder.get("/\(path)?\(name)").text == Self.bodies[name], "\(path) \(name)")
            }
        }
        let users = try larder.sql(
            "SELECT identity FROM _objects o JOIN _collections c ON c.id = o.collection JOIN _names n ON n.id = c.model WHERE n.text = 'User' AND o.version IS NOT NULL ORDER BY 1"
        )
        #expect(
            Set(users) == [
                "1", "2", "7", "8", "9", "10", "-1", "1.5", "1e400", "0", "12345678901234567890123", "\u{E9}",
                "e\u{301}", "E\u{301}",
            ]
        )
        #expect(try larder.sql("SELECT count(*) FROM Pair") == ["2"])
        let warnings = try larder.admin("GET", "/warnings").text
        for kind in [
            "identity-unusable", "identity-missing", "identity-repeated", "not-json", "not-an-object", "too-deep",
            "envelope-missing", "array-for-object", "object-for-list", "reserved-text",
        ] {
            #expect(warnings.contains("\"\(kind)\""), "\(kind)")
        }
        // People see all of them, whatever one of them holds.
        let shown = try larder.command("objects", "User")
        #expect(shown.end == .exited(0), "\(shown.errors)")
        #expect(shown.output.contains("12345678901234567890123"))
    }
}
