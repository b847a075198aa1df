import Foundation
import TestSupport
import Testing

/// The daemon seen and steered from its own address, and by the commands on top of it.
@Suite(.scripts) struct AdminTests {
    /// A daemon that has seen two users and a post.
    static func blog() throws -> (origin: Origin, larder: Larder) {
        let origin = try Origin([
            "/users": .json(
                #"[{"id":1,"login":"ada","name":"Ada"},{"id":2,"login":"bela","name":null}]"#,
                Fresh.hour
            ),
            "/posts/7": .json(#"{"id":7,"title":"Caches","author":{"id":1,"login":"ada"}}"#, Fresh.hour),
        ])
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users")
        _ = try larder.get("/posts/7")
        #expect(try larder.waitForDocuments(2))
        return (origin, larder)
    }

    @Test func `health, readiness and metrics need no token, everything else does`() throws {
        let (_, larder) = try Self.blog()
        for path in ["/healthz", "/readyz", "/metrics"] {
            #expect(try Client(port: larder.adminPort).get(path).status == 200, "\(path)")
        }
        for path in [
            "/count", "/objects/User", "/documents", "/mode", "/warnings", "/explain?url=/users", "/requests",
            "/requests?follow", "/upstreams",
        ] {
            #expect(try Client(port: larder.adminPort).get(path).status == 401, "\(path)")
            let wrong = try larder.admin("GET", path, ["Authorization": "Bearer wrong"])
            #expect(wrong.status == 401, "\(path)")
            #expect(wrong.isProblem)
        }
        for (method, path) in [("POST", "/clean"), ("PUT", "/mode"), ("POST", "/reload")] {
            #expect(try Client(port: larder.adminPort).request(method, path, body: "{}").status == 401, "\(path)")
        }
        #expect(try larder.documents() == 2)
    }

    @Test func `the admin token's file is readable by its owner only, and survives a restart`() throws {
        let (_, larder) = try Self.blog()
        var status = stat()
        #expect(stat(larder.folder.file("admin.token"), &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600)
        let token = larder.token
        try larder.restart()
        #expect(larder.token == token)
    }

    @Test func `an admin token that is replaced in its file is the daemon's from then on`() throws {
        let (_, larder) = try Self.blog()
        let former: FieldLines = ["Authorization": "Bearer \(larder.token ?? "")"]
        #expect(try larder.admin("GET", "/count", former).status == 200)
        try larder.folder.write("another-token-0123456789\n", to: "admin.token")
        let next: FieldLines = ["Authorization": "Bearer another-token-0123456789"]
        #expect(try eventually { try larder.admin("GET", "/count", next).status == 200 })
        #expect(try larder.admin("GET", "/count", former).status == 401)
        #expect(try larder.command("count").end == .exited(0))
        #expect(larder.log.contains("the admin token was replaced"))
    }

    @Test func `objects and documents are counted`() throws {
        let (_, larder) = try Self.blog()
        let count = try larder.count()
        #expect(count["objects"] as? Int == 3)
        #expect(count["documents"] as? Int == 2)
        #expect(count["bytes"] as? Int ?? 0 > 0)
        #expect(count["models"] as? [String: Int] == ["User": 2, "Post": 1])
    }

    @Test func `objects can be listed page by page, and shown`() throws {
        let (_, larder) = try Self.blog()
        let all = try larder.admin("GET", "/objects/User")
        #expect(all.status == 200)
        #expect(all.text.contains("ada"))
        #expect(all.text.contains("bela"))
        let page = try larder.admin("GET", "/objects/User?limit=1")
        #expect(page.text.contains("ada") != page.text.contains("bela"))
        let one = try larder.admin("GET", "/objects/User/1")
        #expect(one.status == 200)
        #expect(one.text.contains("Ada"))
        #expect(try larder.admin("GET", "/objects/User/99").status == 404)
        #expect(try larder.admin("GET", "/objects/Nothing").status == 404)
        let documents = try larder.admin("GET", "/documents")
        #expect(documents.text.contains("/posts/7"))
    }

    @Test func `metrics are in the Prometheus format`() throws {
        let (_, larder) = try Self.blog()
        _ = try larder.get("/users")
        let metrics = try larder.admin("GET", "/metrics")
        #expect(metrics["Content-Type"]?.hasPrefix("text/plain") == true)
        #expect(metrics.text.contains("# TYPE larder_"))
        #expect(metrics.text.contains("# HELP larder_"))
        for line in metrics.text.split(separator: "\n") where !line.hasPrefix("#") {
            #expect(Double(line.split(separator: " ").last ?? "") != nil, "\(line)")
        }
    }

    @Test func `a body that cannot be mapped is passed on as received, with a warning`() throws {
        let origin = try Origin { _ in .json(#"{"not":"a list"}"#, Fresh.hour) }
        let larder = try Larder(config: Configs.blog(origin))
        #expect(try larder.get("/users").text == #"{"not":"a list"}"#)
        #expect(try eventually { try larder.admin("GET", "/warnings").text.contains("users") })
    }

    @Test func `an unknown path gets 404, a wrong method 405, and a wrong body 400`() throws {
        let (_, larder) = try Self.blog()
        #expect(try larder.admin("GET", "/nonsense").status == 404)
        #expect(try larder.admin("DELETE", "/count").status == 405)
        #expect(try larder.admin("PUT", "/mode", body: #"{"mode":"sideways"}"#).status == 400)
        let bare = try larder.admin("PUT", "/mode", body: "offline")
        let detail = try #require(bare.object["detail"] as? String)
        #expect(bare.status == 400 && detail.hasSuffix(#"; use {"mode": "offline"}"#))
        #expect(try larder.admin("POST", "/clean", body: #"{"colour":"red"}"#).status == 400)
    }

    @Test func `no token is needed on a Unix socket: its permissions decide`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let folder = TemporaryFolder()
        let process = try TestProcess(
            Larder.binary,
            [
                "serve", "--upstream", origin.url, "--listen", "unix:\(folder.file("data.sock"))", "--admin",
                "unix:\(folder.file("admin.sock"))", "--store", folder.file("larder.db"),
            ],
            environment: Larder.environment
        )
        let isUp = eventually { (try? Client(.unix(folder.file("admin.sock"))).get("/readyz").status) == 200 }
        #expect(isUp, "\(process.errors)")
        #expect(try Client(.unix(folder.file("data.sock"))).get("/x").text == "[]")
        #expect(try Client(.unix(folder.file("data.sock"))).get("/x").isHit)
        #expect(try Client(.unix(folder.file("admin.sock"))).get("/count").status == 200)
        var status = stat()
        #expect(stat(folder.file("admin.sock"), &status) == 0)
        #expect(status.st_mode & 0o007 == 0)
        process.signal(SIGTERM)
        #expect(process.waitForEnd() == .exited(0))
        #expect(!folder.names.contains("data.sock"))
    }

    @Test func `several listen addresses serve the same responses`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let folder = TemporaryFolder()
        let larder = try Larder(origin, store: folder, "--listen", "unix:\(folder.file("data.sock"))")
        _ = try larder.get("/x")
        #expect(try Client(.unix(folder.file("data.sock"))).get("/x").isHit)
    }
}

/// `larder` as a person or a program runs it.
@Suite(.scripts) struct CommandTests {
    @Test func `count prints text, or JSON with --json`() throws {
        let (_, larder) = try AdminTests.blog()
        let people = try larder.command("count")
        #expect(people.end == .exited(0), "\(people.errors)")
        #expect(people.output.contains("User"))
        let programs = try larder.command("count", "--json")
        let json = try JSONSerialization.jsonObject(with: Data(programs.output.utf8)) as? [String: Any]
        #expect(json?["documents"] as? Int == 2)
    }

    @Test func `the commands objects, mode and clean do what their endpoints do`() throws {
        let (_, larder) = try AdminTests.blog()
        #expect(try larder.command("objects", "User").output.contains("ada"))
        #expect(try larder.command("objects", "User", "1", "--json").output.contains("Ada"))
        #expect(try larder.command("mode").output.contains("auto"))
        #expect(try larder.command("mode", "offline").end == .exited(0))
        #expect(try larder.admin("GET", "/mode").text.contains("offline"))
        let dry = try larder.command("clean", "--all", "--dry-run", "--json")
        #expect(dry.end == .exited(0), "\(dry.errors)")
        #expect(try larder.documents() == 2)
        #expect(try larder.command("clean", "--all").end == .exited(0))
        #expect(try larder.documents() == 0)
    }

    @Test func `a command fails with a reason if no daemon runs`() throws {
        let (_, larder) = try AdminTests.blog()
        larder.terminate()
        let result = try larder.command("count")
        #expect(result.end == .exited(1))
        #expect(!result.errors.isEmpty)
    }

    @Test func `commands ignore a proxy in the environment`() throws {
        let proxy = "http://127.0.0.1:1"
        let larder = try Larder(
            config: "upstreams: { a: { url: \"http://127.0.0.1:1\" } }",
            environment: ["http_proxy": proxy, "all_proxy": proxy]
        )
        let result = try larder.command("count")
        #expect(result.end == .exited(0), "\(result.errors)")
    }

    @Test func `wrong usage and failure have different exit codes`() throws {
        for arguments in [["serve", "--nonsense"], ["nonsense"], ["serve", "--listen", "nonsense"]] {
            let process = try TestProcess(Larder.binary, arguments, environment: Larder.environment)
            #expect(process.waitForEnd() == .exited(64), "\(arguments): \(process.errors)")
        }
    }

    @Test(arguments: [
        "upstreams:\n  api:\n    url: ftp://example.org\n", "upstreams:\n  api:\n    urll: http://example.org\n",
        "upstreams: [", "models:\n  User: { identity: [] }\n", "routes:\n  - { path: \"a/**/b\", model: Nothing }\n",
        "", "upstreams:\n  api: { url: \"http://example.org\" }\nlimits: { body: many }\n",
        "upstreams:\n  api: { url: \"http://example.org\" }\nroutes:\n  - { path: x, model: Unknown }\n",
    ])
    func `a config with a mistake is refused, with the name of its file`(config: String) throws {
        let folder = TemporaryFolder()
        let path = try folder.write(config, to: "bad.yaml")
        for command in ["check", "serve"] {
            let arguments =
                command == "check" ? [command, path] : [command, "--config", path, "--store", folder.file("x.db")]
            let process = try TestProcess(Larder.binary, arguments, environment: Larder.environment)
            #expect(process.waitForEnd() == .exited(78), "\(command): \(process.errors)")
            let said = process.errors + process.output
            #expect(said.contains("bad.yaml"), "\(said)")
        }
    }

    @Test func `larder map refuses an empty file`() throws {
        let folder = TemporaryFolder()
        let file = try folder.write("", to: "empty.json")
        let process = try TestProcess(
            Larder.binary,
            ["map", file, "--model", "User", "--preset", "github"],
            environment: Larder.environment
        )
        #expect(process.waitForEnd() == .exited(1))
        #expect(process.errors.contains("empty.json is empty"), "\(process.errors)")
    }

    @Test func `the shipped configs have no mistakes`() throws {
        for name in ["github.yaml", "sample.yaml"] {
            let process = try TestProcess(
                Larder.binary,
                ["check", "--config", "\(Repository.root)/config/\(name)"],
                environment: Larder.environment.merging(["SAMPLE_API": "http://127.0.0.1:9000"]) { $1 }
            )
            #expect(process.waitForEnd() == .exited(0), "\(name): \(process.errors)\(process.output)")
        }
    }

    @Test func `the binary needs only Debian's libraries`() throws {
        let needed = try TestProcess.run("ldd", [Larder.binary])
        #expect(needed.contains("libevent"))
        #expect(needed.contains("libcurl"))
        #expect(needed.contains("libsqlite3"))
        #expect(!needed.contains("not found"))
    }
}
