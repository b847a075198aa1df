import Foundation
import TestSupport
import Testing

/// The upstream is away, or must not be asked.
@Suite(.scripts) struct OfflineTests {
    @Test func `with the upstream gone every document is still served, also after a restart`() throws {
        let origin = try Origin {
            .json(#"{"path":"\#($0.target)"}"#, ["Cache-Control": "max-age=\($0.path == "/stale" ? 0 : 60)"])
        }
        let larder = try Larder(origin)
        let paths = ["/stale"] + (1...20).map { "/fresh/\($0)" }
        let bodies = try paths.map { try larder.get($0).body }
        #expect(try larder.waitForDocuments(paths.count))
        origin.stop()

        for (path, body) in zip(paths, bodies) { #expect(try larder.get(path).body == body) }
        let stale = try larder.get("/stale")
        #expect(stale.status == 200)
        #expect(stale.cacheStatus.contains("detail=stale"))

        #expect(larder.terminate() == .exited(0))
        try larder.start()
        for (path, body) in zip(paths, bodies) { #expect(try larder.get(path).body == body, "\(path)") }

        let unknown = try larder.get("/unknown")
        #expect([502, 504].contains(unknown.status))
        #expect(unknown.isProblem)
        #expect(unknown.object["title"] is String)

        try origin.restart()
        #expect(try larder.get("/unknown").text == #"{"path":"/unknown"}"#)
    }

    @Test func `headers and lists survive a restart as well`() throws {
        let origin = try Origin { _ in
            .json(CoherenceTests.list, Fresh.tagged("one") + ["X-Total-Count": "2", "Content-Language": "en"])
        }
        let larder = try Larder(config: Configs.blog(origin))
        let before = try larder.get("/users")
        #expect(try larder.waitForObjects(2, of: "User"))
        #expect(larder.terminate() == .exited(0))
        origin.stop()
        try larder.start()
        let after = try larder.get("/users")
        #expect(after.isHit)
        #expect(after.body == before.body)
        for name in ["X-Total-Count", "Content-Language", "ETag", "Content-Type"] {
            #expect(after[name] == before[name], "\(name)")
        }
    }

    @Test(arguments: [500, 502, 503, 504, 429]) func `a stale response is served while the upstream fails`(status: Int)
        throws
    {
        let origin = try Origin { _ in .json(#"{"id":1}"#, Fresh.never) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        #expect(try larder.waitForDocuments(1))
        origin.always(.json(#"{"message":"no"}"#, status: status))
        let answer = try larder.get("/x")
        #expect(answer.status == 200)
        #expect(answer.text == #"{"id":1}"#)
        #expect(answer.cacheStatus.contains("detail=stale"))
        // Where nothing is known, the failure is passed on as it came.
        let unknown = try larder.get("/y")
        #expect(unknown.status == status)
        #expect(unknown.text == #"{"message":"no"}"#)
    }

    @Test(arguments: [false, true])
    func `without the upstream, a list with an unknown object keeps the last served values of the others`(
        isOffline: Bool
    ) throws {
        let name = Monitor("old")
        let origin = try Origin { request in
            if request.method == "PATCH" { return .empty(204) }
            let users = [1, 2, 3].map { #"{"id": \#($0),"login":"u\#($0)","name":"\#(name.current)"}"# }
            guard request.path.hasPrefix("/search") else {
                return .json(users[request.path.hasSuffix("1") ? 0 : 1], Fresh.hour)
            }
            return .json("{\"items\":[\(users.joined(separator: ", "))]}", Fresh.tagged("t"))
        }
        let larder = try Larder(config: Configs.blog(origin))
        let received = try larder.get("/search/users").text
        _ = try larder.get("/users/2")
        name.withLock { $0 = "new" }
        #expect(try larder.get("/users/1").text.contains("new"))
        let composed = try larder.get("/search/users")
        let expected = received.replacing(#""u1","name":"old""#, with: #""u1","name":"new""#)
        #expect(composed.isHit && composed.text == expected)
        // Its response does not show the object, so nobody knows what is in it now.
        #expect(try larder.request("PATCH", "/users/2", body: "{}").status == 204)
        if isOffline {
            #expect(try larder.admin("PUT", "/mode", body: #"{"mode":"offline"}"#).status == 200)
        } else {
            origin.stop()
        }
        let answer = try larder.get("/search/users")
        #expect(answer.text == composed.text)
        #expect(answer.cacheStatus.hasSuffix(isOffline ? "detail=offline+composed" : "detail=stale+composed"))
        #expect(answer["ETag"]?.hasPrefix("\"larder-") == true)
        let raw = try larder.get("/search/users", ["Larder-View": "raw"])
        #expect(raw.text == received && raw["ETag"] == "\"t\"")
        #expect(try larder.request("HEAD", "/search/users")["Content-Length"] == "\(composed.body.count)")
        let again = try larder.get("/search/users", ["If-None-Match": "\"t\""])
        #expect(again.status == 200 && again.text == composed.text)
    }

    @Test(arguments: ["Bearer ada", "Bearer bela"])
    func `without the upstream, a list from before a write shows the values served since the write`(writer: String)
        throws
    {
        let name = Monitor("old")
        let origin = try Origin { request in
            if request.method == "PATCH" { return .empty(204) }
            let user = #"{"id":1,"name":"\#(name.current)""#
            return switch request.path {
            case "/search/users": .json("{\"items\":[\(user),\"company\":\"c\"}]}", Fresh.hour)
            case "/users/1": .json("\(user)}", Fresh.hour)
            default: .json("{\"id\":2,\"author\":\(user)}}", Fresh.hour)
            }
        }
        let larder = try Larder(config: Configs.blog(origin))
        let reader: FieldLines = ["Authorization": "Bearer ada"]
        let received = try larder.get("/search/users", reader).text
        _ = try larder.get("/users/1", reader)
        _ = try larder.get("/users/1", ["Authorization": "Bearer bela"])
        #expect(try larder.request("PATCH", "/users/1", ["Authorization": writer], body: "{}").status == 204)
        name.withLock { $0 = "new" }
        // It does not show what has become of the company.
        #expect(try larder.get("/posts/2", reader).text.contains("new"))
        origin.stop()
        let list = try larder.get("/search/users", reader)
        #expect(list.text == received.replacing("old", with: "new"))
        #expect(list.cacheStatus.contains("detail=stale+composed"), "\(list.cacheStatus)")
    }

    @Test func `a stale response with a member in doubt says both in Cache-Status`() throws {
        let name = Monitor("v1")
        let origin = try Origin { request in
            let user = #"{"id":1,"login":"ada","name":"\#(name.current)"}"#
            return .json(
                request.path == "/users" ? "[\(user)]" : user,
                request.path == "/users" ? Fresh.hour : Fresh.never
            )
        }
        let larder = try Larder(config: Configs.blog(origin, upstream: ["lag: 1h"]))
        #expect(try larder.get("/users/1").text.contains("v1"))
        name.withLock { $0 = "v2" }
        #expect(try larder.get("/users").text.contains("v2"))
        #expect(try larder.waitForDocuments(2))
        origin.stop()
        let detail = try larder.get("/users/1")
        #expect(
            detail.text.contains("v1") && detail.cacheStatus.contains("detail=stale+doubt"),
            "\(detail.cacheStatus)"
        )
        // The list is fresh: only the doubt is why the upstream was to be asked.
        let list = try larder.get("/users")
        #expect(list.text.contains("v1") && list.cacheStatus.contains("detail=doubt+composed"), "\(list.cacheStatus)")
        #expect(try larder.admin("PUT", "/mode", body: #"{"mode":"offline"}"#).status == 200)
        #expect(try larder.get("/users/1").cacheStatus.contains("detail=offline+doubt"))
    }

    @Test func `a stale response is served during a rate limit, but not after a plain refusal`() throws {
        let origin = try Origin { _ in .json(#"{"id":1}"#, Fresh.never) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        #expect(try larder.waitForDocuments(1))
        origin.always(.json(#"{"message":"limit"}"#, ["X-RateLimit-Remaining": "0"], status: 403))
        #expect(try larder.get("/x").text == #"{"id":1}"#)
        origin.always(.json(#"{"message":"forbidden"}"#, status: 403))
        #expect(try larder.get("/x").status == 403)
    }

    @Test func `a stale response is served if the upstream resets or hangs`() throws {
        let gate = Gate()
        let origin = try Origin { _ in .json(#"{"id":1}"#, Fresh.never) }
        let larder = try Larder(
            config: Configs.plain(origin, upstream: ["patience: forever", "timeouts: { first_byte: 2s }"])
        )
        _ = try larder.get("/x")
        #expect(try larder.waitForDocuments(1))
        origin.always(.reset)
        #expect(try larder.get("/x").text == #"{"id":1}"#)
        origin.always(.hang(gate))
        let answer = try larder.get("/x")
        #expect(answer.text == #"{"id":1}"#)
        #expect(answer.cacheStatus.contains("detail=stale"))
        let unknown = try larder.get("/y")
        #expect(unknown.status == 504)
        #expect(unknown.isProblem)
        gate.open()
    }

    @Test func `offline no request goes upstream`() throws {
        let origin = try Origin {
            .json(#"{"path":"\#($0.target)"}"#, $0.path == "/stale" ? Fresh.never : Fresh.hour)
        }
        let larder = try Larder(origin)
        _ = try larder.get("/stale")
        _ = try larder.get("/fresh")
        #expect(try larder.waitForDocuments(2))
        #expect(try larder.admin("PUT", "/mode", body: #"{"mode":"offline"}"#).status == 200)
        #expect(try larder.admin("GET", "/mode").object["mode"] as? String == "offline")
        let asked = origin.count()

        let fresh = try larder.get("/fresh")
        #expect(fresh.text == #"{"path":"/fresh"}"#)
        let stale = try larder.get("/stale")
        #expect(stale.text == #"{"path":"/stale"}"#)
        #expect(stale.cacheStatus.contains("detail=offline"))
        let unknown = try larder.get("/unknown")
        #expect(unknown.status == 504)
        #expect(unknown.isProblem)
        #expect(unknown.object["detail"] is String)
        let insisting = try larder.get("/fresh", ["Cache-Control": "no-cache"])
        #expect([200, 504].contains(insisting.status))
        #expect(try larder.request("POST", "/fresh", body: "{}").status == 504)
        #expect(origin.count() == asked)

        #expect(try larder.admin("PUT", "/mode", body: #"{"mode":"online"}"#).status == 200)
        #expect(try larder.get("/unknown").status == 200)
    }

    @Test func `a daemon may start offline`() throws {
        let origin = try Origin { _ in .json("{}", Fresh.hour) }
        let larder = try Larder(origin, "--mode", "offline")
        #expect(try larder.get("/x").status == 504)
        #expect(origin.connections == 0)
    }

    @Test func `a response that is outdated but cannot be composed is served as received when the upstream is away`()
        throws
    {
        let list = #"[{"id":7,"title":"t","author":{"id":1,"login":"ada"}}]"#
        let origin = try Origin {
            $0.path == "/posts" ? .json(list, Fresh.hour) : .json(#"{"id":7,"author":3}"#, Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/posts")
        #expect(try larder.waitForObjects(1, of: "Post"))
        _ = try larder.get("/posts/7")
        #expect(try larder.waitForDocuments(2))
        origin.stop()
        let answer = try larder.get("/posts")
        #expect(answer.status == 200)
        #expect(answer.text == list)
    }
}
