import Foundation
import TestSupport
import Testing

/// What a daemon shows of what it does: the access log, `larder tail`, its log lines.
@Suite(.scripts) struct ActivityTests {
    private func lines(_ larder: Larder) -> [[String: Any]] {
        String(decoding: larder.folder.bytes("access.log"), as: UTF8.self).split(separator: "\n").compactMap {
            try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
        }
    }

    private func config(_ origin: Origin, _ folder: TemporaryFolder, _ top: String...) -> String {
        Configs.plain(origin, top: ["access_log: { format: json, file: \(folder.file("access.log")) }"] + top)
    }

    // MARK: The access log

    @Test func `each request is a line in the access log, hits too`() throws {
        let origin = try Origin(["/x": .json("[1]", Fresh.hour)])
        let folder = TemporaryFolder()
        let larder = try Larder(config: config(origin, folder), store: folder)
        _ = try larder.get("/x")
        #expect(try larder.get("/x").isHit)
        _ = try larder.get("/nothing?api_key=s3cret")
        #expect(eventually { lines(larder).count == 3 })
        #expect(Set(lines(larder).map { $0["outcome"] as? String }) == ["miss", "hit"])
        #expect(Set(lines(larder).map { $0["status"] as? Int }) == [200, 404])
        #expect(!String(decoding: folder.bytes("access.log"), as: UTF8.self).contains("s3cret"))
        #expect(larder.terminate() == .exited(0))
        // The same members as in the list of requests.
        try larder.start()
        _ = try larder.get("/y")
        #expect(eventually { lines(larder).count == 4 })
        let listed = try larder.admin("GET", "/requests").object["requests"] as? [[String: Any]]
        #expect(Set(listed?.first?.keys.map { $0 } ?? []) == Set(lines(larder)[3].keys))
    }

    @Test func `requests under way when the daemon stops are logged`() throws {
        let gate = Gate()
        let origin = try Origin { _ in
            gate.wait()
            return .json("[]", Fresh.hour)
        }
        let folder = TemporaryFolder()
        let larder = try Larder(config: config(origin, folder), store: folder)
        let response = Background { try larder.get("/last") }
        #expect(origin.waitForRequests(1))
        larder.process.signal(SIGTERM)
        #expect(larder.process.waitForErrors { $0.contains("stopping") })
        gate.open()
        #expect(try response.value().status == 200)
        #expect(larder.process.waitForEnd() == .exited(0))
        #expect(lines(larder).map { $0["url"] as? String } == ["/last"])
    }

    @Test func `SIGUSR1 reopens the access log`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let folder = TemporaryFolder()
        let larder = try Larder(config: config(origin, folder), store: folder)
        _ = try larder.get("/1")
        #expect(eventually { lines(larder).count == 1 })
        try FileManager.default.moveItem(atPath: folder.file("access.log"), toPath: folder.file("access.log.1"))
        larder.process.signal(SIGUSR1)
        #expect(larder.process.waitForErrors { $0.contains("the access log is reopened") })
        _ = try larder.get("/2")
        #expect(eventually { lines(larder).map { $0["url"] as? String } == ["/2"] })
        #expect(larder.isRunning)
    }

    @Test func `an access log that cannot be written gives one warning, and fails no request`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        for file in ["/dev/full", "/nowhere/access.log"] {
            let larder = try Larder(
                origin,
                config: Configs.plain(origin, top: ["access_log: { format: common, file: \(file) }"])
            )
            // A missing folder is said at the start; that a disk is full shows only when something is written.
            if file != "/dev/full" { #expect(larder.process.waitForErrors { $0.contains("cannot be written") }) }
            for number in 0..<20 { #expect(try larder.get("/\(number)").status == 200) }
            #expect(
                try eventually {
                    try larder.admin("GET", "/metrics").text.contains("larder_access_log_dropped_total 20\n")
                }
            )
            #expect(larder.log.ranges(of: "the access log cannot be written").count == 1, "\(larder.log)")
            #expect(larder.terminate() == .exited(0))
        }
    }

    @Test func `the access log can go to standard error, with the journal's priority`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(
            arguments: ["--upstream", origin.url, "--access-log", "short"],
            folder: TemporaryFolder(),
            environment: ["JOURNAL_STREAM": "8:1"]
        )
        _ = try larder.get("/x")
        #expect(larder.process.waitForErrors { $0.contains("GET upstream /x") })
        let line = try #require(larder.log.split(separator: "\n").first { $0.contains("GET upstream /x") })
        #expect(line.hasPrefix("<6>"))
        #expect(line.contains(" 200 miss "))
    }

    @Test(arguments: ["2>/dev/full", "2>&-", "0<&- 1>&- 2>&-"])
    func `requests are served although the log cannot be written`(redirection: String) throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let folder = TemporaryFolder()
        let (data, admin) = (folder.file("data.sock"), folder.file("admin.sock"))
        let process = try TestProcess(
            "/bin/sh",
            [
                "-c", "exec \"$0\" \"$@\" \(redirection)", Larder.binary, "serve", "--upstream", origin.url, "--listen",
                "unix:\(data)", "--admin", "unix:\(admin)", "--store", folder.file("larder.db"), "--access-log", "json",
            ],
            environment: Larder.environment
        )
        defer { process.signal(SIGKILL) }
        #expect(eventually { (try? Client(.unix(admin)).get("/readyz").status) == 200 })
        for number in 0..<10 {
            let response = try Client(.unix(data)).get("/\(number % 2)")
            #expect(response.status == 200)
            #expect(response.text == "[]")
        }
        let lines = redirection == "2>/dev/full" ? 10 : 0
        #expect(
            try eventually {
                try Client(.unix(admin)).get("/metrics").text.contains("larder_access_log_dropped_total \(lines)\n")
            }
        )
        process.signal(SIGTERM)
        #expect(process.waitForEnd() == .exited(0))
    }

    @Test func `the access log is off by default, and on at a terminal`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let quiet = try Larder(origin)
        _ = try quiet.get("/quiet")
        #expect(try eventually { try quiet.admin("GET", "/requests").text.contains("/quiet") })
        #expect(!quiet.log.contains("/quiet"))

        let terminal = try PseudoTerminal(columns: 80)
        let folder = TemporaryFolder()
        let process = try terminal.start(
            [
                Larder.binary, "serve", "--upstream", origin.url, "--listen", "unix:\(folder.file("data.sock"))",
                "--admin", "unix:\(folder.file("admin.sock"))", "--store", folder.file("larder.db"),
            ],
            errors: true
        )
        #expect(terminal.waitFor("admin on"))
        #expect(eventually { (try? Client(.unix(folder.file("data.sock"))).get("/seen").status) == 200 })
        #expect(terminal.waitFor("GET upstream /seen"))
        process.signal(SIGTERM)
        #expect(process.waitForEnd() == .exited(0))
    }

    @Test(arguments: ["short", "common", "json"])
    func `hostile URLs and fields cannot forge a log line`(format: String) throws {
        let origin = try Origin { _ in .json("[]", ["Cache-Status": "\"\u{1B}[2J\"; hit"] + Fresh.hour) }
        let folder = TemporaryFolder()
        let larder = try Larder(
            origin,
            config: Configs.plain(origin, top: ["access_log: { format: \(format), file: \(folder.file("log")) }"])
        )
        for target in ["/%E2%80%AEgnp.exe", "/%1B%5B31m%0A%3C0%3Eevil", "/%22b%5C", "/x?q=%9B2J", "/last"] {
            #expect(try larder.get(target, ["X": "\u{202E}"]).status == 200, "\(target)")
        }
        // What is not ASCII has no place in a request's target: it is refused.
        for target in ["/\u{202E}gnp.exe", "/\u{1B}[31m"] {
            let client = try larder.client()
            try client.send("GET \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(larder.port)\r\n\r\n")
            #expect(try client.response().status == 400)
        }
        #expect(eventually { folder.bytes("log").count { $0 == 0x0A } == 5 })
        let text = String(decoding: folder.bytes("log"), as: UTF8.self)
        #expect(text.contains("gnp.exe") && text.contains("/last"))
        #expect(text.unicodeScalars.allSatisfy { $0 == "\n" || $0.value >= 0x20 && $0.value < 0x7F }, "\(text)")
    }

    // MARK: Upstreams

    @Test func `an unreachable upstream gives one warning, and one line at its recovery`() throws {
        let origin = try Origin { _ in .json("[]") }
        let larder = try Larder(origin)
        origin.stop()
        for _ in 0..<3 { #expect(try larder.get("/users/1?access_token=s3cret").status == 502) }
        for _ in 0..<2 { #expect(try larder.get("/users/1?access_token=s3cret").status == 504) }
        #expect(larder.process.waitForErrors { $0.contains("the upstream cannot be reached") })
        let warning = try #require(
            larder.log.split(separator: "\n").first { $0.contains("the upstream cannot be reached") }
        )
        #expect(warning.contains(" warning "))
        #expect(warning.contains("url=\"\(origin.url)/users/1?access_token=REDACTED\""))
        #expect(warning.contains("host=127.0.0.1"))
        #expect(warning.contains("Connection refused") || warning.contains("connect"))
        #expect(warning.contains("upstreams.upstream.url"))
        try origin.restart()
        #expect(try eventually { try larder.get("/users/1").status == 200 })
        #expect(larder.process.waitForErrors { $0.contains("the upstream is reachable again") })
        #expect(larder.log.contains("failed_requests=3") && larder.log.contains("held_back="))
        #expect(larder.log.ranges(of: "the upstream cannot be reached").count == 1)
        #expect(!larder.log.contains("s3cret"))
    }

    @Test func `a request slower than configured gives a warning`() throws {
        let origin = try Origin { request in
            if request.path == "/slow" { Thread.sleep(forTimeInterval: 0.3) }
            return .json("[]", Fresh.hour)
        }
        let larder = try Larder(origin, config: Configs.plain(origin, top: ["slow_requests: 200ms"]))
        #expect(try larder.get("/slow").status == 200)
        #expect(larder.process.waitForErrors { $0.contains("a request was slow") && $0.contains("url=/slow") })
    }

    @Test func `the log of the start names upstreams, store and versions`() throws {
        let origin = try Origin(["/users/1": .json(#"{"id":1,"login":"ada"}"#, Fresh.hour)])
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users/1")
        #expect(try larder.waitForDocuments(1))
        try larder.restart()
        #expect(larder.process.waitForErrors { $0.contains("documents=1") })
        for word in [
            "larder 0.", "libcurl=\"libcurl/", "sqlite=3.", "name=blog", "url=\(origin.url)", "objects=1", "larder.db",
        ] {
            #expect(larder.log.contains(word), "\(word)")
        }
    }

    @Test func `response times are counted by route`() throws {
        let origin = try Origin { _ in .json(#"{"id":1}"#) }
        let larder = try Larder(config: Configs.blog(origin))
        for path in ["/users/1", "/users/2", "/elsewhere/1", "/elsewhere/2", "/elsewhere/3"] {
            _ = try larder.get(path)
        }
        let name = "larder_response_duration_seconds_count"
        #expect(
            try eventually {
                let text = try larder.admin("GET", "/metrics").text
                return text.contains("\(name){upstream=\"blog\",route=\"users/{id:#}\"} 2\n")
                    && text.contains("\(name){upstream=\"blog\",route=\"other\"} 3\n")
            }
        )
    }

    // MARK: Commands

    private func start(_ larder: Larder, _ arguments: String...) throws -> TestProcess {
        try TestProcess(
            Larder.binary,
            arguments + ["--admin", "127.0.0.1:\(larder.adminPort)", "--store", larder.folder.file("larder.db")],
            environment: Larder.environment
        )
    }

    @Test func `tail shows the last requests and each new one, and continues after a restart of the daemon`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(origin)
        _ = try larder.get("/before")
        #expect(try eventually { try larder.admin("GET", "/requests").text.contains("/before") })
        let tail = try start(larder, "tail")
        let json = try start(larder, "tail", "--json", "--lines", "0")
        #expect(eventually { tail.output.contains("/before") })
        #expect(
            try eventually {
                _ = try larder.get("/after")
                return json.output.contains("/after") && tail.output.contains("200 hit")
            }
        )
        #expect(!tail.output.contains("\u{1B}"))
        #expect(!json.output.contains("/before"))
        #expect(larder.terminate() == .exited(0))
        #expect(eventually { tail.errors.contains("has ended; waiting until it is back") })
        let late = try start(larder, "tail")
        #expect(late.waitForEnd() == .exited(1))
        #expect(late.errors.hasPrefix("larder: nothing listens on"))
        // The next daemon makes a new token.
        try FileManager.default.removeItem(atPath: larder.folder.file("admin.token"))
        let next = try Larder(
            arguments: ["--upstream", origin.url],
            folder: larder.folder,
            addresses: ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:\(larder.adminPort)"]
        )
        _ = try next.get("/again")
        #expect(eventually { tail.output.contains("/again") && json.output.contains("/again") })
        #expect(tail.errors.contains("is back"))
        #expect(tail.output.ranges(of: "/before").count == 1)
        for line in json.output.split(separator: "\n") {
            #expect(try JSONSerialization.jsonObject(with: Data(line.utf8)) is [String: Any])
        }
        for process in [tail, json] {
            process.signal(SIGINT)
            #expect(process.waitForEnd() == .exited(0))
        }
    }

    @Test func `tail shows only the requests that its options choose`() throws {
        let origin = try Origin { request in .json("{}", status: request.path == "/gone" ? 410 : 200) }
        let larder = try Larder(origin)
        let choices = [
            ["--program", "gh"], ["--status", "4xx"], ["--status", "410"], ["--outcome", "miss"],
            ["--upstream", "upstream"],
        ]
        let tails = try choices.map { try start(larder, "tail", "--lines", "100", $0[0], $0[1]) }
        _ = try larder.get("/plain", ["User-Agent": "curl/8"])
        _ = try larder.get("/gone", ["User-Agent": "gh/2.0"])
        _ = try larder.get("/last", ["User-Agent": "gh/2.0"])
        #expect(eventually { tails[0].output.contains("/last") && tails[3].output.contains("/last") })
        #expect(eventually { tails[1].output.contains("/gone") && tails[2].output.contains("/gone") })
        for (tail, unwanted) in zip(tails, ["/plain", "/last", "/last", "nothing", "nothing"]) {
            #expect(!tail.output.contains(unwanted), "\(tail.output)")
            tail.signal(SIGINT)
        }
        // The number of lines is that of those wanted.
        for number in 0..<20 { _ = try larder.get("/\(number)") }
        let few = try start(larder, "tail", "--lines", "2", "--program", "gh")
        #expect(eventually { few.output.contains("/gone") && few.output.contains("/last") }, "\(few.output)")
        few.signal(SIGINT)
        for (filter, name) in [("--upstream", "upstream"), ("--route", "nor any other"), ("--outcome", "miss")] {
            let unknown = try larder.command("tail", filter, "nowhere")
            #expect(unknown.end == .exited(64) && unknown.errors.contains(name), "\(unknown)")
        }
        let mistake = try larder.command("tail", "--status", "9xx")
        #expect(mistake.end == .exited(64) && mistake.errors.contains("404, or 5xx"))
    }

    @Test func `tail shows colours at a terminal, unless NO_COLOR is set`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        _ = try larder.request("GET", "/y", ["Host": "evil.example"])
        let arguments = [
            Larder.binary, "tail", "--admin", "127.0.0.1:\(larder.adminPort)", "--store",
            larder.folder.file("larder.db"),
        ]
        let coloured = try PseudoTerminal(columns: 80)
        let plain = try PseudoTerminal(columns: 80)
        let processes = [
            try coloured.start(arguments), try plain.start(arguments, environment: ["NO_COLOR": "1"]),
        ]
        #expect(coloured.waitFor("/y"))
        #expect(plain.waitFor("/y"))
        #expect(coloured.text.contains("\u{1B}[31m421 error"))
        #expect(!plain.text.contains("\u{1B}"))
        for process in processes { process.signal(SIGINT) }
    }

    @Test func `tables fit a terminal of 20 columns, whatever they contain`() throws {
        let hostile = "\u{1B}[31m\u{202E}evil<script>\\n\u{7F}"
        let body = try JSONSerialization.data(withJSONObject: [["id": 1, "login": hostile, "name": hostile + "東京"]])
        let origin = try Origin(["/users": .json(String(decoding: body, as: UTF8.self), Fresh.hour)])
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users")
        #expect(try larder.waitForDocuments(1))
        let place = ["--admin", "127.0.0.1:\(larder.adminPort)", "--store", larder.folder.file("larder.db")]
        for arguments in [
            ["objects", "User"], ["documents"], ["count"], ["warnings"], ["changes"], ["explain", "/users"],
            ["why", "User", "1"], ["objects", "User", "1"],
        ] {
            let terminal = try PseudoTerminal(columns: 20)
            let process = try terminal.start([Larder.binary] + arguments + place)
            #expect(process.waitForEnd() == .exited(0), "\(process.errors)")
            #expect(eventually { terminal.text.hasSuffix("\n") })
            let text = terminal.text
            #expect(
                text.unicodeScalars.allSatisfy {
                    $0 == "\n" || $0.value >= 0x20 && $0.value != 0x7F && $0 != "\u{202E}"
                }
            )
            // One object is shown as it is, to be read whole.
            if arguments == ["objects", "User", "1"] { continue }
            #expect(Self.isFitted(text, to: 20), "\(text)")
        }
    }

    /// Whether no line is too wide, but for single words, which are left to the terminal.
    private static func isFitted(_ text: String, to width: Int) -> Bool {
        text.split(separator: "\n").allSatisfy { $0.count <= width || !$0.drop { $0 == " " }.contains(" ") }
    }

    @Test func `help and errors fit 20 columns, and help still explains the options`() throws {
        for (arguments, words) in [
            (["clean", "--help"], "--dry-run Show what would be removed, and remove nothing."),
            (["clean"], "Usage: larder clean <options>"),
        ] {
            let terminal = try PseudoTerminal(columns: 20)
            let process = try terminal.start([Larder.binary] + arguments, errors: true)
            process.waitForEnd()
            let isShown = eventually {
                let read = terminal.text.split { $0.isWhitespace }.joined(separator: " ")
                return read.contains(words) && terminal.text.hasSuffix("\n")
            }
            #expect(isShown, "\(terminal.text)")
            #expect(Self.isFitted(terminal.text, to: 20), "\(terminal.text)")
        }
    }

    @Test func `an admin side with too many connections is not taken for another server`() throws {
        let problem =
            #"{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"There are too many connections; try again later."}"#
        let busy = try Origin { _ in
            .raw("HTTP/1.1 503 Service Unavailable\r\nContent-Length: \(problem.utf8.count + 1)\r\n\r\n\(problem)\n")
        }
        let result = try Larder.run(
            ["count", "--admin", "127.0.0.1:\(busy.port)"],
            environment: ["LARDER_ADMIN_TOKEN": "t0ken"]
        )
        #expect(result.end == .exited(1))
        #expect(result.errors.contains("There are too many connections; try again later."), "\(result.errors)")
        #expect(busy.requests.allSatisfy { $0["Authorization"] == nil })
    }

    @Test func `commands send the token only to the admin side`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(origin)
        for (port, words) in [
            (larder.port, "is where Larder serves programs"), (origin.port, "is not Larder's admin side"),
        ] {
            let command = try TestProcess(
                Larder.binary,
                ["count", "--admin", "127.0.0.1:\(port)", "--store", larder.folder.file("larder.db")],
                environment: Larder.environment
            )
            #expect(command.waitForEnd() == .exited(1))
            #expect(command.errors.contains(words), "\(command.errors)")
        }
        #expect(origin.count() == 2)
        #expect(origin.requests.allSatisfy { $0["Authorization"] == nil })
    }

    @Test func `commands find the daemon by its config`() throws {
        let origin = try Origin(["/users/1": .json(#"{"id":1,"login":"ada"}"#, Fresh.hour)])
        let folder = TemporaryFolder()
        let socket = folder.file("admin.sock")
        let config =
            Configs.blog(origin)
                + """

                listen: 'unix:\(folder.file("data.sock"))'
                admin: ['127.0.0.1:0', { address: 'unix:\(socket)', mode: '0660' }]
                """
        let path = try folder.write(
            config.replacing("store: { withhold", with: "store: { path: \(folder.file("larder.db")), withhold"),
            to: "larder.yaml"
        )
        let process = try TestProcess(Larder.binary, ["serve", "--config", path], environment: Larder.environment)
        defer { process.signal(SIGKILL) }
        #expect(eventually { (try? Client(.unix(socket)).get("/readyz").status) == 200 }, "\(process.errors)")
        var status = stat()
        #expect(stat(socket, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o660)
        _ = try Client(.unix(folder.file("data.sock"))).get("/users/1")
        for (arguments, environment) in [
            (["--config", path], [:]), ([], ["LARDER_CONFIG": path]), ([], ["LARDER_ADMIN": "unix:\(socket)"]),
        ] {
            let command = try TestProcess(
                Larder.binary,
                ["count", "--json"] + arguments,
                environment: Larder.environment.merging(environment) { $1 }
            )
            #expect(command.waitForEnd() == .exited(0), "\(command.errors)")
            #expect(command.output.contains("\"objects\""))
        }
        // Both addresses serve; over TCP the token is needed.
        let port = try #require(process.errors.firstMatch(of: /admin on http:\/\/127.0.0.1:([0-9]+)/)?.1)
        #expect(try Client(port: UInt16(port) ?? 0).get("/count").status == 401)
        // Completions read the same config.
        let models = try TestProcess(
            Larder.binary,
            ["---completion", "objects", "--", "positional@0", "1", "0"],
            environment: Larder.environment.merging(["LARDER_CONFIG": path]) { $1 }
        )
        #expect(models.waitForEnd() == .exited(0), "\(models.errors)")
        #expect(models.output.split(separator: "\n").contains("User"), "\(models.output)")
        process.signal(SIGTERM)
        #expect(process.waitForEnd() == .exited(0))
        #expect(access(socket, F_OK) != 0)
    }

    @Test func `the error for a config that may not be read says what to do`() throws {
        let folder = TemporaryFolder()
        try TestProcess.run("mkdir", [folder.file("etc")])
        let config = try folder.write("upstreams: { api: { url: \"http://127.0.0.1:1\" } }\n", to: "etc/larder.yaml")
        // Root may read everything, so it takes the place of a user who may not.
        let isRoot = geteuid() == 0
        let user = isRoot ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : ["env"]
        try TestProcess.run("chmod", ["755", folder.path])
        for (mode, path) in [("000", config), ("000", folder.file("etc"))] {
            try TestProcess.run("chmod", [mode, path])
            for arguments in [["check", "--config", config], ["count", "--config", config]] {
                let process = try TestProcess(user[0], user.dropFirst() + [Larder.binary] + arguments)
                #expect([.exited(78), .exited(1)].contains(process.waitForEnd()))
                let remedy =
                    isRoot ? "belongs to the user root: run this as root, for example with sudo" : "chmod u+"
                #expect(
                    process.errors.contains("Permission denied; ") && process.errors.contains(remedy),
                    "\(process.errors)"
                )
            }
            try TestProcess.run("chmod", ["755", path])
        }
    }

    @Test func `all errors of commands have one form, and a misspelled command gets a suggestion`() throws {
        for (arguments, words, code) in [
            (["cuont"], "did you mean \"larder count\"?", 64), (["objects"], "Missing expected argument", 64),
            (["count", "--admin", "127.0.0.1:1"], "nothing listens on 127.0.0.1:1", 1),
            (["count", "--config", "/nowhere.yaml"], "/nowhere.yaml cannot be read: No such file", 1),
            (["serve", "--preset", "githab"], "there is no preset \"githab\"", 64),
        ] as [([String], String, Int32)] {
            let process = try TestProcess(Larder.binary, arguments, environment: Larder.environment)
            #expect(process.waitForEnd() == .exited(code))
            #expect(process.errors.hasPrefix("larder: "), "\(process.errors)")
            #expect(process.errors.contains(words), "\(process.errors)")
        }
    }
}
