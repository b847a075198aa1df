import Foundation
import TestSupport
import Testing

/// Flaming June's cases of the repository and of forced caching, and others' that speak of the store as a whole.
@Suite(.scripts) struct FlamingJuneRequestTests {
    private static func posts(_ title: String = "t") -> String {
        let posts = (1...20).map { id in
            #"{"id":\#(id),"title":"\#(title)","author":{"id":\#(id == 13 ? 103 : 100 + id),"login":"u"}}"#
        }
        return "[\(posts.joined(separator: ","))]"
    }

    @Test
    func `FJ-34 FJ-36 FJ-38: an empty store survives a restart, a full one is counted, cleaned and counted again`()
        throws
    {
        let origin = try Origin { _ in .json(Self.posts(), Fresh.hour) }
        let larder = try Larder(config: Configs.blog(origin))
        #expect(try larder.count()["objects"] as? Int == 0)
        try larder.restart()
        #expect(try larder.count()["objects"] as? Int == 0)
        for _ in 0..<2 {
            _ = try larder.get("/posts")
            #expect(try larder.waitForObjects(20, of: "Post"))
            #expect(try larder.count()["models"] as? [String: Int] == ["Post": 20, "User": 19])
            try larder.restart()
            #expect(try larder.count()["objects"] as? Int == 39)
            #expect(try larder.admin("POST", "/clean", body: #"{"all":true}"#).status == 200)
            #expect(try larder.count()["objects"] as? Int == 0)
            // FJ-35: what is cleaned does not come back.
            try larder.restart()
            #expect(try larder.count()["objects"] as? Int == 0)
        }
    }

    @Test func `FJ-39: with nothing stored there is one event`() throws {
        let origin = try Origin { _ in .json(Self.posts(), Fresh.hour) }
        let larder = try Larder(config: Configs.blog(origin))
        #expect(try larder.live("/posts").map(\.name) == ["fresh"])
    }

    @Test func `FJ-40 FJ-41: with something stored there are two events, each labelled`() throws {
        let origin = try Origin { _ in .json(Self.posts(), Fresh.hour) }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/posts")
        origin.behave { _ in .json(Self.posts("new"), Fresh.hour) }
        let events = try larder.live("/posts")
        #expect(events.map(\.name) == ["cached", "fresh"])
        #expect(events.map(\.text) == [Self.posts(), Self.posts("new")])
    }

    @Test func `FJ-42: serving an older response again reverts no value`() throws {
        let origin = try Origin { request in
            request.path == "/posts"
                ? .json(Self.posts("old"), Fresh.hour)
                : .json(#"{"id":1,"title":"new"}"#, Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/posts")
        _ = try larder.get("/posts/1")
        #expect(try eventually { try larder.get("/posts").text.contains(#""id":1,"title":"new""#) })
        #expect(try larder.get("/posts/1").text == #"{"id":1,"title":"new"}"#)
    }

    @Test(arguments: ["false", "0", "off"])
    func `FJ-43: an unknown value of Larder-Live is refused, and gives no event stream`(value: String) throws {
        let origin = try Origin { _ in .json("{}", Fresh.hour) }
        let larder = try Larder(config: Configs.blog(origin))
        let answer = try larder.get("/posts", ["Larder-Live": value])
        #expect(answer.status == 400)
        #expect(answer["Content-Type"] != "text/event-stream")
    }

    @Test func `FJ-02: the raw and the wire view are the received body, envelope included`() throws {
        let body = #"{ "data" : [{"id":1,"title":"a","x":0}], "page":1.0 }"#
        let origin = try Origin { _ in .json(body, Fresh.hour) }
        let config = Configs.blog(origin, top: ["  - { path: \"wrapped\", model: [Post], root: data }"])
        let larder = try Larder(config: config)
        #expect(try larder.get("/wrapped").text == body)
        for view in ["mapped", "raw", "wire"] {
            let answer = try larder.get("/wrapped", ["Larder-View": view])
            #expect(answer.text == (view == "mapped" ? #"[{"id":1,"title":"a"}]"# : body))
        }
    }

    @Test func `FJ-44: forced caching does not apply to writes`() throws {
        let origin = try Origin { request in
            .json(#"{"id":1}"#, ["Cache-Control": "no-store"], status: request.method == "POST" ? 201 : 200)
        }
        let config = Configs.plain(origin, top: ["routes:", #"  - { path: "posts", cache: force, fresh: 1h }"#])
        let larder = try Larder(config: config)
        for _ in 0..<2 { #expect(try larder.get("/posts").status == 200) }
        #expect(origin.count(method: "GET") == 1)
        for _ in 0..<2 { #expect(try larder.request("POST", "/posts", body: "{}").status == 201) }
        #expect(origin.count(method: "POST") == 2)
    }

    @Test func `RK-30: what a list lacks, an empty list, an error and a broken body delete nothing`() throws {
        let answers: [OriginResponse] = [
            .json(#"[{"id":1,"title":"a"}]"#, Fresh.never), .json("[]", Fresh.never),
            .json(#"[{"id":9}]"#, Fresh.never, status: 500), .json(#"[{"id":1,"#, Fresh.never),
        ]
        let origin = try Origin { _ in .json(#"[{"id":1,"title":"a"},{"id":2,"title":"b"}]"#, Fresh.never) }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/posts")
        #expect(try larder.waitForObjects(2, of: "Post"))
        for answer in answers {
            origin.always(answer)
            _ = try larder.get("/posts")
            #expect(try larder.count()["models"] as? [String: Int] == ["Post": 2])
        }
        #expect(try larder.sql("SELECT title FROM Post ORDER BY id") == ["a", "b"])
    }

    @Test(arguments: [204, 404, 410]) func `RK-31: a deleted object is no longer served`(
        status: Int
    ) throws {
        let origin = try Origin { _ in .json(#"{"id":1,"title":"a"}"#, Fresh.hour) }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/posts/1")
        #expect(try larder.waitForDocuments(1))
        origin.behave { _ in .json(#"{"gone":true}"#, status: status == 204 ? 404 : status) }
        if status == 204 {
            origin.behave { $0.method == "DELETE" ? .empty(204) : .json(#"{"gone":true}"#, status: 404) }
        }
        #expect(try larder.request("DELETE", "/posts/1").status == status)
        let after = try larder.get("/posts/1")
        #expect(after.status == (status == 204 ? 404 : status))
        #expect(after.text == #"{"gone":true}"#)
    }

    @Test func `FJ-45: paths that differ, and principals that differ, have responses of their own`() throws {
        let origin = try Origin { request in
            .json(
                #"{"at":"\#(request.path)","who":"\#(request["Authorization"] ?? "")"}"#,
                ["Cache-Control": "max-age=3600"]
            )
        }
        let larder = try Larder(origin)
        for _ in 0..<2 {
            #expect(try larder.get("/a/b").text == #"{"at":"/a/b","who":""}"#)
            #expect(try larder.get("/a_b").text == #"{"at":"/a_b","who":""}"#)
            let own = try larder.get("/a/b", ["Authorization": "Bearer x"])
            #expect(own.text == #"{"at":"/a/b","who":"Bearer x"}"#)
        }
        #expect(origin.count() == 3)
        origin.behave { request in
            .json(#""\#(request["Accept-Language"] ?? "")""#, Fresh.hour + ["Vary": "Accept-Language"])
        }
        for _ in 0..<2 {
            for language in ["de", "fr"] {
                #expect(try larder.get("/varied", ["Accept-Language": language]).text == "\"\(language)\"")
            }
        }
        #expect(origin.count("/varied") == 2)
    }

    @Test func `FJ-46: the config sets how long a forced response is fresh`() throws {
        let origin = try Origin { _ in .json("{}", ["Cache-Control": "no-store", "Age": "100"]) }
        let config = Configs.plain(
            origin,
            top: [
                "routes:", #"  - { path: "a", cache: force, fresh: 90s }"#,
                #"  - { path: "b", cache: force, fresh: 1h }"#,
            ]
        )
        let larder = try Larder(config: config)
        for path in ["/a", "/b"] { _ = try larder.get(path) }
        #expect(try larder.get("/b").isHit)
        #expect(try !larder.get("/a").isHit)
    }

    @Test func `FJ-47: without the upstream the first phase has its age, and the second is an error`() throws {
        let origin = try Origin { _ in .json("{}", ["Cache-Control": "max-age=10", "Age": "100"]) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        origin.behave { _ in .reset }
        let events = try larder.live("/x")
        #expect(events.map(\.name) == ["cached", "error"])
        #expect(events.last?.problemStatus == 502)
        #expect((events.first?.age ?? 0) >= 100)
    }

    @Test func `FJ-26: an undeclared list maps to no objects, and larder route says so`() throws {
        let origin = try Origin { _ in .json(#"{"id":1,"items":[{"id":2}]}"#, Fresh.hour) }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/unknown/1")
        _ = try larder.get("/posts/1")
        #expect(try larder.waitForDocuments(2))
        #expect(try larder.count()["models"] as? [String: Int] == ["Post": 1])
        let route = try TestProcess.run(
            Larder.binary,
            ["route", "GET", "/unknown/1", "--config", larder.folder.file("larder.yaml")]
        )
        #expect(route.contains("none: the response is stored as a document without objects"))
    }

    @Test func `MK-12: the objects of one response are there together or not at all`() throws {
        let origin = try Origin { _ in .json(Self.posts(), Fresh.hour) }
        let larder = try Larder(config: Configs.blog(origin))
        let reader = Background {
            var seen: Set<Int> = []
            while !seen.contains(39) { seen.insert(try larder.count()["objects"] as? Int ?? -1) }
            return seen
        }
        _ = try larder.get("/posts")
        #expect(try reader.value().subtracting([0, 39]).isEmpty)
    }

    @Test func `MK-13: mapping a file stores nothing`() throws {
        let folder = TemporaryFolder()
        let config = try folder.write(
            """
            upstreams: { api: { url: "http://127.0.0.1:9" } }
            models: { Cat: { identity: id, properties: { title: name } } }
            """,
            to: "larder.yaml"
        )
        let file = try folder.write(#"{"id":1,"name":"Jellybean"}"#, to: "cat.json")
        let before = folder.names.sorted()
        let output = try TestProcess.run(Larder.binary, ["map", file, "--model", "Cat", "--config", config])
        #expect(output == #"{"id":1,"title":"Jellybean"}"# + "\n")
        #expect(folder.names.sorted() == before)
    }

    @Test func `MT-44 MT-43: a property with an impossible name or reference is an error with its line`()
        throws
    {
        let folder = TemporaryFolder()
        let config = try folder.write(
            """
            upstreams: { api: { url: "http://127.0.0.1:9" } }
            models:
              Cat:
                identity: id
                properties:
                  title: [name]
                  owner: { from: owner, model: Nobody }
            """,
            to: "larder.yaml"
        )
        let process = try TestProcess(Larder.binary, ["check", "--config", config])
        #expect(process.waitForEnd() == .exited(78))
        let text = process.output + process.errors
        #expect(text.contains("larder.yaml:6:14: error:"), "\(text)")
        #expect(text.contains("larder.yaml:7:36: error: there is no model \"Nobody\""), "\(text)")
    }

    @Test func `RK-02 RK-32: an equal response changes no object`() throws {
        let origin = try Origin { request in
            request["If-None-Match"] == nil
                ? .json(#"{"id":1,"title":null}"#, Fresh.tagged("a", 0)) : .notModified(["ETag": #""a""#])
        }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/posts/1")
        #expect(try larder.waitForObjects(1, of: "Post"))
        let before = try larder.sql("SELECT identity, changed, merged FROM _objects")
        #expect(!before.isEmpty)
        #expect(try larder.get("/posts/1").text == #"{"id":1,"title":null}"#)
        #expect(origin.requests.last?["If-None-Match"] == #""a""#)
        _ = try larder.get("/posts/1", ["Cache-Control": "no-cache"])
        #expect(try larder.sql("SELECT identity, changed, merged FROM _objects") == before)
    }
}
