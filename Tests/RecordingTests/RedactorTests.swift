import Foundation
import Mapping
import Settings
import TestSupport
import Testing

@testable import HTTPSemantics
@testable import Proxy
@testable import Recording

/// What is taken out of exchanges before they are written.
@Suite struct RedactorTests {
    private static func upstream(_ yaml: String = "") throws -> ProxiedUpstream {
        let text = "upstreams: { api: { url: \"https://api.example.com\" } }\n\(yaml)"
        let file = ConfigFile.parse(text, file: "test", environment: [:])
        try #require(file.diagnostics.isEmpty)
        return ProxiedUpstream(try CompiledUpstream(file.settings.upstreams[0]))
    }

    private static func redact(
        _ upstream: ProxiedUpstream,
        target: String = "/x",
        _ request: [(String, String)] = [],
        _ requestBody: String = "",
        response: [(String, String)] = [],
        body: String = ""
    ) throws -> WholeExchange {
        let redactor = Redactor(numbers: true)
        var exchange = WholeExchange(
            method: "GET",
            target: target,
            requestFields: Fields(request.map { Field($0.0, $0.1) }),
            requestBody: Array(requestBody.utf8),
            response: .init(fields: Fields(response.map { Field($0.0, $0.1) }), body: Array(body.utf8))
        )
        try redactor.redact(&exchange, of: upstream, route: String(target.prefix { $0 != "?" }))
        return exchange
    }

    @Test func `placeholders are numbered by first appearance, and equal values share one`() throws {
        let exchange = try Self.redact(
            try Self.upstream(),
            target: "/x?api_key=first-secret&page=2&access_token=second-secret",
            [
                ("Authorization", "Bearer first-secret"), ("Cookie", "a=third-secret; b=first-secret"),
                ("X-Other", "kept"),
            ],
            response: [("Set-Cookie", "s=fourth-secret; Path=/"), ("Location", "/y?api_key=first-secret&q=1")],
            body: "it says third-secret"
        )
        #expect(exchange.target == "/x?api_key=REDACTED-1&page=2&access_token=REDACTED-2")
        #expect(
            exchange.requestFields?.recorded == [
                "Authorization: Bearer REDACTED-1", "Cookie: a=REDACTED-3; b=REDACTED-1", "X-Other: kept",
            ]
        )
        #expect(
            exchange.response.fields.recorded == [
                "Set-Cookie: s=REDACTED-4; Path=/", "Location: /y?api_key=REDACTED-1&q=1",
            ]
        )
        #expect(String(decoding: exchange.response.body, as: UTF8.self) == "it says REDACTED-3")
    }

    @Test func `exactly the members that a model declares secret are redacted in place`() throws {
        let upstream = try Self.upstream(
            """
            models: { User: { identity: id, secret: [pin, bank.iban] } }
            routes: [{ path: users, model: [User] }]
            """
        )
        let body = #"[ {"id":1, "pin":"0000", "note":"0000", "bank":{"iban":"DE00","name":"b"}}, {"id":2,"pin":null} ]"#
        let exchange = try Self.redact(
            upstream,
            target: "/users",
            response: [("Content-Type", "application/json")],
            body: body
        )
        #expect(
            String(decoding: exchange.response.body, as: UTF8.self)
                == #"[ {"id":1, "pin":"REDACTED-1", "note":"0000", "bank":{"iban":"REDACTED-2","name":"b"}}, {"id":2,"pin":null} ]"#
        )
    }

    @Test func `a Basic password is redacted wherever else it occurs`() throws {
        // user:long-password
        let exchange = try Self.redact(
            try Self.upstream(),
            [("Authorization", "Basic dXNlcjpsb25nLXBhc3N3b3Jk")],
            body: #"{"echo":"long-password","same":"dXNlcjpsb25nLXBhc3N3b3Jk"}"#
        )
        #expect(exchange.requestFields?.recorded == ["Authorization: Basic REDACTED-1"])
        #expect(exchange.response.body == Array(#"{"echo":"REDACTED-2","same":"REDACTED-1"}"#.utf8))
    }

    @Test func `OAuth's forms and tokens are redacted, and so are credentials in URLs`() throws {
        let exchange = try Self.redact(
            try Self.upstream(),
            [("Content-Type", "application/x-www-form-urlencoded")],
            "grant_type=password&password=a%2Fb%2Fc%2Fd%2Fe&client_secret=sssssssss",
            response: [("Location", "https://user:passpass1@example.com/z")],
            body: #"{"access_token":"tok/tok/tok","u":"a\/b\/c\/d\/e","expires_in":1}"#
        )
        #expect(
            String(decoding: exchange.requestBody, as: UTF8.self)
                == "grant_type=password&password=REDACTED-1&client_secret=REDACTED-2"
        )
        #expect(exchange.response.fields.recorded[0].hasSuffix("@example.com/z"))
        #expect(!exchange.response.fields.recorded[0].contains("passpass1"))
        let body = String(decoding: exchange.response.body, as: UTF8.self)
        #expect(body.contains(#""u":"REDACTED-1","expires_in":1"#) && !body.contains("tok/tok"))
    }

    @Test func `a secret-looking value that no model declares is listed, not changed`() throws {
        let redactor = Redactor(numbers: true)
        var exchange = WholeExchange(method: "GET", target: "/x", requestFields: Fields())
        exchange.response.body = Array(
            #"{"webhook_secret":"a-long-value","page_token":"another-value","name":"n"}"#.utf8
        )
        let before = exchange
        try redactor.redact(&exchange, of: try Self.upstream(), route: "/x")
        #expect(exchange == before)
        #expect(redactor.lookalikes.found == ["webhook_secret": 1])
    }

    @Test func `a credential is redacted at once in the exchanges that were written before it appeared`() throws {
        let secret = "late-secret-value"
        let upstream = try Self.upstream()
        let folder = TemporaryFolder()
        let recording = try RecordingWriter(RecordingFolder(folder.path), config: "", recorded: 0)
        let writer = RedactedWriter(recording, upstreams: [upstream])
        func record(_ fields: [Field], body: String) throws {
            let exchange = WholeExchange(
                method: "GET",
                target: "/x",
                requestFields: Fields(fields),
                response: .init(body: Array(body.utf8))
            )
            try writer.append(exchange, of: upstream.name, route: "/x", credential: nil, looksBack: true)
        }
        func filesWithSecret() throws -> [String] {
            try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { name in
                guard let bytes = FileManager.default.contents(atPath: folder.file(name)) else { return false }
                return String(decoding: bytes, as: UTF8.self).contains(secret)
            }
        }
        try record([], body: #"{"note":"\#(secret)"}"#)
        #expect(try filesWithSecret().count == 1)
        // Nothing is closed in between: a crash after the second exchange leaves the files as they are now.
        try record([Field("Authorization", "Bearer \(secret)")], body: "{}")
        #expect(try filesWithSecret() == [])
        #expect(writer.writer.count == 2)
    }
}
