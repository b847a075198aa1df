import Foundation
import TestSupport
import Testing

/// `larder diff`, `import` and `export`, with the tools that the files are of.
@Suite(.scripts, .serialized) struct RecordingToolsTests {
    static let vcr = PythonEnvironment("vcrpy", packages: ["vcrpy", "requests"], imports: ["vcr", "requests"])

    @Test func `diff lists changes by severity, and can update the recording`() throws {
        let body = Monitor(#"{"id":1,"name":"a"}"#)
        let origin = try Origin { request in
            request["Authorization"] == "Bearer fresh-token-1" || body.current.contains(#""a""#)
                ? .json(body.current) : .json("{}", status: 401)
        }
        let recording = RecordedFolder()
        try recording.record(origin) { (larder: Larder) throws -> Void in
            _ = try larder.get("/x", ["Authorization": "Bearer recorded-token"])
            _ = try larder.request("POST", "/x", body: "a")
        }
        #expect(try Larder.run(["diff", recording.path]).end == .exited(0))
        body.withLock { $0 = #"{"id":"1","new":true}"# }
        let arguments = ["diff", recording.path, "--header", "Authorization=@TOKEN"]
        let environment = ["TOKEN": "Bearer fresh-token-1"]
        let result = try Larder.run(arguments, environment: environment)
        #expect(result.end == .exited(1))
        #expect(
            result.output
                == "GET /x\n  breaking: id: was number, is now string\n  breaking: name: gone\n  notice: new: new\n"
        )
        #expect(origin.count(method: "POST") == 1)
        let files = recording.files
        let kept = try Larder.run(arguments + ["--update"], environment: environment)
        #expect(kept.end == .exited(1) && kept.errors.contains("larder: updated 0 responses in \(recording.path)\n"))
        #expect(kept.errors.contains("larder: not updated: GET /x: its changes are breaking; --accept-breaking takes"))
        #expect(recording.files == files)
        let all = arguments + ["--update", "--accept-breaking"]
        let updated = try Larder.run(all, environment: environment)
        #expect(updated.end == .exited(0) && updated.errors.contains("larder: 1 compared, 1 differs\n"))
        #expect(updated.errors.contains("larder: updated 1 response in \(recording.path)\n"))
        #expect(recording.files.keys.sorted() == files.keys.sorted())
        #expect(try Larder.run(arguments, environment: environment).end == .exited(0))
        let larder = try Larder.replaying(recording.path)
        #expect(try larder.get("/x", ["Authorization": "Bearer any"]).text == #"{"id":"1","new":true}"#)
        origin.stop()
        let failed = try Larder.run(arguments, environment: environment)
        #expect(failed.end == .exited(1) && failed.errors.contains("not compared: GET /x"))
    }

    @Test func `diff does not repeat requests that follow a recorded write, and leaves equal responses unchanged`()
        throws
    {
        let (isLater, writes) = (Monitor(false), Monitor(0))
        let origin = try Origin { request in
            if !["GET", "HEAD"].contains(request.method) { return .json(#"{"id":7}"#, status: 201) }
            let date = isLater.current ? "Tue, 06 Jan 2026 11:30:00 GMT" : "Mon, 05 Jan 2026 10:00:00 GMT"
            let fields: FieldLines = [
                "Date": date, "Expires": date.replacing(":00 GMT", with: ":30 GMT"), "X-Request-Id": date,
            ]
            if isLater.current, request.path == "/orders/7" { return .json("{}", fields, status: 404) }
            let isNew = isLater.current && request.path == "/new"
            return .json(isNew ? #"{"id":2}"# : #"{"id":1}"#, fields)
        }
        let recording = RecordedFolder()
        try recording.record(origin) { (larder: Larder) throws -> Void in
            for path in ["/orders?page=1", "/same", "/new", "/orders/9/lines"] { _ = try larder.get(path) }
            _ = try larder.request("POST", "/orders", body: "{}")
            _ = try larder.request("DELETE", "/users/3/keys/1")
            for path in ["/orders/7", "/orders/7", "/orders?page=1", "/users/3", "/users/4"] {
                _ = try larder.get(path)
            }
        }
        writes.withLock { $0 = origin.count(method: "POST") }
        isLater.withLock { $0 = true }
        let (lines, files) = (recording.lines, recording.files)
        let result = try Larder.run(["diff", recording.path, "--update"])
        #expect(result.end == .exited(0), "\(result.errors)")
        #expect(result.output == "GET /new\n  info: id: other values\n")
        #expect(result.errors.contains("larder: 5 compared, 1 differs\n"), "\(result.errors)")
        let reason = "it follows a recorded POST /orders, which is not sent again\n"
        #expect(result.errors.contains("larder: not compared: GET /orders/7: \(reason)"))
        #expect(
            result.errors.contains("larder: not compared: GET /users/3: it follows a recorded DELETE /users/3/keys/1,")
        )
        #expect(origin.count(method: "POST") == writes.current)
        let changed = zip(lines, recording.lines).filter { $0 != $1 }
        #expect(changed.count == 1)
        // Its times are those of the recording.
        #expect(changed.first?.1.contains("Date: Mon, 05 Jan 2026 10:00:00 GMT") == true, "\(changed)")
        #expect(changed.first?.1.contains("Expires: Mon, 05 Jan 2026 10:00:30 GMT") == true, "\(changed)")
        #expect(recording.files.keys.sorted() == files.keys.sorted())
        #expect(recording.files["bodies/000003.indented.json"] == Array("{\n  \"id\": 2\n}\n".utf8))
    }

    @Test func `two recordings are compared request by request`() throws {
        let count = Monitor(0)
        let origin = try Origin { _ in .json("{\"n\":\(count.withLock { $0 += 1; return $0 })}") }
        let (one, two) = (RecordedFolder(), RecordedFolder())
        try one.record(origin) { _ = try $0.get("/x") }
        try two.record(origin) { (larder: Larder) throws -> Void in
            _ = try larder.get("/x")
            _ = try larder.get("/y")
        }
        let result = try Larder.run(["diff", one.path, two.path])
        #expect(result.end == .exited(0))
        #expect(result.output == "GET /x\n  info: n: other values\nGET /y\n  notice: not in \(one.path)\n")
        #expect(try Larder.run(["diff", two.path, one.path]).end == .exited(1))
    }

    private static let session = """
        base = sys.argv[1]
        for page in (1, 2):
            r = requests.get(base + "/things", params={"page": page}, headers={"Authorization": "Bearer vcr-secret-token"})
            print(r.status_code, r.text, r.headers["X-Page"])
        for _ in range(2):
            r = requests.post(base + "/things", json={"a": [1, 2]})
            print(r.status_code, r.json())
        print(requests.get(base + "/image").content.hex())
        """

    private static func origin() throws -> Origin {
        let count = Monitor(0)
        return try Origin { request in
            if request.method == "POST" {
                return .json("{\"made\":\(count.withLock { $0 += 1; return $0 })}", status: 201)
            }
            if request.path == "/image" { return .body([0, 255, 254, 10, 13, 0], ["Content-Type": "image/png"]) }
            return .json(#"{"page":"é \#(request.target.suffix(1))"}"#, ["X-Page": String(request.target.suffix(1))])
        }
    }

    @Test(.enabled(if: vcr.isInstalled, "vcrpy could not be installed from PyPI"), arguments: ["yaml", "json"])
    func `a cassette made by vcrpy is replayed, and vcrpy replays its export`(form: String) throws {
        let origin = try Self.origin()
        let folder = TemporaryFolder()
        let cassette = folder.file("cassette.\(form)")
        let skipsImage =
            form == "json" ? Self.session.split(separator: "\n").dropLast().joined(separator: "\n") : Self.session
        let recorder = """
            import sys, vcr, requests
            with vcr.use_cassette(sys.argv[2], record_mode=sys.argv[3], serializer=sys.argv[4]):
            \(skipsImage.split(separator: "\n").map { "    \($0)" }.joined(separator: "\n"))
            """
        let recorded = try Self.vcr.run(recorder, origin.url, cassette, "once", form)
        origin.stop()
        let recording = folder.file("recording")
        #expect(try Larder.run(["import", cassette, recording]).end == .exited(0))
        let imported = try String(contentsOfFile: "\(recording)/exchanges.jsonl", encoding: .utf8)
        #expect(!imported.contains("vcr-secret-token"))
        let larder = try Larder.replaying(recording, "--strict")
        #expect(try Self.vcr.run("import sys, requests\n" + skipsImage, larder.url) == recorded)
        let export = folder.file("export.yaml")
        #expect(try Larder.run(["export", recording, export]).end == .exited(0))
        #expect(try Self.vcr.run(recorder, origin.url, export, "none", "yaml") == recorded)
    }

    @Test func `a recording survives export to HAR and import, and several origins must be named`() throws {
        let origin = try Self.origin()
        let (recording, folder) = (RecordedFolder(), TemporaryFolder())
        // An imported upstream has another name.
        let config = "upstreams: { sample: { url: \"\(origin.url)\" } }\n"
        try recording.record(origin, config: config) { (larder: Larder) throws -> Void in
            for target in ["/things?page=1", "/image", "/things?page=2"] { _ = try larder.get(target) }
        }
        let (har, back) = (folder.file("a.har"), folder.file("back"))
        #expect(try Larder.run(["export", recording.path, har]).end == .exited(0))
        let again = try Larder.run(["export", recording.path, har])
        #expect(again.end == .exited(1) && again.errors.contains("there is a file already; --force replaces it"))
        #expect(try Larder.run(["export", recording.path, har, "--force"]).end == .exited(0))
        #expect(try Larder.run(["import", har, back]).end == .exited(0))
        let same = try Larder.run(["diff", recording.path, back])
        #expect(same.end == .exited(0) && same.output == "", "\(same.output)")

        let text = try String(contentsOfFile: har, encoding: .utf8)
        let other = text.replacing("\(origin.url)/image", with: "http://other.example/image")
        let mixed = try folder.write(other, to: "mixed.har")
        let refused = try Larder.run(["import", mixed, folder.file("mixed")])
        #expect(refused.end == .exited(1))
        #expect(refused.errors.contains("--origin \(origin.url)   (2)\n  --origin http://other.example   (1)"))
        let named = ["--origin", "\(origin.url)=/one", "--origin", "http://other.example=/two"]
        #expect(try Larder.run(["import", mixed, folder.file("mixed")] + named).end == .exited(0))
        // The same upstreams by other names.
        let reversed = Array(named[2...] + named[..<2])
        #expect(try Larder.run(["import", mixed, folder.file("reversed")] + reversed).end == .exited(0))
        #expect(try Larder.run(["diff", folder.file("mixed"), folder.file("reversed")]).output == "")
        let larder = try Larder.replaying(folder.file("mixed"))
        #expect(try larder.get("/two/image").body == [0, 255, 254, 10, 13, 0])
        #expect(try larder.get("/one/things?page=1").status == 200)
    }

    @Test(arguments: ["har", "yaml"])
    func `base paths and prefixes survive export and import`(ending: String) throws {
        let origin = try Origin { .text($0.target) }
        let folder = TemporaryFolder()
        let shops = """
            upstreams:
              two: { url: "\(origin.url)/base", prefix: /two/api }
              one: { url: "\(origin.url)/base/v2", prefix: /one }
            """
        let cases = [
            ("upstreams: { api: { url: \"\(origin.url)/base\" } }", ["/v2/orders", "/base/v2"]),
            (shops, ["/one/orders", "/two/api/users"]),
        ]
        for (number, (config, paths)) in cases.enumerated() {
            let recording = RecordedFolder()
            var texts: [String] = []
            try recording.record(origin, config: config) { (larder: Larder) throws -> Void in
                texts = try paths.map { try larder.get($0).text }
            }
            let (file, back) = (folder.file("\(number).\(ending)"), folder.file("back\(number)"))
            #expect(try Larder.run(["export", recording.path, file]).end == .exited(0))
            let result = try Larder.run(["import", file, back])
            #expect(result.end == .exited(0), "\(result.errors)")
            let larder = try Larder.replaying(back)
            #expect(try paths.map { try larder.get($0).text } == texts)
        }
    }

    @Test(arguments: ["har", "yaml"])
    func `an export lists what the other format cannot hold`(ending: String) throws {
        let origin = try Origin { _ in .body([0xFC], ["Content-Type": "text/plain; charset=iso-8859-1"]) }
        let config = """
            upstreams: { api: { url: "\(origin.url)", rewrite_links: true } }
            models: { User: { identity: id } }
            """
        let recording = RecordedFolder()
        try recording.record(origin, config: config) { (larder: Larder) throws -> Void in
            _ = try larder.get("/x", ["Larder-Session": "a"])
        }
        let line = recording.lines[0].replacing(#""status":200"#, with: #""delay":5,"status":200"#)
        try recording.write(line + "\n", to: "exchanges.jsonl")
        let folder = TemporaryFolder()
        let file = folder.file("a.\(ending)")
        let result = try Larder.run(["export", recording.path, file])
        let losses = [
            "sessions, so that all requests share one sequence", "delays of responses",
            "settings of recording.yaml: rewrite_links, models",
        ]
        for loss in losses { #expect(result.output.contains("left out: \(loss)\n"), "\(result.output)") }
        // A body's bytes are the same, whatever its charset.
        #expect(try Larder.run(["import", file, folder.file("back")]).output.contains("left out") == false)
        #expect(try Larder.replaying(folder.file("back")).get("/x").body == [0xFC])
    }
}
