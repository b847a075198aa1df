import Foundation
import TestSupport
import Testing

/// `Vary` names the fields by which Larder itself chooses what it sends: other caches would mix it up.
@Suite(.scripts) struct OwnVaryTests {
    @Test func `without models a response's own Vary is passed on unchanged`() throws {
        let origin = try Origin { request in
            switch request.path {
            case "/unkept": .json("[1]", ["Cache-Control": "no-store"])
            case "/missing": .json("{}", ["Cache-Control": "max-age=60"], status: 404)
            case "/chunked": .chunked([Array("[1,".utf8), Array("2]".utf8)], Fresh.hour)
            case "/varied": .json("[1,2,3]", Fresh.tagged("a") + ["Vary": "X-A", "vary": "X-B"])
            default: .json("[1,2,3]", Fresh.tagged("a"))
            }
        }
        let larder = try Larder(origin)
        func vary(_ target: String, _ fields: FieldLines = [:], method: String = "GET", status: Int = 200) throws
            -> [String]
        {
            let answer = try larder.request(method, target, fields)
            #expect(answer.status == status, "\(method) \(target)")
            return answer.fields.all("Vary")
        }
        let tag: FieldLines = ["If-None-Match": #""a""#]
        #expect(try vary("/miss") == [])
        #expect(try vary("/miss") == [])
        #expect(try vary("/miss", tag, status: 304) == [])
        #expect(try vary("/miss", ["Larder-View": "raw"]) == [])
        #expect(try vary("/miss", ["Range": "bytes=1-2"], status: 206) == [])
        #expect(try vary("/miss", ["Range": "bytes=1-2,4-5"], status: 206) == [])
        #expect(try vary("/miss", ["Range": "bytes=100-"], status: 416) == [])
        #expect(try vary("/miss", method: "HEAD") == [])
        #expect(try vary("/not-modified-miss", tag, status: 304) == [])
        for path in ["/unkept", "/chunked"] { #expect(try vary(path) == []) }
        #expect(try vary("/missing", status: 404) == [])
        #expect(try vary("/post", method: "POST") == [])
        #expect(try vary("/live", ["Larder-Live": "once"]) == [])
        for _ in 1...2 { #expect(try vary("/varied") == ["X-A", "X-B"]) }
        #expect(try vary("/varied", tag, status: 304) == ["X-A", "X-B"])
    }

    @Test func `with a model, Vary names Larder-View, and no other field of Larder's`() throws {
        let origin = try Origin { request in
            switch request.path {
            case "/users/9": .json("{}", status: 404)
            case "/other": .json("{}", Fresh.hour)
            default: .json(#"{"id":1,"login":"ada","name":"Ada"}"#, Fresh.tagged("a") + ["Vary": "X-A"])
            }
        }
        let larder = try Larder(config: Configs.blog(origin))
        for _ in 1...2 {
            #expect(try larder.get("/users/1").fields.all("Vary") == ["X-A, Larder-View"])
            #expect(try larder.get("/other").fields.all("Vary") == [])
            #expect(try larder.get("/users/9").fields.all("Vary") == [])
        }
        #expect(try larder.get("/users/1", ["Larder-View": "mapped"])["Vary"] == "X-A, Larder-View")
        #expect(try larder.get("/users/1", ["If-None-Match": #""a""#])["Vary"] == "X-A, Larder-View")
        #expect(try larder.request("HEAD", "/users/1")["Vary"] == "X-A, Larder-View")
        #expect(try larder.get("/users/1", ["Larder-Live": "once"])["Vary"] == nil)
    }

    @Test func `with rewritten links, Vary names Larder-View`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(config: Configs.plain(origin, upstream: ["rewrite_links: true"]))
        for _ in 1...2 { #expect(try larder.get("/x").fields.all("Vary") == ["Larder-View"]) }
    }

    @Test(
        arguments: [
            (["Vary": "Accept-Encoding"], "Accept-Encoding"), (["Vary": "X-A", "vary": "X-B, Larder-Live"], "X-A"),
            (["Vary": "larder-view,LARDER-LIVE"], "larder-view,LARDER-LIVE"), (["Vary": "*"], "*"), (["Vary": ""], ""),
        ] as [(FieldLines, String)]
    )
    func `the upstream's own Vary stays`(fields: FieldLines, expected: String) throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour + fields) }
        let larder = try Larder(origin)
        for _ in 1...2 { #expect(try larder.get("/x").fields.all("Vary").first == expected) }
    }

    @Test func `with cors, Vary names Origin once, whoever asks first`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour + ["Vary": "Origin"]) }
        let larder = try Larder(config: Configs.plain(origin, upstream: ["cors: [\"http://localhost:3000\"]"]))
        for fields in [[:], ["Origin": "http://localhost:3000"], [:]] as [FieldLines] {
            #expect(try larder.get("/x", fields).fields.all("Vary") == ["Origin"])
        }
    }

    @Test func `a Larder without models in front of one with models stores each view separately`() throws {
        let origin = try Origin { request in
            request.path == "/users/1"
                ? .json(#"{"id":1,"login":"ada","name":"Ada","company":null}"#, Fresh.hour)
                : .json(#"[{"id":1,"login":"ada","name":"Ada L."}]"#, Fresh.hour)
        }
        let inner = try Larder(config: Self.renaming(origin))
        let outer = try Larder(upstream: inner.url)
        let views = ["wire", "mapped", "raw"]
        let expected = try views.map { try inner.get("/users/1", ["Larder-View": $0]) }
        #expect(Set(expected.map(\.text)).count == 2)
        for _ in 1...2 {
            for (view, known) in zip(views, expected) {
                let answer = try outer.get("/users/1", ["Larder-View": view])
                #expect(answer.text == known.text, "\(view)")
                #expect(answer["ETag"] == known["ETag"], "\(view)")
            }
            #expect(try outer.get("/users/1").text == expected[0].text)
        }
        // The last member is the outer one's.
        for view in views {
            let status = try outer.get("/users/1", ["Larder-View": view])["Cache-Status"]?.components(separatedBy: ", ")
            #expect(status?.last?.hasPrefix("larder; hit") == true, "\(view): \(status ?? [])")
        }
        #expect(try outer.waitForDocuments(4))
    }

    @Test func `the entity tag of a composed response validates at its Larder, and changes with the values`() throws {
        let origin = try Origin { request in
            request.path == "/users"
                ? .json(#"[{"id":1,"login":"ada","name":"Ada L.","company":null}]"#, Fresh.hour)
                : .json(#"{"id":1,"login":"ada","name":"Ada","company":null}"#, Fresh.hour)
        }
        let inner = try Larder(config: Self.renaming(origin))
        // Stale on arrival, so that it asks each time, without a word of the client's.
        let outer = try Larder(
            config: """
                upstreams: { inner: { url: "\(inner.url)" } }
                routes:
                  - { path: "users/{id}", fresh: 0s }
                """
        )
        _ = try inner.get("/users/1")
        _ = try inner.get("/users")
        let composed = try outer.get("/users/1")
        #expect(composed.text.contains("Ada L."))
        let tag = try #require(composed["ETag"])
        #expect(tag.hasPrefix("\"larder-"))
        #expect(try outer.waitForDocuments(1))
        // The outer one asks with it, and keeps what it has.
        let again = try outer.get("/users/1")
        #expect(again.text == composed.text)
        #expect(again["Cache-Status"]?.contains("fwd-status=304") == true, "\(again.fields)")
        #expect(try outer.get("/users/1", ["If-None-Match": tag]).status == 304)
        // Once it is composed anew, the tag holds no more.
        origin.behave { _ in .json(#"{"id":1,"login":"ada","name":"Ada K.","company":null}"#, Fresh.hour) }
        _ = try inner.get("/users/1?again")
        #expect(try inner.get("/users/1").text.contains("Ada K."))
        #expect(try outer.get("/users/1", ["If-None-Match": tag]).text.contains("Ada K."))
    }

    /// Users whose mapped view has other names than the wire.
    private static func renaming(_ origin: Origin) -> String {
        """
        upstreams:
          api:
            url: \(origin.url)
            lag: 0s
        models:
          User:
            identity: id
            properties: { login: login, fullName: name, company: company }
        routes:
          - { path: "users", model: [User] }
          - { path: "users/{id:#}", model: User }
        store: { withhold: 10s }
        """
    }
}
