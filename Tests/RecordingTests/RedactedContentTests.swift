import Foundation
import Settings
import TestSupport
import Testing

@testable import HTTPSemantics
@testable import Proxy
@testable import Recording
@testable import Upstream

/// Secrets in all forms of content, found by their names and by their values.
@Suite struct RedactedContentTests {
    static func upstream(_ yaml: String = "") throws -> ProxiedUpstream {
        let text = "upstreams: { api: { url: \"https://api.example.com\" } }\n\(yaml)"
        let file = ConfigFile.parse(text, file: "test", environment: [:])
        try #require(file.diagnostics.isEmpty)
        return ProxiedUpstream(try CompiledUpstream(file.settings.upstreams[0]))
    }

    static func redact(
        target: String = "/x",
        _ request: Fields = Fields(),
        _ requestBody: [UInt8] = [],
        response: Fields = Fields(),
        _ body: [UInt8] = []
    ) throws -> WholeExchange {
        var exchange = WholeExchange(
            method: "POST",
            target: target,
            requestFields: request,
            requestBody: requestBody,
            response: .init(fields: response, body: body)
        )
        try Redactor(numbers: true).redact(&exchange, of: try upstream(), route: "/x")
        return exchange
    }

    private static func request(_ type: String?, _ body: String) throws -> String {
        let fields = type.map { Fields([Field("Content-Type", $0)]) } ?? Fields()
        return String(decoding: try redact(fields, Array(body.utf8)).requestBody, as: UTF8.self)
    }

    private static func response(_ type: String?, _ body: String) throws -> String {
        let fields = type.map { Fields([Field("Content-Type", $0)]) } ?? Fields()
        return String(decoding: try redact(response: fields, Array(body.utf8)).response.body, as: UTF8.self)
    }

    static let form = "application/x-www-form-urlencoded"

    // MARK: By name

    @Test(
        arguments: [
            (
                form, "grant_type=authorization_code&code=abc&code_verifier=v1v1v1v1v1",
                "grant_type=authorization_code&code=REDACTED-1&code_verifier=REDACTED-2"
            ),
            (nil, "password=hunter2hunter2&a=b", "password=REDACTED-1&a=b"),
            (nil, "client_secret=hunter2hunter2", "client_secret=REDACTED-1"),
            ("text/plain", "user=a&password=hunter2%26hunter2\n", "user=a&password=REDACTED-1\n"),
            (form, #"{"password":"hunter2hunter2","n":1}"#, #"{"password":"REDACTED-1","n":1}"#),
            (
                nil, #"{"grant_type":"authorization_code","code":"abcd"}"#,
                #"{"grant_type":"authorization_code","code":"REDACTED-1"}"#
            ),
            (
                form, "grant_type=refresh_token&token_type_hint=x&refresh_token=abc",
                "grant_type=refresh_token&token_type_hint=x&refresh_token=REDACTED-1"
            ),
            (nil, #"{"code":"DE","country":"Germany"}"#, #"{"code":"DE","country":"Germany"}"#),
            (form, "code=DE&page=2", "code=DE&page=2"),
            (
                form, "payload=%7B%22password%22%3A%22hunter2+hunter2%22%7D&b=1",
                "payload=%7B%22password%22%3A%22REDACTED-1%22%7D&b=1"
            ),
            (nil, #"{"form":"a=1&password=hunter2hunter2"}"#, #"{"form":"a=1&password=REDACTED-1"}"#),
            (
                nil, #"{"json":"{\"password\":\"hunter2hunter2\",\"pin\":1}"}"#,
                #"{"json":"{\"password\":\"REDACTED-1\",\"pin\":1}"}"#
            ),
            (nil, #"{"json":"{\"password\":1234}"}"#, #"{"json":"{\"password\":\"REDACTED-1\"}"}"#),
            (
                nil, #"{"url":"https:\/\/x\/?a=1\u0026access_token=hunter2hunter2\u0026b=2"}"#,
                #"{"url":"https:\/\/x\/?a=1\u0026access_token=REDACTED-1\u0026b=2"}"#
            ),
            (
                nil, #"{"auth":{"user":"me","password":"hunter2hunter2"},"token":["one-one-one",2],"on":true}"#,
                #"{"auth":{"user":"REDACTED-1","password":"REDACTED-2"},"token":["REDACTED-3","REDACTED-4"],"on":true}"#
            ),
            (
                "application/x-ndjson", "{\"password\":\"hunter2hunter2\"}\n{\"password\":\"hunter2hunter2\"}\n",
                "{\"password\":\"REDACTED-1\"}\n{\"password\":\"REDACTED-1\"}\n"
            ),
        ] as [(String?, String, String)]
    )
    func `secrets in requests are redacted by name`(_ type: String?, _ body: String, _ expected: String) throws {
        #expect(try Self.request(type, body) == expected)
    }

    @Test(
        arguments: [
            (
                form, "access_token=gho_16C7e42F292c&scope=repo&token_type=bearer",
                "access_token=REDACTED-1&scope=repo&token_type=bearer"
            ),
            (
                "text/html", "oauth_token=aaaaaaaaaa&oauth_token_secret=bbbbbbbbbb&screen_name=x",
                "oauth_token=REDACTED-1&oauth_token_secret=REDACTED-2&screen_name=x"
            ),
            (
                "application/x-ndjson", "{\"access_token\":\"first\"}\n\n{\"n\":1}\n{\"id_token\":\"second\"}",
                "{\"access_token\":\"REDACTED-1\"}\n\n{\"n\":1}\n{\"id_token\":\"REDACTED-2\"}"
            ),
            ("application/json", "\u{FEFF}{\"access_token\":\"first\"}", "\u{FEFF}{\"access_token\":\"REDACTED-1\"}"),
            (
                "text/event-stream", "event: a\ndata: {\"access_token\":\"first\"}\n\ndata: {\"n\":1}\n\n",
                "event: a\ndata: {\"access_token\":\"REDACTED-1\"}\n\ndata: {\"n\":1}\n\n"
            ),
            (
                "text/javascript", "/**/cb({\"access_token\":\"first\", \"expires_in\": 1});",
                "/**/cb({\"access_token\":\"REDACTED-1\", \"expires_in\": 1});"
            ),
            ("application/json", ")]}'\n{\"refreshToken\" : \"a\\\"b\"}", ")]}'\n{\"refreshToken\" : \"REDACTED-1\"}"),
            (
                "application/json-seq", "\u{1E}{\"access_token\":\"first\"}\n",
                "\u{1E}{\"access_token\":\"REDACTED-1\"}\n"
            ),
            (
                "application/json",
                #"{"token":"kept-as-it-is","next":"https://u:pass-pass@x/?api_key=k1k1k1k1k1#access_token=t"}"#,
                #"{"token":"kept-as-it-is","next":"https://REDACTED-2@x/?api_key=REDACTED-3#access_token=REDACTED-4"}"#
            ),
        ] as [(String?, String, String)]
    )
    func `tokens in responses are redacted by name`(_ type: String?, _ body: String, _ expected: String) throws {
        #expect(try Self.response(type, body) == expected)
    }

    @Test func `parts of multipart bodies are searched in any coding, also when nested`() throws {
        let folded = Data(#"{"password":"hunter2hunter2"}"#.utf8).base64EncodedString()
        let body = [
            "--b", #"Content-Disposition: form-data; name="password""#, "", "hunter2hunter2",
            "--b", #"Content-Disposition: form-data; name="j"; filename="j.json""#, "Content-Type: application/json",
            "Content-Transfer-Encoding: base64", "", folded,
            "--b", "Content-Type: multipart/mixed; boundary=\"c d\"", "", "--c d", "Content-Type: \(Self.form)", "",
            "client_secret=other-secret", "--c d--", "",
            "--b", "Content-Type: application/http", "", "GET /x?access_token=hunter2hunter2 HTTP/1.1",
            "Authorization: Bearer third-secret", "", "",
            "--b", "Content-Transfer-Encoding: quoted-printable", "", "password=3Dhunter2hun=", "ter2=20",
            "--b--", "",
        ].joined(separator: "\r\n")
        for type in ["multipart/form-data; boundary=b", nil] {
            let result = try Self.request(type, body)
            #expect(!result.contains("hunter2") && !result.contains("other-secret") && !result.contains("third-secret"))
            #expect(!result.contains(folded))
            #expect(result.contains("name=\"password\"\r\n\r\nREDACTED-1\r\n--b"))
            #expect(result.contains(Data(#"{"password":"REDACTED-1"}"#.utf8).base64EncodedString()))
            #expect(result.contains("client_secret=REDACTED-2\r\n--c d--"))
            #expect(result.contains("Authorization: Bearer REDACTED-3\r\n"))
        }
    }

    @Test(arguments: [
        ["gzip"], ["x-gzip"], ["deflate"], ["br"], ["zstd"], ["gzip", "gzip"], ["br", "deflate"],
    ])
    func `coded content is searched decoded, and written back with the same codings`(_ codings: [String]) throws {
        var body = Array(#"{"password":"hunter2hunter2"}"#.utf8)
        for coding in codings { body = try #require(EncodedBody.encode(body, coding: coding, like: [])) }
        let fields: Fields = ["Content-Encoding": codings.joined(separator: ", "), "Content-Type": "application/json"]
        let exchange = try Self.redact(
            fields,
            body,
            response: ["Content-Encoding": codings.joined(separator: ",")],
            body
        )
        #expect(DecodedBody.decode(exchange.requestBody, fields) == Array(#"{"password":"REDACTED-1"}"#.utf8))
        // A response's password is known from the request.
        #expect(DecodedBody.decode(exchange.response.body, fields) == Array(#"{"password":"REDACTED-1"}"#.utf8))
    }

    @Test func `a body without secrets keeps its bytes`() throws {
        let body =
            try #require(EncodedBody.encode(Array("nothing".utf8), coding: "gzip", like: [])) + [0x1F, 0x8B, 8, 0]
        let gzip = try #require(EncodedBody.encode(Array("nothing".utf8), coding: "gzip", like: []))
        #expect(try Self.redact(["Content-Encoding": "gzip"], gzip).requestBody == gzip)
        // A file that is damaged is bytes.
        #expect(try Self.redact(["Content-Type": "application/gzip"], body).requestBody == body)
    }

    @Test(arguments: ["compress", "gzip", "gzip, aws-chunked"])
    func `a body with an unknown or broken coding cannot be recorded`(_ coding: String) throws {
        #expect(throws: UndecodableContent.self) { try Self.redact(["Content-Encoding": coding], Array("abc".utf8)) }
        #expect(throws: UndecodableContent.self) {
            try Self.redact(response: ["Content-Encoding": coding], Array("abc".utf8))
        }
        #expect(try Self.redact(response: ["Content-Encoding": coding]).response.body == [])
    }

    @Test(
        arguments: [
            (String.Encoding.utf16LittleEndian, "utf-16le", false), (.utf16BigEndian, "utf-16be", false),
            (.utf16LittleEndian, "utf-16", true), (.utf16BigEndian, "UTF-16", true), (.utf16LittleEndian, "", true),
            (.utf16LittleEndian, "", false), (.utf32LittleEndian, "utf-32", true), (.utf32BigEndian, "", false),
            (.isoLatin1, "iso-8859-1", false), (.utf8, "utf-16", false),
        ] as [(String.Encoding, String, Bool)]
    )
    func `text in any charset is searched, and keeps its charset`(
        _ encoding: String.Encoding,
        _ charset: String,
        _ hasMark: Bool
    ) throws {
        let mark = hasMark ? "\u{FEFF}" : ""
        let text = "\(mark){\"é\":\"ü\",\"password\":\"hunter2hunter2\"}"
        let type = charset.isEmpty ? "application/json" : "application/json; charset=\(charset)"
        let body = try #require(text.data(using: encoding))
        let exchange = try Self.redact(["Content-Type": type], Array(body), response: [:], Array(body))
        let expected = text.replacing("hunter2hunter2", with: "REDACTED-1")
        #expect(String(data: Data(exchange.requestBody), encoding: encoding) == expected)
        #expect(String(data: Data(exchange.response.body), encoding: encoding) == expected)
    }

    @Test func `a compressed file is searched, also in Base64 within JSON`() throws {
        let file = try #require(
            EncodedBody.encode(Array(#"{"password":"hunter2hunter2"}"#.utf8), coding: "gzip", like: [])
        )
        let body = #"{"file":"\#(Data(file).base64EncodedString())"}"#
        let inner = try Self.request(nil, body).dropFirst(9).dropLast(2)
        let data = try #require(Data(base64Encoded: String(inner)))
        #expect(
            DecodedBody.decode(Array(data), coding: "gzip", limit: 1_000) == Array(#"{"password":"REDACTED-1"}"#.utf8)
        )
        let alone = try Self.redact(["Content-Type": "application/octet-stream"], file).requestBody
        #expect(DecodedBody.decode(alone, coding: "gzip", limit: 1_000) == Array(#"{"password":"REDACTED-1"}"#.utf8))
    }

    @Test(
        arguments: [
            (nil, "a=x y&password=hunter2", "a=x y&password=REDACTED-1"),
            (nil, "name=\"x\"&password=hunter2 and more&b=1", "name=\"x\"&password=REDACTED-1&b=1"),
            (nil, #"payload={"a":"b"}&password=hunter2"#, #"payload={"a":"b"}&password=REDACTED-1"#),
            (
                nil, #"a=1&payload={"url":"http://x/?a=1&b=2","password":"hunter2"}"#,
                #"a=1&payload={"url":"http://x/?a=1&b=2","password":"REDACTED-1"}"#
            ),
            (nil, "\r\npassword=hunter2&a=b", "\r\npassword=REDACTED-1&a=b"),
            (form, "\r\ncode=abc&grant_type=x", "\r\ncode=REDACTED-1&grant_type=x"),
            ("text/plain", "a=b c\r\npassword=hunter2\r\n", "a=b c\r\npassword=REDACTED-1\r\n"),
            (form, "ticket=ST-1-abc&service=s", "ticket=REDACTED-1&service=s"),
            (form, "SAMLResponse=abc&RelayState=x", "SAMLResponse=REDACTED-1&RelayState=x"),
            (form, "wa=x&wresult=abc", "wa=x&wresult=REDACTED-1"), (form, "user=a&pin=4821", "user=a&pin=REDACTED-1"),
            (form, "pin=560001&city=B", "pin=560001&city=B"), (form, "code=DE&state=CA", "code=DE&state=CA"),
            (nil, #"{"pin":"4821"}"#, #"{"pin":"REDACTED-1"}"#), (nil, #"{"pin":4821}"#, #"{"pin":4821}"#),
            (nil, #"{"pin":"560001","city":"B"}"#, #"{"pin":"560001","city":"B"}"#),
            (
                nil, #"[{"op":"replace","path":"/user/password","value":"hunter2"}]"#,
                #"[{"op":"replace","path":"/user/password","value":"REDACTED-1"}]"#
            ),
            (nil, #"{"value":["hunter2"],"name":"password"}"#, #"{"value":["REDACTED-1"],"name":"password"}"#),
            (
                nil, #"{"op":"add","path":"/password","value":{"a":"hunter2"}}"#,
                #"{"op":"add","path":"/password","value":{"a":"REDACTED-1"}}"#
            ),
            (nil, #"[["user","me"],["password","hunter2"]]"#, #"[["user","me"],["password","REDACTED-1"]]"#),
            (nil, #"{"fields":["password","email"]}"#, #"{"fields":["password","email"]}"#),
            (nil, #"[["password","email","name"]]"#, #"[["password","email","name"]]"#),
            (nil, #"{"name":"code","value":"DE","state":"CA"}"#, #"{"name":"code","value":"DE","state":"CA"}"#),
        ] as [(String?, String, String)]
    )
    func `secrets in unusual forms of requests are redacted by name, and other data stays`(
        _ type: String?,
        _ body: String,
        _ expected: String
    ) throws {
        #expect(try Self.request(type, body) == expected)
    }

    @Test(
        arguments: [
            (
                "application/json", #"{"code":"SplxlOBeZQQYbYSWxSbIA","state":"xyz"}"#,
                #"{"code":"REDACTED-1","state":"xyz"}"#
            ),
            ("application/json", #"{"code":"DE","state":"CA"}"#, #"{"code":"DE","state":"CA"}"#),
            ("application/json", #"{"pin":"4821"}"#, #"{"pin":"4821"}"#),
            (
                "application/json", #"{"kty":"EC","d":"X4cTteJYgn4FYPsXB8rdXix5vwsg"}"#,
                #"{"kty":"EC","d":"REDACTED-1"}"#
            ),
            (
                "text/event-stream", "data: {\"access_token\":\r\ndata:  \"first\"}\r\n\r\n",
                "data: {\"access_token\":\r\ndata:  \"REDACTED-1\"}\r\n\r\n"
            ),
            (nil, "access_token=abc&scope=a b", "access_token=REDACTED-1&scope=a b"),
            (nil, "A=1\npassword=hunter2hunter2\n", "A=1\npassword=hunter2hunter2\n"),
        ] as [(String?, String, String)]
    )
    func `secrets in unusual forms of responses are redacted by name, and other data stays`(
        _ type: String?,
        _ body: String,
        _ expected: String
    ) throws {
        #expect(try Self.response(type, body) == expected)
    }

    @Test(arguments: ["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
    func `private keys are redacted wherever they occur`(_ label: String) throws {
        let secret = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
        let key = "-----BEGIN \(label)-----\n\(secret)\nabc=\n-----END \(label)-----\n"
        let json = String(decoding: try JSONEncoder().encode(["a": key]), as: UTF8.self)
        let coded = Data(key.utf8).base64EncodedString()
        let escaped = try #require(key.addingPercentEncoding(withAllowedCharacters: .alphanumerics))
        let bodies = [
            key, json, "a=\(escaped)&b=1", "a=\(escaped.replacing("%20", with: "+"))", "a: |\n  \(key)",
            "<a>\(key)</a>",
            #"{"a":"\#(coded)"}"#, String(key.prefix(60)),
        ]
        for body in bodies {
            for result in [try Self.request(nil, body), try Self.response(nil, body)] {
                #expect(result.contains("REDACTED-1") && !result.contains(secret.prefix(20)), "\(result)")
            }
        }
        #expect(
            try Self.response("application/pdf", key) == "-----BEGIN \(label)-----REDACTED-1-----END \(label)-----\n"
        )
        #expect(!(try Self.redact(target: "/x?a=\(escaped)").target.contains(secret)))
        let fields = try Self.redact(["X-Pem": key.replacing("\n", with: " ")]).requestFields
        #expect(fields?.recorded == ["X-Pem: -----BEGIN \(label)-----REDACTED-1-----END \(label)----- "])
        let publicKey = key.replacing("PRIVATE", with: "PUBLIC")
        #expect(try Self.request(nil, publicKey) == publicKey)
    }

    @Test(arguments: [
        "name*=UTF-8''password", "name*=utf-8'en'pass%77ord", "name*0=\"pass\"; name*1=\"word\"", "name=\"pass\\word\"",
        "name=password",
    ])
    func `a secret part is found however its name is spelled, also without a final delimiter`(_ name: String)
        throws
    {
        let part = "--b\r\nContent-Disposition: form-data; \(name)\r\n\r\n"
        for type in ["multipart/form-data; boundary=b", "multipart/form-data; boundary=other", nil] {
            for end in ["", "\r\n", "\r\n--b", "\r\n--b--\r\n"] {
                #expect(try Self.request(type, part + "hunter2" + end) == part + "REDACTED-1" + end)
            }
        }
    }

    @Test(arguments: ["gzip", "deflate", "zstd"])
    func `a compressed body that no field announces is searched`(_ coding: String) throws {
        let body = try #require(
            EncodedBody.encode(Array(#"{"password":"hunter2hunter2"}"#.utf8), coding: coding, like: [])
        )
        for padding in [[], [0, 0]] as [[UInt8]] where coding != "zstd" || padding.isEmpty {
            let result = try Self.redact(["Content-Type": "application/json"], body + padding).requestBody
            #expect(
                DecodedBody.decode(result, coding: coding, limit: 100) == Array(#"{"password":"REDACTED-1"}"#.utf8)
            )
        }
    }

    // MARK: For a person to judge

    @Test(arguments: [
        ("<a><password>hunter2hunter2</password></a>", ["password"]),
        (#"<s:Token type="x">abcdefghijkl</s:Token>"#, ["Token"]),
        (#"<input type="hidden" name="api_key" value="abcdefghijkl">"#, ["api_key"]),
        (#"<label for="password">Password needed</label>"#, []),
        (#"{"query":"mutation { login(user: \"me\", password: \"hunter2hunter2\") { id } }"}"#, ["password"]),
        ("API_SECRET=abcdefghijkl\nOTHER=x", ["API_SECRET"]), ("see ghp_abcdefghijklmnopqrst and", ["ghp_…"]),
        (#"{"data":"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"}"#, ["eyJ…"]),
        (#"{"page_token":"abcdefghijkl"}"#, []),
        ("Authorization: Bearer abcdefghijkl", ["Authorization"]),
    ])
    func `secret-looking values in other text are listed, not changed`(_ body: String, _ expected: [String]) throws {
        let redactor = Redactor(numbers: true)
        var exchange = WholeExchange(method: "GET", target: "/x", requestFields: Fields())
        exchange.response.body = Array(body.utf8)
        let before = exchange
        try redactor.redact(&exchange, of: try Self.upstream(), route: "/x")
        #expect(exchange == before)
        #expect(redactor.lookalikes.found.keys.sorted() == expected)
    }

    @Test(
        arguments: [
            ("/bot123456789:AAEhBOweik9ai2o01bSg-Tnv/getMe", "the path /…/getMe"),
            ("/v1/token/abc123abc123", "the path /v1/token/…"),
            ("/hooks/T024BE7LD/B0A1/XXXXyyyyZZZZ1111aaaaBBBB", "the path /hooks/T024BE7LD/B0A1/…"), ("/users/1", nil),
            ("/commits/2d1e47dc2d1e47dc2d1e47dc2d1e47dc2d1e47dc", nil),
            ("/x/3F2504E0-4F89-11D3-9A0C-0305E82C3301", nil),
        ] as [(String, String?)]
    )
    func `paths with tokens are listed, without the token`(_ path: String, _ expected: String?) throws {
        let redactor = Redactor(numbers: true)
        var exchange = WholeExchange(method: "GET", target: path, requestFields: Fields())
        try redactor.redact(&exchange, of: try Self.upstream(), route: path)
        #expect(redactor.lookalikes.found.keys.sorted() == (expected.map { [$0] } ?? []))
    }
}
