import Glibc

/// The literal that stands for an object in skeletons and payloads: a JSON string beginning with `\u0001`, such as
/// `"\u0001User:583231"`.
public enum Reference {
    /// The prefix of every reference literal; nothing else in a skeleton or payload begins with it.
    private static let sentinel: StaticString = "\"\\u0001"

    /// The literal for a name, quotes included.
    public static func literal(_ name: ObjectName) -> [UInt8] {
        var literal: [UInt8] = []
        append(name, to: &literal)
        return literal
    }

    static func append(_ name: ObjectName, to output: inout [UInt8]) {
        output.append(contentsOf: UnsafeBufferPointer(start: sentinel.utf8Start, count: sentinel.utf8CodeUnitCount))
        output.append(contentsOf: name.model.utf8)
        output.append(UInt8(ascii: ":"))
        JSONString.appendEscaped(name.identity, to: &output)
        output.append(UInt8(ascii: "\""))
    }

    /// The name in the unescaped content of a reference literal, as SQLite's JSON functions return it; else nil.
    public static func name(inText text: String) -> ObjectName? {
        guard text.utf8.first == 1, let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let model = text[text.utf8.index(after: text.startIndex)..<colon]
        return ObjectName(model: String(model), identity: String(text[text.utf8.index(after: colon)...]))
    }

    /// The names referred to directly in a skeleton or payload, in order.
    public static func names(in payload: [UInt8]) -> [ObjectName] {
        var names: [ObjectName] = []
        forEach(in: payload) { _, name in if let name { names.append(name) } }
        return names
    }

    /// The only object of a skeleton, unless it is the element of a list; nil if there are several, or none.
    public static func root(of skeleton: [UInt8]) -> ObjectName? {
        skeleton.withUnsafeBufferPointer { skeleton in
            guard let only = next(in: skeleton, from: 0), next(in: skeleton, from: only.upperBound) == nil else {
                return nil
            }
            let before = skeleton[..<only.lowerBound].last { $0 > 0x20 }
            return before == nil || before == UInt8(ascii: ":") ? name(at: only, in: skeleton) : nil
        }
    }

    /// The payload with a bare identity in place of every reference.
    ///
    /// `identity` returns the JSON of an identity. If it returns nil, text that reads like an integer is shown as one,
    /// anything else as a string.
    public static func plain(_ payload: [UInt8], identity: (ObjectName) -> [UInt8]? = { _ in nil }) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(payload.count)
        var position = 0
        forEach(in: payload) { range, name in
            output.append(contentsOf: payload[position..<range.lowerBound])
            position = range.upperBound
            guard let name else { return }
            if let known = identity(name) {
                output.append(contentsOf: known)
            } else {
                appendBare(name.identity, asNumber: isInteger(name.identity), to: &output)
            }
        }
        output.append(contentsOf: payload[position...])
        return output
    }

    /// Visits the reference literals of a skeleton or payload in order; one that is damaged has no name.
    private static func forEach(in payload: [UInt8], _ body: (Range<Int>, ObjectName?) -> Void) {
        payload.withUnsafeBufferPointer { payload in
            var position = 0
            while let found = next(in: payload, from: position) {
                body(found, name(at: found, in: payload))
                position = found.upperBound
            }
        }
    }

    static func appendBare(_ identity: String, asNumber: Bool, to output: inout [UInt8]) {
        if asNumber {
            output.append(contentsOf: identity.utf8)
        } else {
            JSONString.append(identity, to: &output)
        }
    }

    /// The bare form of a strict identity, for which numbers and strings differ.
    static func strict(_ identity: String) -> [UInt8] {
        var bare: [UInt8] = []
        let text = Identity.unquoted(identity)
        appendBare(text ?? identity, asNumber: text == nil && JSONBody.isNumber(identity), to: &bare)
        return bare
    }

    /// Whether an identity reads like a JSON integer; strings such as `007` do not.
    static func isInteger(_ identity: String) -> Bool {
        let digits = identity.utf8.first == UInt8(ascii: "-") ? identity.utf8.dropFirst() : identity.utf8[...]
        guard let first = digits.first, digits.count <= 40 else { return false }
        return digits.allSatisfy(\.isDigit) && (first != UInt8(ascii: "0") || identity == "0")
    }

    /// The range of the next reference literal; nil if there is none, or the text is not a payload.
    static func next(in text: UnsafeBufferPointer<UInt8>, from start: Int) -> Range<Int>? {
        guard let base = UnsafeRawPointer(text.baseAddress) else { return nil }
        var position = start + 1
        // The search is for the backslash, which is rarer than the quote before it.
        while position < text.count, let found = memchr(base + position, 0x5C, text.count - position) {
            let quote = UnsafeRawPointer(found) - base - 1
            position = quote + 2
            guard isReference(text, at: quote) else { continue }
            position = quote + sentinel.utf8CodeUnitCount
            while position < text.count, text[position] != UInt8(ascii: "\"") {
                position += text[position] == UInt8(ascii: "\\") ? 2 : 1
            }
            return position < text.count ? quote..<position + 1 : nil
        }
        return nil
    }

    /// The name in the literal at this range.
    static func name(at range: Range<Int>, in text: UnsafeBufferPointer<UInt8>) -> ObjectName? {
        JSONString.text(UnsafeBufferPointer(rebasing: text[range])).flatMap(name(inText:))
    }

    /// Whether a reference literal begins here.
    static func isReference(_ text: UnsafeBufferPointer<UInt8>, at position: Int) -> Bool {
        guard let base = text.baseAddress, position + sentinel.utf8CodeUnitCount <= text.count else { return false }
        return memcmp(base + position, sentinel.utf8Start, sentinel.utf8CodeUnitCount) == 0
    }
}
