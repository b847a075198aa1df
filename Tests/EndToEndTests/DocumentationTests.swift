import Foundation
import TestSupport
import Testing

/// Every fenced block of the documents is run or checked here, or named in ``leftOut`` with the reason why not.
@Suite(.scripts, .serialized) struct DocumentationTests {
    /// A fenced block, without the indentation that it has in a list.
    private struct Block {
        let page: String
        let kind: String
        let lines: [String]

        var text: String { lines.joined(separator: "\n") + "\n" }

        /// Why no test runs the whole block; nil if one does.
        var reason: String? { DocumentationTests.reason(page, [kind], lines[0]) }
    }

    /// What no test runs, and why not: commands of `sh` and `console` blocks, and whole blocks of other kinds.
    private static let leftOut: [(kind: String, beginning: String, reason: String)] = [
        ("sh", "make ", "builds; sessions run on what `make run` starts, and `make test-package` makes the package"),
        ("sh", "docker ", "needs an engine; `make test-image` runs the image without one"),
        ("yaml", "services:", "is a compose file; see below"), ("yaml", "apiVersion:", "is a manifest; see below"),
        ("yaml", "name: tests", "is a workflow; see below"),
        ("sh", "sudo ", "changes the machine; `make test-package` does it in a system of its own"),
        ("sh", "curl -i http://127.0.0.1:8787", "needs GitHub's API and the usual port"),
        ("sh", "curl -si http://127.0.0.1:8787", "needs GitHub's API and the usual port"),
        ("sh", "gh ", "needs GitHub's API and an account"),
        ("sh", "export GH_HOST", "belongs to gh"),
        ("sh", "larder serve --preset github --listen 127.0.0.1:8787", "takes the usual port"),
        ("sh", "larder freeze mine --principal", "p-1a2b3c4d stands for a principal of the reader's"),
        ("console", "curl -si --http2", "needs Caddy and GitHub's API"),
        ("ruby", "", "needs Octokit"), ("go", "", "needs Go"), ("java", "", "needs Java"),
        ("js", "", "needs Node; EventSourceTests do it in a browser"),
        ("caddyfile", "", "needs Caddy"),
        ("swift", "", "is a part of a test"),
        ("sh", "larder dashboard", "opens a browser; DashboardTests do"),
        ("sh", "curl -fsS -X POST", "belongs into a test that larder run has started"),
        ("sql", "", "needs issues; SQLCommandTests have dates"),
        ("text", "", "is what a program prints, not what is typed"),
    ]

    private static func reason(_ page: String, _ kinds: [String], _ line: String) -> String? {
        if page == "docs/mapping.md" { return "MappingGuideTests runs the page" }
        return leftOut.first { kinds.contains($0.kind) && line.hasPrefix($0.beginning) }?.reason
    }

    private static let all: [Block] = {
        let documents = (try? FileManager.default.contentsOfDirectory(atPath: "\(Repository.root)/docs")) ?? []
        let pages =
            ["README.md", "CONTRIBUTING.md"] + documents.filter { $0.hasSuffix(".md") }.sorted().map { "docs/\($0)" }
        return pages.flatMap(read)
    }()

    private static func read(_ page: String) -> [Block] {
        let text = (try? String(contentsOfFile: "\(Repository.root)/\(page)", encoding: .utf8)) ?? ""
        var blocks: [Block] = []
        var open: (kind: String, indentation: Int, lines: [String])?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let bare = line.drop { $0 == " " }
            if let block = open, bare == "```" {
                blocks.append(Block(page: page, kind: block.kind, lines: block.lines))
                open = nil
            } else if let block = open {
                open?.lines.append(String(line.dropFirst(min(block.indentation, line.count - bare.count))))
            } else if bare.hasPrefix("```") {
                open = (String(bare.dropFirst(3)), line.count - bare.count, [])
            }
        }
        return blocks
    }

    private static func blocks(_ kind: String) throws -> [Block] {
        let blocks = all.filter { $0.kind == kind && $0.reason == nil }
        try #require(!blocks.isEmpty)
        return blocks
    }

    @Test func `every block of the documentation is run or checked, or is excepted with a reason`() {
        #expect(Self.all.count > 100)
        for block in Self.all where !["sh", "console", "yaml", "json", "python"].contains(block.kind) {
            #expect(
                block.reason != nil,
                "\(block.page): nothing runs a block of the kind \"\(block.kind)\": \(block.text)"
            )
        }
        // No reason outlives what it was for.
        let lines = Self.all.flatMap { block in
            block.lines.map { (block.kind, block.kind == "console" ? String($0.dropFirst(2)) : $0) }
        }
        for row in Self.leftOut {
            #expect(lines.contains { $0.0 == row.kind && $0.1.hasPrefix(row.beginning) }, "\(row)")
        }
    }

    /// Lines indented by four spaces outside of fences, as Markdown's other code blocks.
    private static func indented(_ page: String) throws -> [Substring] {
        var (isFenced, lines): (Bool, [Substring]) = (false, [])
        for line in try String(contentsOfFile: "\(Repository.root)/\(page)", encoding: .utf8).split(separator: "\n") {
            if line.drop(while: { $0 == " " }).hasPrefix("```") { isFenced.toggle() }
            if !isFenced, line.hasPrefix("    ") { lines.append(line.dropFirst(4)) }
        }
        return lines
    }

    @Test func `commands to type are in fenced blocks, except in lists of commands, and all exist`() throws {
        let makefile = try String(contentsOfFile: "\(Repository.root)/Makefile", encoding: .utf8)
        for page in Set(Self.all.map(\.page)) {
            let lines = try Self.indented(page)
            for line in lines {
                let words = line.split(separator: " ").map(String.init)
                switch words[0] {
                case "make": #expect(makefile.contains("\n\(words[1]):"), "\(page): \(line)")
                case "larder" where page == "CONTRIBUTING.md":
                    let help = try Larder.run([words[1], "--help"])
                    #expect(help.end == .exited(0), "\(page): \(line)")
                default:
                    let isPicture = page == "docs/architecture.md" || page == "docs/mapping.md"
                    #expect(page == "CONTRIBUTING.md" || isPicture, "\(page): put this into a fence: \(line)")
                }
            }
        }
        #expect(try Self.indented("CONTRIBUTING.md").contains { $0.hasPrefix("larder") })
    }

    // MARK: Sessions

    /// A command, what it prints where the page shows that, and whether it has to succeed.
    private struct Step {
        let command: String
        var output: [String] = []
        var succeeds = false
    }

    /// What is there before a block is typed, by its first command.
    private static let given = [
        "larder replay fixtures": recorded,
        "larder diff fixtures": recorded,
        "larder import session.har": """
        \(recorded); mkdir cassettes wiremock; larder export fixtures session.har
        larder export fixtures cassettes/users.yaml; rm -r fixtures
        printf '{"request":{"method":"GET","url":"/x"},"response":{"body":"x"}}' > wiremock/x.json
        """,
        "larder freeze": "curl -s $L/users/1 -o /dev/null",
        #"curl -fsS -H "Authorization: Bearer $LARDER_ADMIN_TOKEN" "$LARDER_ADMIN/objects"#: """
        curl -s $L/users/1 -o /dev/null
        until [[ $(larder documents --json) == *users* ]]; do sleep 0.1; done
        """,
    ]

    private static let recorded = "larder run fixtures --record once --upstream $A -- pytest"

    /// Starts what serves until it is stopped, on ports of the kernel's choice, and stops it once it serves.
    private static let briefly = """
        briefly() {
          # What the one before it has logged must not be taken for this one's.
          rm -f started.log
          "$@" --listen 127.0.0.1:0 --admin 127.0.0.1:0 2>started.log &
          local started=$!
          until grep -qs 'listening on' started.log; do
            kill -0 $started 2>/dev/null || { cat started.log; return 1; }
            sleep 0.1
          done
          kill $started; wait $started
        }
        """

    /// The commands of a page, in order.
    private static func session(_ page: String) -> [Step] {
        var session: [Step] = []
        for (number, block) in all.enumerated() where block.page == page {
            switch block.kind {
            case "console":
                for line in block.lines {
                    if line.hasPrefix("$ ") {
                        session.append(Step(command: String(line.dropFirst(2))))
                    } else if !session.isEmpty {
                        session[session.count - 1].output.append(line)
                    }
                }
            case "sh":
                // Each block has a folder of its own.
                let first = block.lines[0]
                let setUp = given.first { first.hasPrefix($0.key) }?.value ?? ""
                session.append(Step(command: "mkdir block-\(number); cd block-\(number)\n\(setUp)"))
                session += block.lines.map { Step(command: typed($0), succeeds: true) }
                session.append(Step(command: "cd .."))
            default: break
            }
        }
        return session.filter { step in
            reason(page, ["sh", "console"], step.command) == nil
        }
    }

    /// A line of a `sh` block, with the sample API in the place of one that does not exist.
    private static func typed(_ line: String) -> String {
        let command = line.replacing("https://api.example.com --", with: "$A --")
        if reason("", ["sh"], line) != nil { return line }
        if ["larder serve", "larder record ", "larder replay"].contains(where: command.hasPrefix) {
            return "briefly \(command)"
        }
        if command.hasPrefix("larder tail") { return "timeout 2 \(command) || [[ $? == 124 ]]" }
        if command.contains("--follow") { return "timeout 2 \(command)\n[[ $? == 124 ]]" }
        return command
    }

    private static let pages = Set(all.filter { ["sh", "console"].contains($0.kind) && $0.reason == nil }.map(\.page))

    @Test(arguments: pages.sorted()) func `each command in the documentation prints what its page shows`(page: String)
        throws
    {
        let folder = TemporaryFolder()
        let run = try TestProcess(
            "\(Repository.root)/scripts/run",
            [Larder.binary],
            environment: [
                "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin",
                "SAMPLE_PORT": "\(try Socket.freePort())",
                "LISTEN": "127.0.0.1:0", "ADMIN": "127.0.0.1:0",
                "STORE": "\(folder.path)/larder.db", "http_proxy": "http://127.0.0.1:1",
            ]
        )
        defer {
            run.signal(SIGTERM)
            run.waitForEnd()
        }
        let hasStarted = eventually { run.output.contains("Ctrl-C ends Larder") || run.end != nil }
        try #require(hasStarted && run.end == nil, "\(run.errors)")
        let exports = run.output.split(separator: "\n").filter { $0.hasPrefix("    export") }.joined(separator: "\n")
        let session = Self.session(page)
        #expect(!session.isEmpty)

        // A program that is to be tested against a recording.
        _ = try folder.write("#!/bin/sh\nexec curl -fsS -o /dev/null \"$LARDER_URL/users/1\"\n", to: "pytest")
        try TestProcess.run("chmod", ["+x", folder.file("pytest")])
        var script = "set +m; exec 2>&1; cd '\(folder.path)'; export XDG_CACHE_HOME=$PWD/cache TOKEN=none\n\(exports)\n"
        script += "PATH=$PWD:$PATH\n\(Self.briefly)\n"
        for (number, step) in session.enumerated() {
            // What runs in the background has a moment to begin, or to print what the last command has caused.
            script +=
                "\(step.command)\nstatus=$?\n[[ -z $(jobs -pr) ]] || sleep 1\nprintf '\\n%s\\n' \"=== \(number) $status\"\n"
        }
        script += "kill $(jobs -p) 2>/dev/null; wait\n"
        let terminal = try TestProcess("bash", [try folder.write(script, to: "session.sh")])
        terminal.waitForEnd()
        var outputs: [(lines: [String], status: String)] = []
        var lines: [String] = []
        for line in terminal.output.replacingOccurrences(of: "\r\n", with: "\n").split(
            separator: "\n",
            omittingEmptySubsequences: false
        ) {
            if line.hasPrefix("=== ") {
                // The line end before the mark, where the output has one of its own.
                if lines.last == "" { lines.removeLast() }
                outputs.append((lines, String(line.split(separator: " ").last ?? "")))
                lines = []
            } else {
                lines.append(String(line))
            }
        }
        try #require(outputs.count == session.count, "\(terminal.output)")
        for (step, (lines, status)) in zip(session, outputs) {
            if !step.output.isEmpty {
                #expect(lines.map(Self.lasting) == step.output.map(Self.lasting), "\(page): \(step.command)")
            }
            #expect(!step.succeeds || status == "0", "\(page): \(step.command)\n\(lines.joined(separator: "\n"))")
        }
    }

    /// A line without what is another each time: dates, ages, sizes, ports, and the numbers of the commit sequence.
    private static func lasting(_ line: String) -> String {
        var line = line
        for (pattern, word) in [
            (#"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} .*$"#, "DATE"), (#"\d{4}-\d\d-\d\dT[\d:.]+Z"#, "TIME"),
            (#"\b\d{13,}\b"#, "SEQUENCE"), (#"ttl=-?\d+"#, "ttl=N"), (#""age":\d+"#, "age=N"),
            (#"\d+(\.\d)? ([KM]i)?B\b"#, "SIZE"), (#"127\.0\.0\.1:\d+"#, "ADDRESS"), (#" +"#, " "),
        ] {
            line = line.replacingOccurrences(of: pattern, with: word, options: .regularExpression)
        }
        return line
    }

    // MARK: Configs, JSON and Python

    @Test func `every config in the documentation is accepted`() throws {
        let group = try TestProcess.run("id", ["-gn"]).trimmingCharacters(in: .newlines)
        for block in try Self.blocks("yaml") where !block.text.contains("format: 2\n") {
            let folder = TemporaryFolder()
            // A part of a config belongs to one that has an upstream.
            let isWhole = ["include:", "upstreams:"].contains(where: block.text.contains)
            let secret = try folder.write("s3cret", to: "secret")
            let key = try folder.write(String(repeating: "0f", count: 32), to: "key")
            let text = block.text.replacing("group: larder", with: "group: \(group)")
                .replacing("/etc/larder/github-webhook", with: secret)
                .replacing("/etc/larder/redis-password", with: secret)
                .replacing("/etc/larder/fleet.key", with: key)
            let config = (isWhole ? "" : "include: github\n") + text
            let check = try Larder.run(["check", "--config", try folder.write(config, to: "larder.yaml")])
            #expect(check.end == .exited(0), "\(block.page): \(block.text)\(check.errors)")
        }
    }

    /// Schemas of what is written for containers.
    static let schemas = PythonEnvironment(
        "schemas",
        packages: ["check-jsonschema", "kubernetes-validate", "pyyaml"],
        imports: ["check_jsonschema", "kubernetes_validate", "yaml"]
    )

    @Test(.enabled(if: schemas.isInstalled, "the schemas could not be installed from PyPI"))
    func `compose files, manifests and workflows in the documentation are valid`() throws {
        let folder = TemporaryFolder()
        let blocks = Self.all.filter { $0.page == "docs/containers.md" && $0.kind == "yaml" }
        #expect(blocks.count == 4)
        for (index, block) in blocks.enumerated() {
            let file = try folder.write(block.text, to: "\(index).yaml")
            let schema = ["services:": "vendor.compose-spec", "name: tests": "vendor.github-workflows"][block.lines[0]]
            if let schema {
                let check = try TestProcess(
                    Self.schemas.program("check-jsonschema"),
                    ["--builtin-schema", schema, file]
                )
                #expect(check.waitForEnd() == .exited(0), "\(block.text)\(check.output)\(check.errors)")
            } else {
                // The config is printed, to be checked by Larder.
                let script = """
                    import sys, yaml, kubernetes_validate
                    for manifest in yaml.safe_load_all(open(sys.argv[1])):
                        kubernetes_validate.validate(manifest, "1.30", strict=True)
                        print(manifest.get("data", {}).get("larder.yaml", ""))
                    """
                let config = try Self.schemas.run(script, file)
                guard config.contains("upstreams:") else { continue }
                let check = try Larder.run(["check", "--config", try folder.write(config, to: "larder.yaml")])
                #expect(check.end == .exited(0), "\(check.errors)")
            }
        }
    }

    @Test func `all JSON in the documentation parses, and the recording that it shows is valid`() throws {
        for block in try Self.blocks("json") {
            #expect(throws: Never.self, "\(block.page): \(block.text)") {
                try JSONSerialization.jsonObject(with: Data(block.text.utf8))
            }
        }
        let shown = Self.all.filter { $0.page == "docs/recording-format.md" }
        let folder = TemporaryFolder()
        try TestProcess.run("mkdir", ["-p", folder.file("recording/bodies")])
        _ = try folder.write(try #require(shown.first { $0.kind == "yaml" }).text, to: "recording/recording.yaml")
        _ = try folder.write(try #require(shown.first { $0.kind == "json" }).text, to: "recording/exchanges.jsonl")
        for name in ["000001.request.json", "000001.indented.json"] {
            _ = try folder.write(#"{"login":"ada"}"#, to: "recording/bodies/\(name)")
        }
        let export = try Larder.run(["export", folder.file("recording"), folder.file("out.har")])
        #expect(export.end == .exited(0) && export.output.hasPrefix("wrote 1 exchange"), "\(export.errors)")
    }

    /// The libraries that the blocks use, and how each finds what it needs.
    static let python = PythonEnvironment(
        "clients",
        packages: ["PyGithub", "python-gitlab", "stripe", "Mastodon.py", "requests", "httpx"],
        imports: ["github", "gitlab", "stripe", "mastodon", "requests", "httpx"]
    )

    @Test(.enabled(if: python.isInstalled, "the libraries could not be installed from PyPI"))
    func `the Python of the recipes runs`() throws {
        let origin = try Origin { request in
            let root = "http://\(request.fields["Host"] ?? "")"
            return switch request.path {
            case "/repos/octokit/octokit.rb":
                .json(
                    #"{"id":1,"name":"octokit.rb","full_name":"octokit/octokit.rb","url":"\#(root)/repos/octokit/octokit.rb","#
                        + #""owner":{"id":2,"login":"octokit","url":"\#(root)/users/octokit"}}"#,
                    Fresh.hour
                )
            case "/users/octokit": .json(#"{"id":2,"login":"octokit","name":"Octokit"}"#, Fresh.hour)
            case "/api/v4/users/1": .json(#"{"id":1,"username":"root"}"#, Fresh.hour)
            case "/api/v1/timelines/home": .json("[]", Fresh.hour)
            case "/api/v1/instance", "/api/v2/instance": .json(#"{"version":"4.3.0","uri":"x"}"#, Fresh.hour)
            default: .json("{}", status: 404)
            }
        }
        let blocks = try Self.blocks("python")
        #expect(blocks.count == 6)
        for block in blocks {
            let preset = ["gitlab", "stripe", "mastodon"].first(where: block.text.contains) ?? "github"
            let larder = try Larder(
                config:
                    "include: \(preset)\nupstreams: { \(preset): { url: \"\(origin.url)\", rewrite_links: true } }\n"
            )
            let script = """
                import os, gitlab, httpx, requests, stripe
                from github import Auth, Github
                from mastodon import Mastodon
                os.environ |= {name: "none" for name in ["GITHUB_TOKEN", "GITLAB_TOKEN", "MASTODON_TOKEN"]}
                \(block.text.replacing("http://127.0.0.1:8787", with: larder.url))
                """
            #expect(throws: Never.self, "\(block.page): \(block.text)") { try Self.python.run(script) }
        }
    }
}
