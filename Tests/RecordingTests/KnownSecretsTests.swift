import Foundation
import Proxy
import TestSupport
import Testing

@testable import HTTPSemantics
@testable import Recording
@testable import Upstream

/// Secrets whose value is known: they are replaced wherever they occur, and replays do not need them.
@Suite struct KnownSecretsTests {
    private static let form = RedactedContentTests.form

    @Test func `a known token is replaced in all spellings, in codings and in opaque bytes`() throws {
        let token = "tok+en/with=signs"
        let gzip = try #require(EncodedBody.encode(Array("x \(token)".utf8), coding: "gzip", like: []))
        let fields: Fields = ["Authorization": "Bearer \(token)"]
        func body(_ body: [UInt8], _ response: Fields = Fields()) throws -> [UInt8] {
            try RedactedContentTests.redact(fields, response: response, body).response.body
        }
        #expect(try body(Array(#"{"a":"tok\u002Ben\/with=signs"}"#.utf8)) == Array(#"{"a":"REDACTED-1"}"#.utf8))
        #expect(
            try body([0x89, 0xFF] + token.utf8 + [0], ["Content-Type": "image/png"]) == [0x89, 0xFF] + "REDACTED-1".utf8
                + [0]
        )
        let coded = try body(gzip, ["Content-Encoding": "gzip"])
        #expect(DecodedBody.decode(coded, coding: "gzip", limit: 100) == Array("x REDACTED-1".utf8))
        let inner = try body(Array(#"{"a":"\#(Data(gzip).base64EncodedString())"}"#.utf8))
        let file = try #require(Data(base64Encoded: String(decoding: inner.dropFirst(6).dropLast(2), as: UTF8.self)))
        #expect(DecodedBody.decode(Array(file), coding: "gzip", limit: 100) == Array("x REDACTED-1".utf8))
    }

    @Test func `a known token is replaced as a whole, even if it contains a secret-looking name`() throws {
        let token = "tokEN+ab/cd=ef-5ecret"
        let spelled = #"{"c":"tokEN%2bab%2fcd=ef-5ecret"}"#
        let fields = Fields([Field("X-Note", token), Field("Authorization", "Bearer \(token)")])
        let exchange = try RedactedContentTests.redact(
            target: "/x",
            fields,
            Array(spelled.utf8),
            response: ["X-Echo": token],
            Array(spelled.utf8)
        )
        #expect(exchange.requestFields?.recorded == ["X-Note: REDACTED-1", "Authorization: Bearer REDACTED-1"])
        #expect(exchange.response.fields.recorded == ["X-Echo: REDACTED-1"])
        for body in [exchange.requestBody, exchange.response.body] {
            #expect(body == Array(#"{"c":"REDACTED-1"}"#.utf8))
        }
    }

    @Test func `a known number becomes a string in JSON`() throws {
        let body = try RedactedContentTests.redact(
            ["X-Api-Key": "1234567890"],
            response: [:],
            Array(#"{"id":1234567890,"s":"a1234567890","n":"\n"}"#.utf8)
        )
        #expect(
            String(decoding: body.response.body, as: UTF8.self) == #"{"id":"REDACTED-1","s":"aREDACTED-1","n":"\n"}"#
        )
    }

    @Test(
        arguments: [
            (nil, #"{"password":"SECRET","a":1}"#), (form, "client_secret=SECRET&a=1"),
            (nil, "client_secret=SECRET&a=1"),
            (form, #"payload={"password":"SECRET"}&b=2"#), (nil, #"{"j":"{\"password\":\"SECRET\"}"}"#),
            (
                "multipart/form-data; boundary=q",
                "--q\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nSECRET\r\n--q--\r\n"
            ),
            (form, "grant_type=x&code=SECRET"), (nil, #"{"password":["SECRET",1]}"#),
        ] as [(String?, String)],
        ["", "gzip", "br"]
    )
    func `a request has the same key with any secret, live or recorded`(
        _ form: (type: String?, body: String),
        _ coding: String
    ) throws {
        let upstream = try RedactedContentTests.upstream()
        func key(_ secret: String, isRecorded: Bool) throws -> RequestKey {
            var body = Array(form.body.replacing("SECRET", with: secret).utf8)
            var fields: Fields = ["Authorization": "Bearer \(secret)-bearer", "X-Note": "n"]
            if let type = form.type { fields.append("Content-Type", type) }
            if !coding.isEmpty {
                fields.append("Content-Encoding", coding)
                body = try #require(EncodedBody.encode(body, coding: coding, like: []))
            }
            var exchange = WholeExchange(
                method: "POST",
                target: "/cb?code=\(secret)-1a2b3c4d5e&state=s&next=\(secret)",
                requestFields: fields,
                requestBody: body
            )
            if isRecorded { try Redactor(numbers: true, first: 7).redact(&exchange, of: upstream, route: "/cb") }
            exchange.target = exchange.target.replacing(/next=.*/, with: "")
            let incoming = try #require(
                IncomingRequest(recorded: "POST", exchange.target, fields: exchange.requestFields ?? Fields(), upstream)
            )
            return RequestKey(incoming, body: exchange.requestBody)
        }
        let recorded = try key("hunter2hunter2", isRecorded: true)
        let (live, other) = (try key("hunter2hunter2", isRecorded: false), try key("another-one", isRecorded: false))
        let texts = [recorded, live, other].map { $0.text(credential: nil, withConditions: true) }
        #expect(texts[0] == texts[1])
        #expect(texts[1] == texts[2])
        #expect(!texts[0].contains("hunter2"))
    }
}
