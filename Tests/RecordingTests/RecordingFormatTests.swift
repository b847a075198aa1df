import Foundation
import TestSupport
import Testing

@testable import Recording
@testable import Settings

/// The folder of a recording: what is read, and what is refused with its place.
@Suite struct RecordingFormatTests {
    private static let manifest = "format: 1\nupstreams:\n  api:\n    url: https://api.example.com\n"

    private static func line(_ target: String = "/x", body: String? = nil) -> String {
        let body = body.map { #","body":"\#($0)""# } ?? ""
        return #"{"request":{"method":"GET","target":"\#(target)"},"response":{"fields":[],"status":200\#(body)},"#
            + #""upstream":"api"}"#
    }

    private static func folder(_ lines: String, manifest: String = manifest, bodies: [String: String] = [:]) throws
        -> TemporaryFolder
    {
        let folder = TemporaryFolder()
        try folder.write(manifest, to: "recording.yaml")
        try folder.write(lines, to: "exchanges.jsonl")
        try FileManager.default.createDirectory(atPath: folder.file("bodies"), withIntermediateDirectories: true)
        for (name, text) in bodies { try folder.write(text, to: "bodies/\(name)") }
        return folder
    }

    private static func failure(_ folder: TemporaryFolder) -> String {
        do {
            let recording = try RecordingContents(RecordingFolder(folder.path))
            return "read: \(recording.exchanges.count)"
        } catch {
            return error.description.replacing(folder.path + "/", with: "")
        }
    }

    @Test func `an exchange survives being written and read`() throws {
        let exchange = RecordedExchange(
            upstream: "api",
            credential: 2,
            arrivalTime: RecordingTime.text(1_700_000_000.25),
            request: .init(
                method: "POST",
                target: "/a?b=\"c\"/é",
                fields: ["Accept: */*", "X-A: b: c"],
                body: "bodies/1.bin"
            ),
            response: .init(status: 201, fields: ["Set-Cookie: a=b; Path=/"], body: nil)
        )
        #expect(exchange.arrivalTime == "2023-11-14T22:13:20.250Z")
        #expect(exchange.seconds == 1_700_000_000)
        #expect(try JSONDecoder().decode(RecordedExchange.self, from: Data(exchange.line)) == exchange)
        #expect(!exchange.line.contains(0x0A))
    }

    @Test func `line ends of either kind, empty lines and a missing last line end are accepted`() throws {
        let text = "\u{FEFF}" + Self.line("/1") + "\r\n\r\n" + Self.line("/2") + "\n\n" + Self.line("/3")
        let manifest = Self.manifest.replacing("\n", with: "\r\n")
        let folder = try Self.folder(text, manifest: manifest)
        let recording = try RecordingContents(RecordingFolder(folder.path))
        #expect(recording.exchanges.map(\.request.target) == ["/1", "/2", "/3"])
        #expect(recording.notices.isEmpty)
        #expect(recording.manifest.config.contains("https://api.example.com"))
        #expect(!recording.manifest.config.contains("format"))
    }

    @Test func `a truncated last line is left out and reported`() throws {
        let text = Self.line("/1") + "\n" + Self.line("/2").dropLast(20)
        let folder = try Self.folder(text)
        let recording = try RecordingContents(RecordingFolder(folder.path))
        #expect(recording.exchanges.map(\.request.target) == ["/1"])
        #expect(recording.notices.count == 1)
    }

    @Test(arguments: [
        ("nonsense", "exchanges.jsonl:2: the line is not JSON; each line is one object"),
        ("[]", "exchanges.jsonl:2: : this is not of the type Dictionary<String, Any>"),
        ("{}", "exchanges.jsonl:2: the line has no \"upstream\""),
        (
            line().replacing("200", with: "\"ok\""),
            "exchanges.jsonl:2: response.status: this is not of the type Int"
        ),
        (
            line().replacing("200", with: "100"),
            "exchanges.jsonl:2: status: 100 is not the status of a final response; write one from 200 to 999"
        ),
        (
            line().replacing(#""status""#, with: #""delay":-1,"status""#),
            "exchanges.jsonl:2: delay: -1 is not a delay in milliseconds; write one from 0 to 3600000"
        ),
        (line("x"), "exchanges.jsonl:2: target: \"x\" is not a path; write it as \"/users?page=2\""),
        (
            line().replacing("GET", with: "G T"),
            "exchanges.jsonl:2: method: \"G T\" is not a method; write it as \"GET\""
        ),
        (
            line().replacing("[]", with: #"["A: b\r\nSet-Cookie: c"]"#),
            #"exchanges.jsonl:2: fields: "A: b\r\nSet-Cookie: c" is not a field line; write each line as a string of its own"#
        ),
        (
            line().replacing("[]", with: #"["A B: c"]"#),
            #"exchanges.jsonl:2: fields: "A B: c" is not a field line; write each line as a string of its own"#
        ),
        (
            line().replacing("GET", with: "HEAD").replacing("[]", with: #"["Content-Length: -1"]"#),
            #"exchanges.jsonl:2: fields: "Content-Length: -1" is not a field line; write each line as a string of its own"#
        ),
        (
            line(body: "bodies/../recording.yaml"),
            "exchanges.jsonl:2: \"bodies/../recording.yaml\" is not a body of this recording; bodies are named bodies/NAME, with letters, digits, \".\", \"-\" and \"_\""
        ),
        (
            line(body: "/etc/passwd"),
            "exchanges.jsonl:2: \"/etc/passwd\" is not a body of this recording; bodies are named bodies/NAME, with letters, digits, \".\", \"-\" and \"_\""
        ),
        (
            line(body: "bodies/.."),
            "exchanges.jsonl:2: \"bodies/..\" is not a body of this recording; bodies are named bodies/NAME, with letters, digits, \".\", \"-\" and \"_\""
        ),
        (
            line(body: "bodies/9.json"),
            "exchanges.jsonl:2: the body bodies/9.json is missing; put the file back, or take \"body\" out of the line"
        ),
        (
            line(body: "bodies/link.json"),
            "exchanges.jsonl:2: the body bodies/link.json is a symbolic link; put the file itself there"
        ),
    ])
    func `a line that cannot be replayed is refused with its number`(line: String, message: String) throws {
        let folder = try Self.folder(Self.line() + "\n" + line + "\n" + Self.line() + "\n", bodies: ["1.json": "{}"])
        symlink("/etc/passwd", folder.file("bodies/link.json"))
        #expect(Self.failure(folder) == message)
    }

    @Test func `bodies are neither read nor written through a link to another folder`() throws {
        let elsewhere = TemporaryFolder()
        try elsewhere.write("secret", to: "1.json")
        let folder = TemporaryFolder()
        try folder.write(Self.manifest, to: "recording.yaml")
        try folder.write(Self.line(body: "bodies/1.json") + "\n", to: "exchanges.jsonl")
        symlink(elsewhere.path, folder.file("bodies"))
        let message =
            "bodies: this is not a folder, and bodies are read from no other place; put the folder itself there"
        #expect(Self.failure(folder) == message)
        #expect(throws: RecordingError.self) {
            try RecordingWriter(RecordingFolder(folder.path), config: "", recorded: 0)
        }
        #expect(elsewhere.names == ["1.json"])
    }

    @Test func `every message that HTTP allows is read`() throws {
        let folder = try Self.folder(
            Self.line().replacing("GET", with: "PROPFIND2!").replacing("200", with: "999") + "\n"
                + Self.line().replacing("[]", with: #"["!#$%&'*+.^_`|~: \u0001\t\u007f\u0085"]"#) + "\n"
        )
        #expect(Self.failure(folder) == "read: 2")
    }

    @Test(arguments: [
        ("listen: 0.0.0.0:80", 5, "listen"), ("include: /etc/passwd", 5, "include"),
        ("access_log: { file: /tmp/x }", 5, "access_log"), ("store: { path: /tmp/x }", 5, "store"),
        ("<<: { listen: 0.0.0.0:80 }", 5, "<<"),
        ("    credential: { from: /etc/passwd }", 5, "credential"), ("    ca_file: /etc/passwd", 5, "ca_file"),
        ("    proxy: http://a.example", 5, "proxy"), ("    listen: unix:/tmp/x", 5, "listen"),
        ("    <<: { credential: { from: /etc/passwd } }", 5, "<<"), ("    origin: pass", 5, "origin"),
    ])
    func `keys that only the user's own config may have are refused with their line`(
        key: String,
        line: Int,
        name: String
    ) throws {
        let folder = try Self.folder("", manifest: Self.manifest + key + "\n")
        #expect(Self.failure(folder).hasPrefix("recording.yaml:\(line): \"\(name)\" is not allowed in a recording"))
        // Reading it in order to record again, too.
        #expect(throws: RecordingError.self) { try RecordingReplacement(RecordingFolder(folder.path)) }
    }

    @Test func `the keys that a recording's manifest is written with are read back`() throws {
        let yaml = """
            upstreams:
              api:
                url: https://api.example.com
                prefix: /a
                principal: [auto]
                context: [Accept]
                shared: false
                cookies: drop
                cors: [http://localhost:3000]
                rewrite_links: true
                hosts: [larder.internal]
                models: { User: { identity: id } }
                routes: [{ path: "users/*", model: User }]
                errors: [{ path: "**", model: User }]
            models: {}
            routes: []
            errors: []
            """
        let source = TemporaryFolder()
        let path = try source.write(yaml, to: "larder.yaml")
        let settings = ConfigFile.read(path, environment: [:])
        #expect(settings.errors.isEmpty, "\(settings.errors)")
        let config = ConfigFile.portable(path, settings.settings, environment: [:])
        for key in ["prefix", "principal", "context", "cors", "hosts", "models", "routes", "errors"] {
            #expect(config.contains("\(key):"))
        }
        let folder = TemporaryFolder()
        let writer = try RecordingWriter(RecordingFolder(folder.path), config: config, recorded: 0)
        #expect(try RecordingManifest.read(writer.folder).config.contains("https://api.example.com"))
    }

    @Test func `a manifest whose aliases stand for too much is refused with its line`() throws {
        let bomb = (1...9).map {
            "b\($0): &b\($0) [\(Array(repeating: "*b\($0 - 1)", count: 9).joined(separator: ","))]\n"
        }
        let manifest = "b0: &b0 [x]\n" + bomb.joined() + "? *b9\n: 1\n" + Self.manifest
        #expect(Self.failure(try Self.folder("", manifest: manifest)).hasPrefix("recording.yaml:6: the aliases"))
    }

    @Test func `only regular files are read, without waiting`() throws {
        let folder = try Self.folder(Self.line(body: "bodies/1.json") + "\n")
        mkfifo(folder.file("bodies/1.json"), 0o600)
        #expect(Self.failure(folder) == "exchanges.jsonl:1: the body bodies/1.json is not a regular file")
        for name in ["exchanges.jsonl", "recording.yaml"] {
            let folder = try Self.folder(Self.line() + "\n")
            unlink(folder.file(name))
            mkfifo(folder.file(name), 0o600)
            #expect(Self.failure(folder) == "\(name): this is not a regular file")
            unlink(folder.file(name))
            symlink("/dev/zero", folder.file(name))
            #expect(Self.failure(folder).hasPrefix("\(name): "))
        }
    }

    @Test func `an unusually spelled line is read as the JSON decoder reads it`() throws {
        let odd =
            #"{"upstream":"api","credential":null,"request":{"method":"G\u0045T","target":"\/x","fields":null},"#
            + #""more":[1,{"a":2}],"response":{"status":200.0,"fields":["A: \u00e9"],"body":null}}"#
        #expect(RecordedExchange(line: Array(odd.utf8)) == nil)
        let folder = try Self.folder(odd + "\n" + Self.line("/\u{1F600}") + "\n")
        let read = try RecordingContents(RecordingFolder(folder.path)).exchanges
        #expect(read[0] == (try JSONDecoder().decode(RecordedExchange.self, from: Data(odd.utf8))))
        #expect(read[0].request.method == "GET" && read[0].response.fields == ["A: é"])
        #expect(read[1].request.target == "/\u{1F600}")
    }

    @Test func `a line as Larder writes it is read without the JSON decoder`() throws {
        let exchange = RecordedExchange(
            upstream: "api",
            credential: 2,
            session: "test_a.py::test_b",
            arrivalTime: "2026-01-05T10:00:00.000Z",
            request: .init(method: "GET", target: "/a?b=\"c\"", fields: ["Accept: \\é"], body: "bodies/1.json"),
            response: .init(status: 404, fields: ["A: b", "C: "], body: "bodies/2.json", delay: 250)
        )
        #expect(RecordedExchange(line: exchange.line) == exchange)
        var bare = exchange
        (bare.credential, bare.session, bare.arrivalTime) = (nil, nil, nil)
        (bare.request.fields, bare.request.body, bare.response.body, bare.response.delay) = (nil, nil, nil, nil)
        #expect(RecordedExchange(line: bare.line) == bare)
    }

    @Test func `two exchanges of a recording may share a body file`() throws {
        let line = Self.line(body: "bodies/1.json") + "\n"
        #expect(Self.failure(try Self.folder(line + line, bodies: ["1.json": "{}"])) == "read: 2")
    }

    @Test(arguments: [
        ("upstreams: {}\n", "recording.yaml: the file names no format; a recording of this version has \"format: 2\""),
        ("format: next\n", "recording.yaml: format: \"next\" is not a version; write 2"),
        (
            "format: 3\n",
            "recording.yaml: the recording has format 3, and this Larder reads up to 2; use a newer Larder"
        ),
    ])
    func `a recording of another version is refused`(manifest: String, message: String) throws {
        #expect(Self.failure(try Self.folder("", manifest: manifest)) == message)
    }

    @Test func `a folder without a recording is refused, and the error says how to make one`() throws {
        let folder = TemporaryFolder()
        #expect(
            Self.failure(folder).contains("there is no recording (no recording.yaml); make one with `larder record")
        )
    }

    @Test func `a folder that cannot be read is refused with the reason`() throws {
        let folder = TemporaryFolder()
        symlink("loop", folder.file("loop"))
        let failure = #expect(throws: RecordingError.self) {
            try RecordingContents(RecordingFolder(folder.file("loop")))
        }
        #expect(failure?.reason == "Too many levels of symbolic links")
    }

    @Test func `a recording without its file of exchanges is damaged, not empty`() throws {
        let folder = try Self.folder("")
        #expect(Self.failure(folder) == "read: 0" && !RecordingFolder(folder.path).exists)
        unlink(folder.file("exchanges.jsonl"))
        #expect(Self.failure(folder).hasPrefix("exchanges.jsonl: the file is missing; put it back"))
        #expect(RecordingFolder(folder.path).exists)
    }

    @Test func `new body files are numbered above the highest, whatever was deleted`() throws {
        let folder = try Self.folder(Self.line() + "\n", bodies: ["000041.json": "{}"])
        let writer = try RecordingWriter(RecordingFolder(folder.path), config: "", recorded: 0)
        let exchange = RecordedExchange(
            upstream: "api",
            request: .init(method: "GET", target: "/y", fields: []),
            response: .init(status: 200, fields: ["Content-Type: text/csv"])
        )
        try writer.append(exchange, requestBody: [], responseBody: [1])
        #expect(folder.bytes("bodies/000042.csv") == [1])
        let recording = try RecordingContents(RecordingFolder(folder.path))
        #expect(recording.exchanges.last?.response.body == "bodies/000042.csv")
    }

    @Test(arguments: [1, 2])
    func `compact JSON is indented in its file, but not in a recording of an older format`(format: Int) throws {
        let body = #"{"id":1,"tags":["a b",{}]}"#
        let manifest = Self.manifest.replacing("format: 1", with: "format: \(format)")
        let folder = try Self.folder(Self.line() + "\n", manifest: manifest)
        let writer = try RecordingWriter(RecordingFolder(folder.path), config: "", recorded: 0)
        let exchange = RecordedExchange(
            upstream: "api",
            request: .init(method: "POST", target: "/y", fields: ["Content-Type: application/json"]),
            response: .init(status: 200, fields: ["Content-Type: application/json"])
        )
        try writer.append(exchange, requestBody: Array("[1, 2]".utf8), responseBody: Array(body.utf8))

        let recording = try RecordingContents(RecordingFolder(folder.path))
        let written = try #require(recording.exchanges.last)
        // White space of its own is kept.
        #expect(written.request.body == "bodies/000002.request.json")
        let name = format == 1 ? "bodies/000002.json" : "bodies/000002.indented.json"
        #expect(written.response.body == name)
        let text = "{\n  \"id\": 1,\n  \"tags\": [\n    \"a b\",\n    {}\n  ]\n}\n"
        #expect(folder.bytes(name) == Array((format == 1 ? body : text).utf8))
        #expect(try recording.folder.body(name) == Array(body.utf8))

        // A secret that is found later leaves the layout.
        try writer.rewrite { bytes, fields in
            fields == nil ? bytes : Array(String(decoding: bytes, as: UTF8.self).replacing("a b", with: "c").utf8)
        }
        #expect(try recording.folder.body(name) == Array(body.replacing("a b", with: "c").utf8))
        #expect(folder.bytes(name).contains(0x0A) == (format == 2))
    }

    @Test func `a hundred thousand exchanges are read`() throws {
        let line =
            #"{"request":{"fields":["Accept: application/json","User-Agent: test"],"method":"GET","target":"/N"},"#
            + #""response":{"fields":["Content-Type: application/json","ETag: \"a\""],"status":200},"#
            + #""time":"2026-01-05T10:00:00.000Z","upstream":"api"}"#
        var text = ""
        for number in 0..<100_000 { text += line.replacing("/N", with: "/\(number)") + "\n" }
        let folder = try Self.folder(text)
        let recording = try RecordingContents(RecordingFolder(folder.path))
        #expect(recording.exchanges.count == 100_000)
        #expect(recording.exchanges[99_999].request.target == "/99999")
    }
}
