import TestSupport
import Testing

@testable import Recording

/// Bodies of which another tool keeps the text: what comes out is what the server sent.
@Suite struct ForeignTextTests {
    /// Reads a file, and what its first exchange is in a recording.
    private static func imported(_ text: String) throws -> (request: [UInt8], response: [UInt8], losses: [String]) {
        let folder = TemporaryFolder()
        let files = try ForeignRecording.read(try folder.write(text, to: "file"))
        let target = RecordingFolder(folder.file("recording"))
        let result = try RecordingImport(files, origins: [], into: target)
        let recording = try RecordingContents(target)
        let exchange = try #require(recording.exchanges.first)
        return (
            try recording.folder.body(exchange.request.body), try recording.folder.body(exchange.response.body),
            result.losses.kinds.map(\.text)
        )
    }

    private static func har(_ type: String, _ text: String, size: Int?) -> String {
        let count = size.map { ",\"size\":\($0)" } ?? ""
        let bodySize = size.map { ",\"bodySize\":\($0)" } ?? ""
        let headers = #""headers":[{"name":"Content-Type","value":"\#(type)"}]"#
        return
            #"{"log":{"entries":[{"request":{"method":"POST","url":"https://a.example/"\#(bodySize),\#(headers),"#
            + #""postData":{"mimeType":"x/y","text":"\#(text)"}},"#
            + #""response":{"status":200,\#(headers),"content":{"mimeType":"x/y","text":"\#(text)"\#(count)}}}]}}"#
    }

    /// An object after a byte order mark.
    private static let marked: [UInt8] = [0xEF, 0xBB, 0xBF, 0x7B, 0x7D]

    @Test(
        arguments: [
            ("text/plain; charset=ISO-8859-1", "Gr\u{FC}n", nil, [0x47, 0x72, 0xFC, 0x6E]),
            ("text/plain; charset=windows-1252", "5 \u{20AC}", nil, [0x35, 0x20, 0x80]),
            // Browsers read ISO 8859-1 as windows-1252, other programs do not.
            ("text/plain; charset=\\\"iso-8859-1\\\"", "\u{20AC}\\u0080", nil, [0x80, 0x80]),
            ("text/plain", "\u{FC}", nil, [0xC3, 0xBC]), ("text/plain; charset=utf-8", "\u{FC}", 2, [0xC3, 0xBC]),
            // The label was wrong, and the tool knew it.
            ("text/plain; charset=iso-8859-1", "\u{FC}", 2, [0xC3, 0xBC]),
            ("text/plain; charset=iso-8859-1", "\u{FC}", 1, [0xFC]),
            // The byte order mark is there, or the tool has taken it out.
            ("application/json", "\\uFEFF{}", nil, marked), ("application/json", "\u{FEFF}{}", nil, marked),
            ("application/json", "{}", 5, marked),
            ("application/json; charset=utf-8", "{}", 2, [0x7B, 0x7D]),
        ] as [(String, String, Int?, [UInt8])]
    )
    func `the text of a HAR has the bytes of its charset again`(type: String, text: String, size: Int?, bytes: [UInt8])
        throws
    {
        let read = try Self.imported(Self.har(type, text, size: size))
        #expect(read.response == bytes && read.request == bytes)
        #expect(read.losses == [])
    }

    @Test(
        arguments: [
            ("text/plain; charset=shift_jis", "\u{65E5}", nil), ("text/plain; charset=utf-16", "a", nil),
            ("text/plain; charset=iso-8859-1", "\u{65E5}", nil), ("text/plain; charset=iso-8859-1", "a\u{FFFD}", 2),
            ("text/plain; charset=utf-8", "a\u{FFFD}", 2),
        ] as [(String, String, Int?)]
    )
    func `text whose bytes cannot be known is listed`(type: String, text: String, size: Int?) throws {
        let read = try Self.imported(Self.har(type, text, size: size))
        #expect(read.response == Array(text.utf8))
        #expect(read.losses == ["the bytes of bodies, which are UTF-8 now"])
    }

    @Test(
        arguments: [
            (#"{ encoding: ISO-8859-1, string: "Gr\#u{FC}n" }"#, [0x47, 0x72, 0xFC, 0x6E]),
            (#"{ encoding: Windows-1252, string: "\u20AC" }"#, [0x80]),
            (#"{ encoding: UTF-8, string: "\uFEFF{}" }"#, marked),
            (#"{ encoding: ISO-8859-1, base64_string: "/A==" }"#, [0xFC]), ("{ string: \u{FC} }", [0xC3, 0xBC]),
            ("{ string: !!binary /A== }", [0xFC]), ("{ encoding: ASCII-8BIT, string: !binary /A== }", [0xFC]),
            (#""\uFEFF{}""#, marked),
        ] as [(String, [UInt8])]
    )
    func `the text of a cassette has the bytes of its encoding again, whatever the type says`(
        body: String,
        bytes: [UInt8]
    ) throws {
        let cassette = """
            interactions:
            - request: { method: post, uri: "https://a.example/", body: \(body) }
              response:
                status: { code: 200 }
                headers: { Content-Type: ["text/plain; charset=iso-8859-1"] }
                body: \(body)
            """
        let read = try Self.imported(cassette)
        #expect(read.response == bytes && read.request == bytes)
        #expect(read.losses == [])
        let unknown = try Self.imported(cassette.replacing(body, with: #"{ encoding: Shift_JIS, string: "\u65E5" }"#))
        #expect(unknown.losses == ["the bytes of bodies, which are UTF-8 now"])
    }
}
