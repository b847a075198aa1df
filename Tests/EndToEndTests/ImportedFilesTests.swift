import Foundation
import TestSupport
import Testing

/// Files that other tools have made, as recordings: Ruby's VCR, Playwright, WireMock.
@Suite(.scripts, .serialized) struct ImportedFilesTests {
    static let hasRuby =
        (try? TestProcess.run("ruby", ["-e", "require 'vcr'; require 'webmock'; require 'multi_json'"])) != nil
    static let chromium = "/usr/bin/chromium"
    static let playwright = PythonEnvironment("playwright", packages: ["playwright"], imports: ["playwright"])
    static let hasBrowser = access(chromium, X_OK) == 0 && playwright.isInstalled

    private static let image: [UInt8] = [0x89, 0x50, 0, 255, 254, 13, 10]

    private static let rubySession = """
        require "net/http"
        require "json"
        uri = URI(ARGV[0])
        session = lambda do
          Net::HTTP.start(uri.host, uri.port) do |http|
            [1, 2].each do |page|
              response = http.get("/things?b=x&page=#{page}", "Authorization" => "Bearer ruby-secret-token")
              puts response.code, response.body
            end
            2.times { puts http.post("/post", {a: [1, 2]}.to_json, "Content-Type" => "application/json").body }
            puts http.get("/image").body.unpack1("H*")
          end
        end
        """

    @Test(.enabled(if: hasRuby, "Debian's ruby-vcr is not installed"), arguments: ["yaml", "json"])
    func `a cassette that Ruby's VCR has made is replayed`(form: String) throws {
        let count = Monitor(0)
        let origin = try Origin { request in
            switch request.path {
            case "/post": .json("{\"made\":\(count.withLock { $0 += 1; return $0 })}", status: 201)
            case "/image": .body(Self.image, ["Content-Type": "image/png"])
            default: .json(#"{"page":"é \#(request.target.suffix(1))"}"#)
            }
        }
        let folder = TemporaryFolder()
        let recorder =
            Self.rubySession + """

                require "vcr"
                VCR.configure do |config|
                  config.hook_into :webmock
                  config.cassette_library_dir = ARGV[1]
                end
                options = {serialize_with: ARGV[2].to_sym, preserve_exact_body_bytes: ARGV[2] == "json", allow_playback_repeats: false}
                VCR.use_cassette("session", options) { session.call }
                """
        let recorded = try TestProcess.run("ruby", ["-e", recorder, origin.url, folder.path, form])
        origin.stop()
        let name = try #require(folder.names.first)
        let recording = folder.file("recording")
        #expect(try Larder.run(["import", folder.file(name), recording]).end == .exited(0))
        #expect(try !String(contentsOfFile: "\(recording)/exchanges.jsonl", encoding: .utf8).contains("ruby-secret"))
        let larder = try Larder.replaying(recording, "--strict")
        #expect(try TestProcess.run("ruby", ["-e", Self.rubySession + "\nsession.call", larder.url]) == recorded)
    }

    @Test(
        .enabled(if: hasBrowser, "Debian's chromium or Playwright is not installed"),
        arguments: ["embed", "attach"]
    )
    func `a HAR that Playwright has made with chromium is replayed`(form: String) throws {
        let page = """
            <html><body><img src="/image"><script>
            fetch("/data?x=1").then(response => response.json()).then(async data => {
              const headers = {"Content-Type": "application/json", "Authorization": "Bearer har-secret-token"};
              await fetch("/post", {method: "POST", headers, body: JSON.stringify({a: [1, 2]})});
              document.title = data.name;
            })
            </script></body></html>
            """
        let origin = try Origin { request in
            switch request.path {
            case "/": .body(Array(page.utf8), ["Content-Type": "text/html; charset=utf-8"])
            case "/image": .body(Self.image, ["Content-Type": "image/png"])
            case "/data":
                .body(
                    gzipStored(Array(#"{"name":"geladen é"}"#.utf8)),
                    ["Content-Type": "application/json", "Content-Encoding": "gzip"]
                )
            case "/post": .json(#"{"done":true}"#, status: 201)
            default: .json("{}", status: 404)
            }
        }
        let folder = TemporaryFolder()
        let script = """
            import sys
            from playwright.sync_api import sync_playwright
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=sys.argv[4], args=["--no-sandbox"])
                context = browser.new_context(record_har_path=sys.argv[2], record_har_content=sys.argv[3])
                page = context.new_page()
                page.goto(sys.argv[1] + "/")
                page.wait_for_function("document.title != ''")
                print(page.title())
                context.close()
                browser.close()
            """
        let har = folder.file("page.har")
        #expect(try Self.playwright.run(script, origin.url, har, form, Self.chromium) == "geladen é\n")
        origin.stop()
        let recording = folder.file("recording")
        #expect(try Larder.run(["import", har, recording]).end == .exited(0))
        for name in try FileManager.default.subpathsOfDirectory(atPath: recording) {
            let bytes = FileManager.default.contents(atPath: "\(recording)/\(name)") ?? Data()
            #expect(!bytes.contains(Data("har-secret-token".utf8)), "\(name)")
        }
        // The browser sees the same page in a replay.
        let larder = try Larder.replaying(recording)
        let again = folder.file("again.har")
        #expect(try Self.playwright.run(script, larder.url, again, form, Self.chromium) == "geladen é\n")
        // It also asks for an icon, and for the image once more without naming a type.
        for request in ["GET /", "GET /data?x=1", "POST /post"] {
            #expect(!larder.log.split(separator: "\n").contains { $0 == "  \(request)" }, "\(larder.log)")
        }
    }

    @Test func `the mappings that WireMock's recorder writes are replayed in the order of its scenarios`() throws {
        let folder = TemporaryFolder()
        for name in ["mappings", "__files"] {
            try FileManager.default.createDirectory(atPath: folder.file(name), withIntermediateDirectories: true)
        }
        _ = try folder.write(#"[{"id":1}]"#, to: "__files/users-a51b.json")
        func mapping(_ request: String, _ response: String, _ more: String = "") -> String {
            #"{"id":"4ec6","name":"users","request":{\#(request)},"response":{\#(response)},"uuid":"4ec6","persistent":true\#(more),"insertionIndex":4}"#
        }
        let get = #""url":"/users?page=1","method":"GET","headers":{"Accept":{"equalTo":"application/json"}}"#
        let headers = #""headers":{"Content-Type":"application/json","Vary":["Accept","Origin"]}"#
        let scenario = #","scenarioName":"scenario-1-users","requiredScenarioState":"#
        let files = [
            // Names are random: the second response comes first in the folder.
            "users-0a.json": mapping(
                get,
                #""status":200,"body":"[]",\#(headers)"#,
                scenario + #""scenario-1-users-2""#
            ),
            "users-9f.json": mapping(
                get,
                #""status":200,"bodyFileName":"users-a51b.json",\#(headers)"#,
                scenario + #""Started","newScenarioState":"scenario-1-users-2""#
            ),
            "users-post.json": mapping(
                #""url":"/users","method":"POST","bodyPatterns":[{"equalToJson":"{\"a\":1}","ignoreArrayOrder":true,"ignoreExtraElements":true}]"#,
                #""status":201,"base64Body":"AP/+","headers":{"Content-Type":"application/octet-stream"}"#
            ),
        ]
        for (name, text) in files { _ = try folder.write(text, to: "mappings/\(name)") }
        let recording = folder.file("recording")
        let refused = try Larder.run(["import", folder.path, recording])
        #expect(refused.end == .exited(1) && refused.errors.contains("add --origin"), "\(refused.errors)")
        let imported = try Larder.run(["import", folder.path, recording, "--origin", "https://api.example.com"])
        #expect(imported.end == .exited(0))
        #expect(imported.output.contains("left out: fields that a request must have"), "\(imported.output)")
        let larder = try Larder.replaying(recording)
        #expect(try larder.get("/users?page=1").text == #"[{"id":1}]"#)
        #expect(try larder.get("/users?page=1").text == "[]")
        let made = try larder.request("POST", "/users", ["Content-Type": "application/json"], body: #"{ "a": 1.0 }"#)
        #expect(made.status == 201 && made.body == [0, 255, 254])
    }
}
