import Foundation
import Mapping
import TestSupport
import Testing

@testable import CachePolicy
@testable import Settings

/// A folder of config files that is gone with its last use.
private final class Folder {
    let path: String

    init(_ files: [String: String]) throws {
        path = NSTemporaryDirectory() + "larder-include-\(UUID().uuidString)"
        for (name, text) in files {
            let file = URL(fileURLWithPath: "\(path)/\(name)")
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try Data(text.utf8).write(to: file)
        }
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func read(_ name: String = "main.yaml", environment: [String: String] = [:]) -> ConfigFile {
        ConfigFile.read("\(path)/\(name)", environment: environment)
    }

    /// The diagnostics with the folder left out.
    func complaints(_ name: String = "main.yaml", environment: [String: String] = [:]) -> [String] {
        read(name, environment: environment).diagnostics.map {
            $0.description.replacingOccurrences(of: path + "/", with: "")
        }
    }
}

/// A small API, as a preset would describe it.
private let base = """
    upstreams:
      api: { url: "https://api.example", lag: 10s }
    models:
      User: { identity: id, keys: [login], properties: { login: login, name: name } }
      Label: { identity: id, properties: { name: name } }
    routes:
      - { path: "users", method: GET, model: [User] }
      - { path: "users/{login}", model: User, object: { login: login } }
    errors:
      - { path: "**", model: Label }
    """

struct ConfigIncludeTests {
    private func upstream(_ main: String, _ more: [String: String] = [:]) throws -> Configuration.Upstream {
        let folder = try Folder(["main.yaml": main, "base.yaml": base].merging(more) { $1 })
        return try folder.read().checked().settings.upstreams[0]
    }

    @Test(arguments: [
        ("[+A, -B]", "[-A, +?c]", ["+A", "-B", "-A", "+?c"]), ("[+A]", "+B", ["+A", "+B"]), ("[+A]", "[B]", ["B"]),
        ("[+A]", "[all]", ["all"]), ("[A]", "[+B]", ["A", "+B"]), ("[+A]", "[]", []),
    ])
    func `principal fields with a sign add to those of an included file, others replace them`(
        _ lower: String,
        _ upper: String,
        _ words: [String]
    ) throws {
        let folder = try Folder([
            "main.yaml": "include: [base.yaml]\nupstreams: { api: { principal: \(upper) } }",
            "base.yaml": "upstreams: { api: { url: \"https://a\", principal: \(lower) } }",
        ])
        let file = folder.read()
        guard words != ["A", "+B"] else {
            #expect(folder.complaints().contains { $0.contains("leaves open what counts") })
            return
        }
        #expect(try file.checked().settings.upstreams[0].principal == words)
    }

    private func model(_ name: String, in upstream: Configuration.Upstream) throws -> ModelDeclaration {
        try #require(upstream.models.first { $0.name == name })
    }

    @Test("MT-60: a file overrides the entries of files that it includes, and removing unknown entries does nothing")
    func layers() throws {
        let upstream = try upstream(
            """
            include: base.yaml
            upstreams: { api: { url: "https://elsewhere.example" } }
            models:
              User: { properties: { name: full_name, age: age, login: ~, neverThere: ~ }, local: [score] }
              Label: ~
              NeverThere: ~
            errors:
              - { path: "**", model: User }
            """
        )
        #expect(upstream.url.description.contains("elsewhere.example"))
        #expect(upstream.lag.lists == .seconds(10))
        #expect(upstream.models.map(\.name) == ["User"])
        let user = try model("User", in: upstream)
        #expect(user.identity == ["id"])
        #expect(user.keys == ["login"])
        #expect(user.local == ["score"])
        #expect(user.properties.map(\.name) == ["name", "age"])
        #expect(upstream.errors.map(\.body?.model) == ["User"])
    }

    @Test func `a route overrides the one for the same responses, whatever its captures are called`() throws {
        let routes = try upstream(
            """
            include: [base.yaml]
            routes:
              - { path: "users/*", fresh: 5m }
              - { path: "users", method: GET, model: ~ }
              - { path: "users", method: POST, model: User }
            """
        ).routes
        #expect(routes.map(\.declaration.method) == ["GET", nil, "POST"])
        #expect(routes.map(\.body?.model) == [nil, "User", "User"])
        #expect(routes.map(\.overrides.fresh) == [nil, .seconds(300), nil])
        #expect(routes[1].object.map(\.capture) == ["login"])
    }

    @Test func `several files override each other in order, each with its own includes`() throws {
        let upstream = try upstream(
            "include: [more/first.yaml, more/second.yaml]",
            [
                "more/first.yaml": "include: ../base.yaml\nmodels: { User: { properties: { name: first, a: a } } }",
                "more/second.yaml": "include: [../base.yaml]\nmodels: { User: { properties: { name: second } } }",
            ]
        )
        let user = try model("User", in: upstream)
        #expect(user.properties.map(\.name) == ["login", "name", "a"])
        #expect(user.properties.first { $0.name == "name" }?.from == "second")
    }

    @Test func `a file included for one upstream adds no models to another`() throws {
        let folder = try Folder([
            "main.yaml": """
            include: [base.yaml, other.yaml]
            upstreams: { api: { prefix: /api }, other: { prefix: /other } }
            """,
            "base.yaml": base,
            "other.yaml": """
            upstreams: { other: { url: "https://other.example" } }
            models: { User: { identity: uuid } }
            routes: [ { path: "users", model: User } ]
            """,
        ])
        let upstreams = try folder.read().checked().settings.upstreams
        #expect(upstreams.map(\.name) == ["api", "other"])
        #expect(upstreams.map(\.prefix) == ["/api", "/other"])
        #expect(upstreams.map { $0.models.map(\.name) } == [["User", "Label"], ["User"]])
        #expect(upstreams.map { $0.models[0].identity } == [["id"], ["uuid"]])
        #expect(upstreams.map(\.routes.count) == [2, 1])
    }

    @Test func `a preset in the user's own folder is included by its name`() throws {
        let gitHub = try String(contentsOfFile: "\(Repository.root)/config/github.yaml", encoding: .utf8)
        let folder = try Folder([
            "main.yaml": "include: mine\nmodels: { User: { properties: { login: nickname } } }",
            "larder/mine.yaml": gitHub,
        ])
        let environment = ["XDG_CONFIG_HOME": folder.path]
        #expect(folder.complaints(environment: environment) == [])
        let upstream = folder.read(environment: environment).settings.upstreams[0]
        #expect(try model("User", in: upstream).properties.first { $0.name == "login" }?.from == "nickname")

        let found = try Preset.find(
            "mine",
            environment: environment,
            executable: "/nowhere/bin/larder",
            besides: { _ in false }
        )
        #expect(found.path == "\(folder.path)/larder/mine.yaml")
    }

    @Test func `a mistake is reported with its file`() throws {
        let folder = try Folder([
            "main.yaml": "include: base.yaml\nmodels: { User: { properties: { boss: { from: boss, model: Usr } } } }",
            "base.yaml": base + "\nmode: sleepy\n",
        ])
        #expect(
            folder.complaints() == [
                "main.yaml:2:60: error: there is no model \"Usr\"; did you mean \"User\"?",
                "base.yaml:11:7: error: mode: \"sleepy\" is not one of auto, online, offline",
            ]
        )
    }

    @Test func `a line of another file is reported with the file's name`() throws {
        let folder = try Folder([
            "main.yaml": "include: base.yaml\nupstreams: { api: { models: { User: { identity: id } } } }",
            "base.yaml": base,
        ])
        #expect(
            folder.complaints().first
                == "base.yaml:4:3: error: model \"User\" is declared already, in line 2 of \(folder.path)/main.yaml"
                .replacingOccurrences(of: folder.path + "/", with: "")
        )
    }

    @Test(arguments: [
        (
            ["main.yaml": "mode: online\ninclude: [gone.yaml]\n"],
            "main.yaml:2:11: error: \"gone.yaml\" cannot be included: No such file or directory"
        ),
        (
            ["main.yaml": "include: a.yaml", "a.yaml": "\ninclude: b.yaml", "b.yaml": "include: [./a.yaml]"],
            "b.yaml:1:11: error: \"./a.yaml\" includes itself: a.yaml → b.yaml → a.yaml; take one of these out"
        ),
        (
            ["main.yaml": "include: main.yaml"],
            "main.yaml:1:10: error: \"main.yaml\" includes itself: main.yaml → main.yaml; take one of these out"
        ),
        (["main.yaml": "include: a.yaml", "a.yaml": "x: 1\ny: {"], "a.yaml:3:1: error: this is not YAML"),
        (["main.yaml": "include: a.yaml", "a.yaml": "[1]"], "a.yaml:1:1: error: a list was found here; write keys"),
        (["main.yaml": "include: { a: b }"], "main.yaml:1:10: error: include: a mapping was found here; write a file"),
        (["main.yaml": "include: gone"], "main.yaml:1:10: error: there is no preset \"gone\" in "),
        (
            ["main.yaml": "include: \"a/${X}.yaml\""],
            "main.yaml:1:10: error: include: the environment variable X is not"
        ),
    ])
    func `a file that cannot be included is reported at its line`(_ files: [String: String], _ complaint: String) throws
    {
        let folder = try Folder(files)
        let complaints = folder.complaints()
        #expect(complaints.contains { $0.hasPrefix(complaint) }, "\(complaints)")
    }

    @Test func `a file that cannot be included hides no mistake of the others`() throws {
        let folder = try Folder([
            "main.yaml": "include: [gone.yaml, broken.yaml, fine.yaml]\nbogus: 1\nmodels: { User: { keys: {} } }",
            "broken.yaml": "models: {",
            "fine.yaml": "log: { level: loud }\nroutes:\n  - { path: \"a/**/b\", model: User }\n  - { pth: a }",
        ])
        let starts = [
            "main.yaml:1:11: error: \"gone.yaml\" cannot be included", "main.yaml:2:1: error: unknown key \"bogus\"",
            "main.yaml:3:25: error: models.User.keys: a mapping was found here",
            "broken.yaml:2:1: error: this is not YAML",
            "fine.yaml:1:15: error: log.level: \"loud\"", "fine.yaml:3:13: error: path \"a/**/b\"",
            "fine.yaml:4:7: error: routes.2: unknown key \"pth\"",
        ]
        // Nothing is said to be missing: it may stand in what could not be read.
        let complaints = folder.complaints()
        #expect(complaints.count == starts.count, "\(complaints)")
        for start in starts { #expect(complaints.contains { $0.hasPrefix(start) }, "\(start): \(complaints)") }
    }

    @Test(arguments: [
        "s3cret", "s3cret\n", "root:s3cret:0:0:root:/root:/bin/bash\nnobody:s3cret:1:1::/:/bin/sh\n", "TOKEN=s3cret\n",
        "s3cret: 1\n", "upstreams: {}\ns3cret: 1\n", "machine a.example login b password s3cret\n", "[s3cret]\n",
        "- s3cret\n- s3cret\n", #"{"token": "s3cret", "s3cret": "a"}"#, "[default]\nkey = s3cret\n", "!s3cret a\n",
        "!s3cret { a: 1 }\n", "-----BEGIN KEY-----\ns3cret\n-----END KEY-----\n", "a: s3cret: b\n", "*s3cret\n",
        "s3cret: 1\ns3cret: 2\n", "? [s3cret]\n: 1\n", "\"s3cret", "'s3cret\n", "a: |s3cret\n", "%s3cret\n",
        "${s3cret}\n",
        "s3cret: ${s3cret\n", "a: [s3cret\n", "{ s3cret: 1, s3cret: 2 }", "&s3cret a\n", "--- s3cret\n--- s3cret\n",
        "@s3cret\n", "\ts3cret: 1\n", "a: !!int s3cret\n", "\u{7}s3cret\n", "include: /s3cret.yaml\nx: 1\n",
    ])
    func `an included file that is not a config is refused, and its text is not shown`(content: String) throws {
        for name in ["secret.yaml", "sub/../secret.yaml"] {
            let folder = try Folder(["main.yaml": "include: ./\(name)\n", "sub/x": "", "secret.yaml": content])
            let complaints = folder.complaints()
            #expect(!complaints.isEmpty)
            #expect(complaints.allSatisfy { !$0.contains("s3cret") }, "\(complaints)")
        }
    }

    @Test func `a misspelled key in an included file is reported without its text`() throws {
        let folder = try Folder(["main.yaml": "include: base.yaml", "base.yaml": "mode: online\nupstrems: {}\n"])
        let expected = "base.yaml:2:1: error: this is not the name of a key of a config; did you mean \"upstreams\"?"
        #expect(folder.complaints().contains(expected), "\(folder.complaints())")
    }

    @Test func `an empty top-level section is a mistake, not a removal`() throws {
        let folder = try Folder(["main.yaml": "include: base.yaml\nmodels:\n", "base.yaml": base])
        #expect(
            folder.complaints().first?.hasPrefix("main.yaml:2:8: error: models: nothing was found here") == true,
            "\(folder.complaints())"
        )
    }
}
