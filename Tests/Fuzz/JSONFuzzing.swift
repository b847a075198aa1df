@testable import Mapping

/// A body as JSON: scanner, index and a strict reading agree, and what is taken apart is put together again byte for byte.
enum JSONFuzzing: FuzzTarget {
    static let seeds: [[UInt8]] = (0..<40 as Range<UInt64>).map { seed in
        var generator = BodyGenerator(seed: seed, isHostile: seed % 2 == 0)
        return [UInt8(seed), UInt8(seed % 12)] + Array(generator.body(isList: seed % 12 % 3 == 1).utf8)
    }

    static func run(_ input: ArraySlice<UInt8>) {
        var reader = InputReader(input)
        let models = FuzzModels.all[reader.byte() % FuzzModels.all.count]
        let rule = FuzzModels.rule(reader.byte())
        let body = Array(reader.rest)
        let isWhole = JSONBody.isWhole(body)
        let index: JSONIndex?
        let isTooDeep: Bool
        do throws(JSONIndex.Failure) {
            (index, isTooDeep) = (try JSONIndex(body), false)
        } catch {
            (index, isTooDeep) = (nil, error == .tooDeep)
        }
        require(isWhole == (index != nil), "the scanner and the index disagree")
        if !isTooDeep { require(isWhole == StrictJSON.isText(body), "the scanner and a strict reading disagree") }
        require(JSONBody.isMalformed(body) == !(isWhole || isTooDeep), "JSON is malformed, or the reverse")
        if let index { check(index, body) }
        guard case .objects(let parts) = Decomposer(models: models).decompose(body, as: rule, in: FuzzModels.context)
        else { return }
        require(isWhole, "the parts of a body that is not JSON")
        require(parts.showsSecret || parts.recomposes(to: body), "the parts do not recompose to the body")
        for occurrence in parts.occurrences {
            require(JSONSlice(occurrence.payload) != nil, "a payload is not JSON")
        }
    }

    private static func check(_ index: JSONIndex, _ body: [UInt8]) {
        var end = 0
        for node in index.nodes.indices {
            let range = index.range(node)
            require(!range.isEmpty && range.upperBound <= body.count && range.lowerBound >= end, "the node \(node)")
            end = range.lowerBound
        }
        guard let value = JSONSlice(body) else { fatalError("the slice of JSON is nil") }
        require(value.isEqual(to: index.slice(0)), "a value differs from itself")
        if index.nodes.count < 64 { for node in index.nodes.indices { _ = index.pointer(to: node) } }
        _ = Reference.names(in: body)
        _ = Reference.plain(body)
    }
}

/// RFC 8259 as it is written, slow and simple; strings may contain bytes that are not UTF-8.
private struct StrictJSON {
    private var rest: ArraySlice<UInt8>

    static func isText(_ text: [UInt8]) -> Bool {
        var json = StrictJSON(rest: text[...])
        json.skipSpace()
        guard json.value() else { return false }
        json.skipSpace()
        return json.rest.isEmpty
    }

    private mutating func skipSpace() {
        while let byte = rest.first, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { rest.removeFirst() }
    }

    private mutating func takes(_ text: String) -> Bool {
        guard rest.starts(with: text.utf8) else { return false }
        rest = rest.dropFirst(text.utf8.count)
        return true
    }

    private mutating func value() -> Bool {
        if takes("{") { return elements("}") { $0.string() && $0.colon() && $0.value() } }
        if takes("[") { return elements("]") { $0.value() } }
        if rest.first == UInt8(ascii: "\"") { return string() }
        return takes("true") || takes("false") || takes("null") || number()
    }

    private mutating func colon() -> Bool {
        skipSpace()
        guard takes(":") else { return false }
        skipSpace()
        return true
    }

    private mutating func elements(_ end: String, _ element: (inout StrictJSON) -> Bool) -> Bool {
        skipSpace()
        if takes(end) { return true }
        repeat {
            skipSpace()
            guard element(&self) else { return false }
            skipSpace()
        } while takes(",")
        return takes(end)
    }

    private mutating func string() -> Bool {
        guard takes("\"") else { return false }
        while let byte = rest.popFirst() {
            switch byte {
            case 0x22: return true
            case 0..<0x20: return false
            case 0x5C:
                guard let escape = rest.popFirst() else { return false }
                if escape == UInt8(ascii: "u") {
                    guard rest.count >= 4,
                        rest.prefix(4).allSatisfy({ Character(UnicodeScalar($0)).isHexDigit && $0 < 0x80 })
                    else { return false }
                    rest = rest.dropFirst(4)
                } else if !"\"\\/bfnrt".utf8.contains(escape) {
                    return false
                }
            default: break
            }
        }
        return false
    }

    private mutating func digits() -> Bool {
        let digits = rest.prefix { (0x30...0x39).contains($0) }
        rest = rest[digits.endIndex...]
        return !digits.isEmpty
    }

    private mutating func number() -> Bool {
        _ = takes("-")
        guard takes("0") || digits() else { return false }
        if takes(".") { guard digits() else { return false } }
        if takes("e") || takes("E") {
            _ = takes("+") || takes("-")
            return digits()
        }
        return true
    }
}

/// Models and rules that an input chooses by a byte.
enum FuzzModels {
    static let all: [Models] = (0..<12 as Range<UInt64>).compactMap { seed in
        var generator = ModelGenerator(seed: seed, isSecretive: seed % 4 == 0)
        return try? generator.models()
    }

    static let context = MappingContext(
        url: "/x",
        captures: ["owner": "o"],
        bound: ["id": "5", "login": "l"],
        fields: ["etag": "\"e\""]
    )

    private static let roots = ["parent", "head", "labels[]", "user", "files", "matrix[][]"]

    static func rule(_ choice: Int) -> BodyRule {
        let arity: Arity = [.one, .many, .keyed][choice % 3]
        let root = choice / 3 % 4 == 0 ? roots[choice / 12 % roots.count] : nil
        return BodyRule(model: "Issue", arity: arity, root: root)
    }
}

func json(_ text: String) -> [UInt8] { Array(text.utf8) }
