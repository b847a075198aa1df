import Testing

@testable import HTTPSemantics
@testable import Larder

/// Text for people, in which names of others can be.
@Suite struct TerminalTests {
    @Test func `control characters are escaped for a terminal, except line ends`() {
        #expect(Terminal.shown("a\u{1B}[2Jb\nc\u{202E}d\u{200B}\0\n") == "a\\x1b[2Jb\nc\\u{202e}d\\u{200b}\\x00\n")
        #expect(Terminal.shown("a\r\nb\r") == "a\\r\nb\\r")
        #expect(Terminal.shown("plain\n  text é") == "plain\n  text é")
    }

    @Test func `JSON escaped for a terminal means the same`() {
        let json = JSONText.object([("na\u{202E}me", .string("a\u{200B}b\u{1B}"))]).text
        let shown = String(decoding: Terminal.fitted(json: json, isTerminal: true), as: UTF8.self)
        #expect(shown == #"{"na\u202eme":"a\u200bb\u001b"}"#)
        #expect(Terminal.fitted(json: json, isTerminal: false) == Array(json.utf8))
    }
}
