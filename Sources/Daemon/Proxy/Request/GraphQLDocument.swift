/// The kinds of operations in a GraphQL document, found by its grammar (GraphQL specification, §2).
///
/// Whether a word such as `mutation` begins an operation, or stands in a comment, a string, a name or a selection, only the grammar
/// says. What lies within an operation's brackets is checked for its tokens and brackets alone. A document that the grammar does not
/// allow is no document here: what a server makes of it is not known. No recursion; the brackets that are open have a bound.
struct GraphQLDocument: Equatable {
    enum Kind: String { case query, mutation, subscription }

    /// Empty if the document has fragments only.
    private(set) var kinds: Set<Kind> = []

    /// Whether it has operations, and all of them are queries.
    ///
    /// It does not matter which of them the request selects: a server may disagree.
    var onlyReads: Bool { kinds == [.query] }

    /// Reads a document; nil if it is not one, or nested too deep.
    init?(_ text: some Sequence<UInt8>) {
        var lexer = GraphQLLexer(text)
        while true {
            var token = lexer.next()
            if token == .end { return }
            // A description, before a definition that has a word.
            if token == .string {
                token = lexer.next()
                guard case .name = token else { return nil }
            }
            switch token {
            case .mark(UInt8(ascii: "{")):
                kinds.insert(.query)
                guard lexer.skipGroup(token) else { return nil }
            case .name(let word):
                if let kind = Kind(rawValue: String(decoding: word, as: UTF8.self)) {
                    kinds.insert(kind)
                    guard lexer.skipOperation() else { return nil }
                } else {
                    guard word.elementsEqual("fragment".utf8), lexer.skipFragment() else { return nil }
                }
            default: return nil
            }
        }
    }
}

/// The tokens of a GraphQL document, one after the other.
private struct GraphQLLexer {
    enum Token: Equatable {
        case name(ArraySlice<UInt8>)
        /// A punctuator of one character.
        case mark(UInt8)
        case string, other, end
        /// What the grammar does not know; no definition goes on after it.
        case invalid
    }

    /// As deep as JSON may be nested.
    private static let depthLimit = 512

    private let text: [UInt8]
    private var position: Int

    init(_ text: some Sequence<UInt8>) { (self.text, position) = (Array(text), 0) }

    /// The byte at an offset from here, or 0 at the end, where no token can go on.
    private func byte(_ offset: Int = 0) -> UInt8 { position + offset < text.count ? text[position + offset] : 0 }

    // MARK: Definitions

    /// Skips the rest of an operation after the word for its kind: name, variables, directives, selections.
    mutating func skipOperation() -> Bool {
        var token = next()
        if case .name = token { token = next() }
        return skipDirectives(from: skippingArguments(token))
    }

    /// Skips the rest of a fragment after its word: name, type, directives, selections.
    mutating func skipFragment() -> Bool {
        guard case .name(let name) = next(), !name.elementsEqual("on".utf8), case .name(let word) = next(),
            word.elementsEqual("on".utf8), case .name = next()
        else { return false }
        return skipDirectives(from: next())
    }

    /// Skips directives, and the selections after them.
    private mutating func skipDirectives(from first: Token) -> Bool {
        var token = first
        while token == .mark(UInt8(ascii: "@")) {
            guard case .name = next() else { return false }
            token = skippingArguments(next())
        }
        return token == .mark(UInt8(ascii: "{")) && skipGroup(token)
    }

    /// The token itself, or the one after the arguments that it begins.
    private mutating func skippingArguments(_ token: Token) -> Token {
        guard token == .mark(UInt8(ascii: "(")) else { return token }
        return skipGroup(token) ? next() : .invalid
    }

    /// Skips what is between brackets, the first of which has been read.
    mutating func skipGroup(_ open: Token) -> Bool {
        var (expected, token): ([UInt8], Token) = ([], open)
        repeat {
            switch token {
            case .mark(UInt8(ascii: "{")): expected.append(UInt8(ascii: "}"))
            case .mark(UInt8(ascii: "(")): expected.append(UInt8(ascii: ")"))
            case .mark(UInt8(ascii: "[")): expected.append(UInt8(ascii: "]"))
            case .mark(UInt8(ascii: "}")), .mark(UInt8(ascii: ")")), .mark(UInt8(ascii: "]")):
                guard token == .mark(expected.removeLast()) else { return false }
                if expected.isEmpty { return true }
            case .end, .invalid: return false
            default: break
            }
            token = next()
        } while expected.count <= Self.depthLimit
        return false
    }

    // MARK: Tokens

    mutating func next() -> Token {
        skipIgnored()
        guard position < text.count else { return .end }
        switch byte() {
        case UInt8(ascii: "\""): return skipString() ? .string : .invalid
        case UInt8(ascii: "."):
            guard byte(1) == UInt8(ascii: "."), byte(2) == UInt8(ascii: ".") else { return .invalid }
            position += 3
            return .other
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            repeat { position += 1 } while Self.isName(byte()) || [0x2B, 0x2D, 0x2E].contains(byte())
            return .other
        case let first where Self.isName(first):
            let start = position
            repeat { position += 1 } while Self.isName(byte())
            return .name(text[start..<position])
        case let mark where "!$&():=@[]{|}".utf8.contains(mark):
            position += 1
            return .mark(mark)
        default: return .invalid
        }
    }

    private static func isName(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "_") || (byte | 0x20) &- UInt8(ascii: "a") < 26 || byte &- UInt8(ascii: "0") < 10
    }

    /// Skips white space, commas, byte order marks and comments.
    private mutating func skipIgnored() {
        while position < text.count {
            switch byte() {
            case 0x09, 0x0A, 0x0D, 0x20, UInt8(ascii: ","): position += 1
            case 0xEF where byte(1) == 0xBB && byte(2) == 0xBF: position += 3
            case UInt8(ascii: "#"):
                while position < text.count, byte() != 0x0A, byte() != 0x0D { position += 1 }
            default: return
            }
        }
    }

    private mutating func skipString() -> Bool {
        guard isQuoted(at: 0) else { return skipLine() }
        position += 3
        while position < text.count {
            if byte() == UInt8(ascii: "\\"), isQuoted(at: 1) {
                position += 4
            } else if isQuoted(at: 0) {
                position += 3
                return true
            } else {
                position += 1
            }
        }
        return false
    }

    private func isQuoted(at offset: Int) -> Bool {
        (offset..<offset + 3).allSatisfy { byte($0) == UInt8(ascii: "\"") }
    }

    /// Skips a string that must end in its line.
    private mutating func skipLine() -> Bool {
        position += 1
        while position < text.count, byte() != 0x0A, byte() != 0x0D {
            switch byte() {
            case UInt8(ascii: "\""):
                position += 1
                return true
            case UInt8(ascii: "\\"): position += byte(1) == 0x0A || byte(1) == 0x0D ? 1 : 2
            default: position += 1
            }
        }
        return false
    }
}
