import Foundation
import TestSupport
import Testing

@testable import HTTPSemantics
@testable import Proxy
@testable import Recording
@testable import Settings

/// Files of other tools, as far as they are understood.
@Suite struct ForeignRecordingTests {
    private static func read(_ text: String, _ name: String = "file") throws -> ForeignRecording {
        let folder = TemporaryFolder()
        return try #require(try ForeignRecording.read(try folder.write(text, to: name)).first)
    }

    @Test func `a HAR's bodies are imported unchanged, and entries without a response are listed`() throws {
        let har = #"""
            {"log":{"version":"1.2","pages":[],"entries":[
            {"startedDateTime":"2026-01-05T10:00:00.500Z","request":{"method":"GET","url":"https://a.example/x?y=1#z",
             "headers":[{"name":":authority","value":"a.example"},{"name":"accept","value":"*/*"}]},
             "response":{"status":200,"headers":[{"name":"content-encoding","value":"gzip"},{"name":"set-cookie","value":"a=1\nb=2"}],
             "content":{"size":3,"mimeType":"image/png","text":"AAEC","encoding":"base64"}}},
            {"startedDateTime":"2026-01-05T10:00:01Z","request":{"method":"POST","url":"https://b.example/","headers":[],
             "postData":{"mimeType":"application/json","text":"{}"}},"response":{"status":201,"headers":[],"content":{"size":0}}},
            {"startedDateTime":"x","request":{"method":"GET","url":"https://b.example/","headers":[]},
             "response":{"status":0,"headers":[],"content":{}}}]}}
            """#
        let file = try Self.read(har)
        #expect(file.exchanges.count == 2)
        #expect(file.exchanges[0].response.body == [0, 1, 2])
        #expect(file.exchanges[0].requestFields?.recorded == ["accept: */*"])
        #expect(file.exchanges[0].response.fields.recorded == ["set-cookie: a=1", "set-cookie: b=2"])
        #expect(file.exchanges[0].arrivalTime == 1_767_607_200.5)
        #expect(file.exchanges[1].requestBody == Array("{}".utf8))
        #expect(
            file.exchanges.map { ForeignRecording.origin(of: $0.target) } == ["https://a.example", "https://b.example"]
        )
        #expect(file.losses.kinds.map(\.text) == ["requests without a response", "the pages of the HAR"])
        #expect(ForeignRecording.target(of: file.exchanges[0].target) == "/x?y=1")
        #expect(ForeignRecording.target(of: "https://b.example?q") == "/?q")
    }

    @Test func `cassettes of Ruby's VCR are read, also with coded bodies`() throws {
        let gzip = "H4sIAAAAAAAAA6tWKkktLlGyUlAqS8wpTVWqBQC7vJGNFAAAAA=="
        let file = try Self.read(
            """
            ---
            http_interactions:
            - request:
                method: post
                uri: https://a.example/x
                body: { encoding: UTF-8, string: '{"a":1}' }
                headers: { Accept: ["*/*"], Content-Type: [application/json] }
              response:
                status: { code: 200, message: OK }
                headers: { Content-Type: [text/plain], Content-Length: ['2'] }
                body: { encoding: ASCII-8BIT, string: !binary aGk= }
                http_version:
              recorded_at: Mon, 05 Jan 2026 10:00:00 GMT
            - request: { method: get, uri: "https://a.example/y", body: { encoding: US-ASCII, string: '' }, headers: {} }
              response:
                status: { code: 404, message: Not Found }
                headers: { Content-Encoding: [gzip] }
                body: { encoding: UTF-8, base64_string: \(gzip) }
            recorded_with: VCR 6.0.0
            """
        )
        #expect(file.exchanges.map(\.method) == ["POST", "GET"])
        #expect(file.exchanges[0].requestBody == Array(#"{"a":1}"#.utf8))
        #expect(file.exchanges[0].response.body == Array("hi".utf8))
        #expect(file.exchanges[0].response.fields.recorded == ["Content-Type: text/plain"])
        #expect(file.exchanges[1].response.status == 404)
        #expect(!file.exchanges[1].response.fields.contains("content-encoding"))
    }

    @Test func `WireMock's mappings are read, and those that a recording cannot express are listed`() throws {
        let file = try Self.read(
            #"""
            {"mappings":[
            {"request":{"method":"GET","urlPath":"/x","queryParameters":{"a":{"equalTo":"1 2"}}},
             "response":{"status":200,"jsonBody":{"b":1},"headers":{"Content-Type":"application/json"}}},
            {"request":{"method":"POST","url":"/y","bodyPatterns":[{"equalToJson":{"c":1}}]},"response":{"status":201,"base64Body":"AAE="}},
            {"request":{"method":"GET","urlPattern":"/z.*"},"response":{"status":200}},
            {"request":{"url":"/w"},"response":{"fault":"EMPTY_RESPONSE"}},
            {"scenarioName":"s","request":{"method":"GET","url":"/v","headers":{"A":{"matches":".*"}}},"response":{"body":"v"}}]}
            """#
        )
        #expect(file.exchanges.map(\.target) == ["/x?a=1%202", "/y", "/v"])
        #expect(file.exchanges.allSatisfy { $0.requestFields == nil })
        #expect(file.exchanges[0].response.body == Array(#"{"b":1}"#.utf8))
        #expect(file.exchanges[1].requestBody == Array(#"{"c":1}"#.utf8) && file.exchanges[1].response.body == [0, 1])
        #expect(file.losses.kinds.count == 3)
    }

    @Test(arguments: [
        ("[1]", "this is neither a HAR, nor a VCR cassette, nor a mapping of WireMock"),
        ("just text", "this is neither a HAR, nor a VCR cassette, nor a mapping of WireMock"),
        (#"{"log":{}}"#, "the HAR has no log.entries"),
        (
            #"{"request":{"url":"/x"},"response":{"bodyFileName":"../../etc/passwd"}}"#,
            "bodyFileName: \"../../etc/passwd\": this name leads out of the folder"
        ),
        (
            #"{"request":{"url":"/x"},"response":{"bodyFileName":"/etc/passwd"}}"#,
            "bodyFileName: \"/etc/passwd\": this name leads out of the folder"
        ),
        (
            "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
                + "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n"
                + "f: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ninteractions: *f",
            "the aliases up to here stand for too much; write out what you mean"
        ),
        (
            String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000),
            "mappings and lists are nested more than 200 deep here"
        ),
        (
            #"{"log":{"entries":[{"request":{"url":"https://a.example/s3cret"#,
            "the file is cut short: it ends within what begins in line 1; make it again"
        ),
        ("{\n\"interactions\": [\n{}\n", "the file is cut short: it ends within what begins in line 3; make it again"),
        (
            #"{"request":{"url":"/x"},"response":{"body":"s3cret \ud83d"}}"#,
            #"the file has text that is not Unicode, such as half of a surrogate pair (\ud83d without \ude00), or numbers beyond "#
                + "all limits; make it again, or replace them"
        ),
    ])
    func `a file that cannot be read is refused`(text: String, message: String) {
        do {
            _ = try Self.read(text)
            Issue.record("it was read")
        } catch let error as RecordingError {
            #expect(error.reason == message)
        } catch {
            Issue.record(error)
        }
    }

    @Test func `files of an import are not read through links, nor from pipes`() throws {
        let (folder, elsewhere) = (TemporaryFolder(), TemporaryFolder())
        try elsewhere.write("s3cret", to: "key")
        for name in ["mappings", "__files"] { mkdir(folder.file(name), 0o755) }
        symlink(elsewhere.file("key"), folder.file("__files/link"))
        symlink(elsewhere.path, folder.file("__files/sub"))
        mkfifo(folder.file("__files/pipe"), 0o600)
        symlink(elsewhere.file("key"), folder.file("body.json"))
        func reason(_ read: () throws -> [ForeignRecording]) -> String {
            do {
                let bodies = try read().flatMap(\.exchanges).map { String(decoding: $0.response.body, as: UTF8.self) }
                return "read: \(bodies)"
            } catch { return (error as? RecordingError)?.reason ?? "\(error)" }
        }
        for (name, message) in [
            ("link", "this is a symbolic link; put the file itself there"),
            ("sub/key", "\"sub\" is a symbolic link; put the file itself there"),
            ("pipe", "this is not a regular file"), ("a\\u0000b", "this name leads out of the folder"),
            ("sub/../../x", "this name leads out of the folder"),
        ] {
            let mapping = #"{"request":{"url":"/x"},"response":{"bodyFileName":"\#(name)"}}"#
            try folder.write(mapping, to: "mappings/one.json")
            for path in [folder.path, folder.file("mappings/one.json")] {
                #expect(reason { try ForeignRecording.read(path) }.hasSuffix(message))
            }
        }
        let har =
            #"{"log":{"entries":[{"request":{"method":"GET","url":"https://a.example/"},"response":{"status":200,"#
            + #""content":{"_file":"body.json"}}}]}}"#
        let path = try folder.write(har, to: "session.har")
        #expect(
            reason { try ForeignRecording.read(path) }.hasSuffix("this is a symbolic link; put the file itself there")
        )
        unlink(folder.file("body.json"))
        try folder.write("fine", to: "body.json")
        #expect(reason { try ForeignRecording.read(path) } == #"read: ["fine"]"#)
        // The mappings themselves.
        let stubs = TemporaryFolder()
        symlink(folder.file("mappings"), stubs.file("mappings"))
        #expect(reason { try ForeignRecording.read(stubs.path) }.hasPrefix("this is not a folder"))
        unlink(stubs.file("mappings"))
        mkdir(stubs.file("mappings"), 0o755)
        symlink(elsewhere.file("key"), stubs.file("mappings/a.json"))
        #expect(reason { try ForeignRecording.read(stubs.path) }.hasPrefix("this is a symbolic link"))
        mkfifo(folder.file("cassette.yaml"), 0o600)
        #expect(reason { try ForeignRecording.read(folder.file("cassette.yaml")) } == "this is not a regular file")
    }

    /// Statuses that no response has, as another tool may write them.
    private static let oddStatuses = ["200.5", "1e300", "null", "-1", "true", "[]"]

    @Test func `an odd entry of a HAR is left out and listed, and the others are imported`() throws {
        func entry(_ path: String, status: String = "200", text: String = "x") -> String {
            #"{"request":{"method":"GET","url":"https://a.example/\#(path)"},"response":{"status":\#(status),"content":{"text":"\#(text)"}}}"#
        }
        let odd = (Self.oddStatuses + [#""200""#]).map { entry("odd", status: $0) } + ["null", "7", "{}"]
        let read = try Self.read(
            #"{"log":{"entries":[\#(([entry("one")] + odd + [entry("two")]).joined(separator: ","))]}}"#
        )
        #expect(read.exchanges.map(\.target) == ["https://a.example/one", "https://a.example/two"])
        #expect(read.losses.kinds.map(\.count).reduce(0, +) == odd.count)
        // A browser that cuts a text may cut a pair of surrogates; a number may be beyond all limits.
        let halves = [
            entry("half", text: #"a\ud83d"#), entry("half", text: #"\ude00"#), entry("big", status: "1e999"),
            entry("pair", text: #"\ud83d\ude00"#),
        ]
        let cut = try Self.read(
            #"{"log":{"pages":[{"title":"\ud800"}],"entries":[\#(halves.joined(separator: ","))]}}"#
        )
        #expect(cut.exchanges.map(\.target) == ["https://a.example/pair"])
        #expect(cut.exchanges.first?.response.body == Array("\u{1F600}".utf8))
        #expect(cut.losses.kinds.map(\.text) == ["exchanges that are not Unicode, or have numbers beyond all limits"])
        #expect(cut.losses.kinds.map(\.count) == [3])
    }

    @Test(arguments: [false, true])
    func `an odd interaction of a cassette is left out and listed, and the others are imported`(isJSON: Bool) throws {
        func interaction(_ path: String, status: String = "200", text: String = #""x""#) -> String {
            #"{"request":{"method":"get","uri":"https://a.example/\#(path)","headers":{},"body":""},"#
                + #""response":{"status":{"code":\#(status),"message":""},"headers":{},"body":{"string":\#(text)}}}"#
        }
        // Numbers that are no status are left out when the exchanges are checked.
        let odd = Self.oddStatuses.filter { !["-1", "true"].contains($0) }.map { interaction("odd", status: $0) }
        let halves = [interaction("half", text: #""a\ud83d""#), interaction("half", text: #""\uDE00b""#)]
        // Where `\u` is no escape, it is text.
        let plain = isJSON ? #""\\ud83d""# : #"'\ud83d'"#
        let whole = [interaction("pair", text: #""\ud83d\ude00""#), interaction("text", text: plain)]
        let list = (odd + halves + ["{}"] + whole).joined(separator: ",")
        let read = try Self.read(isJSON ? #"{"interactions":[\#(list)]}"# : "interactions: [\(list)]")
        #expect(read.exchanges.map(\.target) == ["https://a.example/pair", "https://a.example/text"])
        #expect(
            read.exchanges.map { String(decoding: $0.response.body, as: UTF8.self) } == ["\u{1F600}", #"\ud83d"#]
        )
        #expect(read.losses.kinds.map(\.count).reduce(0, +) == odd.count + 3)
    }

    @Test func `an odd mapping of WireMock is left out and listed, and the others are imported`() throws {
        func mapping(_ path: String, status: String) -> String {
            #"{"request":{"url":"/\#(path)"},"response":{"status":\#(status)}}"#
        }
        let odd = ["200.5", "1e300", #""200""#].map { mapping("odd", status: $0) } + ["null", #"{"request":{}}"#]
        let read = try Self.read(#"{"mappings":[\#((odd + [mapping("one", status: "201")]).joined(separator: ","))]}"#)
        #expect(read.exchanges.map(\.target) == ["/one"] && read.exchanges.first?.response.status == 201)
        #expect(read.losses.kinds.filter { $0.text.hasPrefix("mappings") }.map(\.count).reduce(0, +) == odd.count)
    }

    @Test func `a file without a usable exchange is refused, with the reasons`() throws {
        let folder = TemporaryFolder()
        let path = try folder.write(#"{"log":{"entries":[{},{}]}}"#, to: "session.har")
        let target = RecordingFolder(folder.file("recording"))
        let error = #expect(throws: RecordingError.self) {
            try RecordingImport(try ForeignRecording.read(path), origins: [], into: target)
        }
        let words =
            "left out: entries without a request's url or method, or a response's status as an integer (2, first in "
            + "\(path): entry 1)"
        #expect(error?.reason.hasSuffix(words) == true)
        #expect(!target.exists)
    }

    @Test func `exchanges that HTTP cannot express are left out and listed, and the rest can be replayed`() throws {
        func entry(_ method: String, _ target: String, _ fields: String = "", status: Int = 200) -> String {
            #"{"startedDateTime":"2026-01-05T10:00:00Z","request":{"method":"\#(method)","url":"https://a.example\#(target)","#
                + #""headers":[{"name":"X Bad","value":"a"}]},"response":{"status":\#(status),"headers":[\#(fields)],"content":{}}}"#
        }
        let entries = [
            entry("GET", "/1"), entry("M-SEARCH2", "/2", status: 999), entry("G T", "/3"), entry("", "/4"),
            entry("GET\\r\\nX: y", "/5"), entry("GET", "/6 7"), entry("GET", "/8\\u0000"), entry("GET", "/9\\r\\nA: b"),
            entry("GET", "/%zz"), entry("GET", "/..;/x"), entry("GET", "/%2e%2e/x"), entry("GET", "/%00"),
            entry("GET", "/\\u00e9?\\u202e"), entry("GET", "/10", #"{"name":"a\u0000b","value":"x"}"#),
            entry("GET", "/11", #"{"name":"A","value":"x\ry"},{"name":"","value":"x"},{"name":"B","value":"c"}"#),
            entry("HEAD", "/12", #"{"name":"Content-Length","value":"-5"}"#), entry("GET", "/13", status: -1),
            entry("GET", "/14", status: 1000), entry("GET", "/15", status: 199),
        ]
        let folder = TemporaryFolder()
        let path = try folder.write(#"{"log":{"entries":[\#(entries.joined(separator: ","))]}}"#, to: "session.har")
        let target = RecordingFolder(folder.file("recording"))
        let result = try RecordingImport(try ForeignRecording.read(path), origins: [], into: target)
        let recording = try RecordingContents(target)
        #expect(
            recording.exchanges.map(\.title) == [
                "GET /1", "M-SEARCH2 /2", "GET /%C3%A9?%E2%80%AE", "GET /10", "GET /11", "HEAD /12",
            ]
        )
        #expect(recording.exchanges.count == result.count)
        #expect(recording.exchanges[4].response.fields == ["A: x y", "B: c"])
        #expect(recording.exchanges[5].response.fields == [])
        let losses = Dictionary(uniqueKeysWithValues: result.losses.kinds.map { ($0.text, $0.count) })
        #expect(losses["exchanges whose method HTTP does not allow"] == 3)
        #expect(losses["exchanges whose target HTTP does not allow"] == 7)
        #expect(losses["responses that are not final, or not HTTP"] == 3)
        let fields = result.losses.kinds.first { $0.text == "fields that HTTP does not allow" }
        #expect(fields?.first == "\(path): entry 1: field \"X Bad\"")
        let breaks = result.losses.kinds.first { $0.text.hasPrefix("line breaks in fields") }
        #expect(breaks?.count == 1 && breaks?.first == "\(path): entry 15: field \"A\"")
        let file = ConfigFile.parse(recording.manifest.config, file: "recording.yaml", environment: [:])
        let upstream = ProxiedUpstream(try CompiledUpstream(file.settings.upstreams[0]))
        // It indexes every exchange, and throws for one that it cannot.
        _ = try Replayer(recording, upstreams: [upstream], isStrict: false, clock: 2_000_000_000, memory: 0)
    }

    @Test func `a cassette in which values repeat is read`() throws {
        let file = try Self.read(
            """
            interactions:
            - request: { method: get, uri: "https://a.example/x", headers: &1 { Accept: ["*/*"] } }
              response: { status: { code: 200 }, headers: {}, body: { string: hi } }
            - request: !ruby/object:VCR::Request { method: get, uri: "https://a.example/y", headers: *1 }
              response: { status: { code: 200 }, headers: {}, body: { string: ho } }
            """
        )
        #expect(file.exchanges.map { $0.requestFields?.recorded } == [["Accept: */*"], ["Accept: */*"]])
    }

    private static func har(_ path: String, credential: String = "") -> String {
        let field = credential.isEmpty ? "" : #"{"name":"Authorization","value":"Bearer \#(credential)"}"#
        return
            #"{"log":{"entries":[{"request":{"method":"GET","url":"https://a.example\#(path)","headers":[\#(field)]},"#
            + #""response":{"status":200,"headers":[],"content":{"text":"x"}}}]}}"#
    }

    @Test func `files and folders are imported together, in their order, and added to a recording`() throws {
        let folder = TemporaryFolder()
        let one = try folder.write(Self.har("/one", credential: "token-number-1"), to: "one.har")
        mkdir(folder.file("more"), 0o755)
        mkdir(folder.file("more/b"), 0o755)
        try folder.write(Self.har("/three"), to: "more/b/x.json")
        try folder.write(
            "interactions: [{request: {method: get, uri: https://a.example/two}, response: {status: {code: 200}}}]",
            to: "more/a.yaml"
        )
        try folder.write("nothing to import", to: "more/README.md")
        let target = RecordingFolder(folder.file("recording"))
        let files = try [one, folder.file("more")].flatMap { try ForeignRecording.read($0) }
        #expect(try RecordingImport(files, origins: [], into: target).count == 3)
        #expect(throws: RecordingError.self) { try RecordingImport(files, origins: [], into: target) }
        func titles() throws -> [String] { try RecordingContents(target).exchanges.map(\.title) }
        #expect(try titles() == ["GET /one", "GET /two", "GET /three"])

        let later = try folder.write(Self.har("/four", credential: "token-number-2"), to: "later.har")
        #expect(try RecordingImport(try ForeignRecording.read(later), addedTo: target).count == 1)
        #expect(try titles() == ["GET /one", "GET /two", "GET /three", "GET /four"])
        let added = try #require(try RecordingContents(target).exchanges.last)
        // Each file counts its own credentials: a replay need not know all of them.
        #expect(added.credential == 1 && added.request.fields == ["Authorization: Bearer REDACTED-2"])
        // Of another upstream.
        let other = try folder.write(Self.har("/x").replacing("a.example", with: "b.example"), to: "other.har")
        let error = #expect(throws: RecordingError.self) {
            try RecordingImport(try ForeignRecording.read(other), addedTo: target)
        }
        #expect(error?.reason.contains("left out: exchanges with https://b.example (1 in ") == true)
        #expect(try titles().count == 4)
        let empty = TemporaryFolder()
        #expect(throws: RecordingError.self) { try ForeignRecording.read(empty.path) }
    }

    @Test func `the delays of WireMock's mappings are kept`() throws {
        func mapping(_ delay: String) -> String {
            #"{"request":{"url":"/x","method":"GET"},"response":{\#(delay)}}"#
        }
        let delays = [
            #""status":200"#, #""fixedDelayMilliseconds":250"#, #""fixedDelayMilliseconds":1e300"#,
            #""delayDistribution":{"type":"uniform","lower":10,"upper":30}"#,
            #""delayDistribution":{"type":"lognormal","median":80,"sigma":0.4}"#,
            #""chunkedDribbleDelay":{"numberOfChunks":5,"totalDuration":1000},"fixedDelayMilliseconds":1"#,
            #""fixedDelayMilliseconds":-5"#, #""fixedDelayMilliseconds":"often""#,
        ].map(mapping)
        let read = try Self.read(#"{"mappings":[\#(delays.joined(separator: ","))]}"#)
        #expect(read.exchanges.map(\.response.delay) == [nil, 250, 3_600_000, 20, 80, 1001, nil, nil])
        #expect(read.losses.kinds.map(\.count) == [1, 2, 1])
    }
}
