import Foundation
import TestSupport
import Testing

@testable import HTTPSemantics
@testable import Recording

/// Files of other tools, as far as they are understood.
@Suite struct ForeignRecordingTests {
    private static func read(_ text: String, _ name: String = "file") throws -> ForeignRecording {
        let folder = TemporaryFolder()
        return try ForeignRecording.read(try folder.write(text, to: name))
    }

    @Test func `a HAR's bodies are taken as they are, and what is no response is listed`() throws {
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
        #expect(file.exchanges[0].time == 1_767_607_200.5)
        #expect(file.exchanges[1].requestBody == Array("{}".utf8))
        #expect(file.origins.map(\.text) == ["https://a.example", "https://b.example"])
        #expect(file.losses.map(\.text) == ["requests without a response", "the pages of the HAR"])
        #expect(ForeignRecording.target(of: file.exchanges[0].target) == "/x?y=1")
        #expect(ForeignRecording.target(of: "https://b.example?q") == "/?q")
    }

    @Test func `cassettes of Ruby's VCR are read, coded bodies among them`() throws {
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

    @Test func `mappings of WireMock are read, and what a recording cannot do is listed`() throws {
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
        #expect(file.losses.count == 3)
    }

    @Test(arguments: [
        ("[1]", "this is neither a HAR, nor a VCR cassette, nor a mapping of WireMock"),
        ("just text", "this is neither a HAR, nor a VCR cassette, nor a mapping of WireMock"),
        (#"{"log":{}}"#, "the HAR has no log.entries"),
        (#"{"log":{"entries":[{}]}}"#, "entry 1 lacks a request's url or method, or a response's status"),
        ("interactions: [{}]", "interaction 1 lacks a uri, a method or a status"),
        (#"{"request":{}}"#, "a mapping has a request and a response"),
        (
            #"{"request":{"url":"/x"},"response":{"bodyFileName":"../../etc/passwd"}}"#,
            "bodyFileName: \"../../etc/passwd\" leads out of __files"
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
}
