import Foundation
import HTTPSemantics
import Settings
import Upstream
import Yams

/// Cassettes of vcrpy and of Ruby's VCR, in YAML and JSON.
enum VCRFile {
    /// A value of either format.
    indirect enum Value {
        case null
        case text(String)
        case bytes([UInt8])
        case number(Int)
        case list([Value])
        case map([(String, Value)])
        case unreadable

        init(_ json: Any) {
            switch json {
            case let text as String: self = .text(text)
            case let number as NSNumber: self = Int(exactly: number).map { .number($0) } ?? .text("\(number)")
            case let list as [Any]: self = .list(list.map { Value($0) })
            case let map as [String: Any]: self = .map(map.sorted { $0.key < $1.key }.map { ($0.key, Value($0.value)) })
            default: self = .null
            }
        }

        /// - Parameter escapes: Those that the text has marks for; nil if it has none.
        init(_ node: Node, _ escapes: MarkedEscapes? = nil) {
            switch node {
            case .mapping(let mapping):
                self = .map(mapping.map { ($0.key.scalar?.string ?? "", Value($0.value, escapes)) })
            case .sequence(let sequence): self = .list(sequence.map { Value($0, escapes) })
            case .alias: self = .null
            case .scalar(let scalar):
                let tag = node.tag.description
                if let escapes, escapes.occur(in: scalar.string) {
                    self = escapes.text(of: scalar.string).map { .text($0) } ?? .unreadable
                } else if tag.hasSuffix("binary") {
                    self = .bytes(base64(scalar.string))
                } else if scalar.style == .any || scalar.style == .plain, ["null", "~", ""].contains(scalar.string) {
                    self = .null
                } else if scalar.style == .any || scalar.style == .plain, let number = Int(scalar.string) {
                    self = .number(number)
                } else {
                    self = .text(scalar.string)
                }
            }
        }

        /// Whether any text in it is not Unicode.
        var isUnreadable: Bool {
            switch self {
            case .unreadable: true
            case .list(let list): list.contains(where: \.isUnreadable)
            case .map(let members): members.contains { $0.1.isUnreadable }
            case .null, .text, .bytes, .number: false
            }
        }

        subscript(name: String) -> Value? {
            guard case .map(let members) = self else { return nil }
            return members.first { $0.0 == name }?.1
        }

        var list: [Value]? { if case .list(let list) = self { list } else { nil } }
        var number: Int? {
            switch self {
            case .number(let number): number
            case .text(let text): Int(text)
            default: nil
            }
        }
        var text: String? {
            switch self {
            case .text(let text): text
            case .number(let number): String(number)
            case .bytes(let bytes): String(decoding: bytes, as: UTF8.self)
            default: nil
            }
        }
    }

    static func read(text: String, _ path: String) throws(RecordingError) -> ForeignRecording {
        let escapes = MarkedEscapes(in: text)
        let root: Node?
        do {
            root = try BoundedYAML.compose(escapes?.marked ?? text)
        } catch { throw RecordingError(path, line: error.line, error.description) }
        return try read(root.map { Value($0, escapes) } ?? .null, path)
    }

    static func read(_ root: Value, _ path: String) throws(RecordingError) -> ForeignRecording {
        guard let interactions = (root["interactions"] ?? root["http_interactions"])?.list
        else { throw RecordingError(path, ForeignRecording.unknown) }
        var recording = ForeignRecording(path)
        let now = Int64(Date().timeIntervalSince1970)
        for (number, interaction) in interactions.enumerated() {
            recording.part = "interaction \(number + 1)"
            guard !interaction.isUnreadable else {
                recording.lose("interactions that are not Unicode")
                continue
            }
            guard let request = interaction["request"], let response = interaction["response"],
                let url = (request["uri"] ?? request["url"])?.text, let method = request["method"]?.text,
                let status = response["status"]?["code"]?.number
            else {
                recording.lose("interactions without a uri, a method, or a status as an integer")
                continue
            }
            var fields = recording.fields(lines(response["headers"]), isHead: method.uppercased() == "HEAD")
            var content = bytes(response["body"], &recording)
            if let coding = fields.combined("content-encoding") {
                // A body may be stored in its coding, or without it and yet with the field.
                content = DecodedBody.decode(content, coding: coding, limit: RecordingFolder.bodyLimit) ?? content
                fields.remove("content-encoding")
            }
            let exchange = WholeExchange(
                method: method.uppercased(),
                target: url,
                requestFields: recording.fields(lines(request["headers"])),
                requestBody: bytes(request["body"], &recording),
                response: .init(status: status, fields: fields, body: content),
                arrivalTime: fields[.date].flatMap { HTTPDate.parse($0, now: now) }.map(Double.init)
            )
            recording.exchanges.append(exchange)
        }
        recording.part = ""
        recording.name(root[ForeignRecording.originsName]?.list?.compactMap(\.text) ?? [])
        return recording
    }

    private static func lines(_ value: Value?) -> [(String, String)] {
        guard case .map(let members)? = value else { return [] }
        return members.flatMap { name, value in
            (value.list ?? [value]).compactMap { element in element.text.map { (name, $0) } }
        }
    }

    /// The bytes of a body, whose text is in UTF-8, or was in the encoding that Ruby's VCR names.
    private static func bytes(_ value: Value?, _ recording: inout ForeignRecording) -> [UInt8] {
        if let coded = value?["base64_string"]?.text { return base64(coded) }
        switch value?["string"] ?? value {
        case .bytes(let bytes): return bytes
        case .text(let text):
            let name = value?["encoding"]?.text?.lowercased() ?? ""
            let read = ForeignText(text, charset: name == "ascii-8bit" || name == "binary" ? "" : name)
            if !read.isExact { recording.loseBytes(charset: name) }
            return read.bytes
        case .number(let number): return Array(String(number).utf8)
        default: return []
        }
    }

    // MARK: Writing

    static func write(_ recording: RecordingContents, _ upstreams: [Configuration.Upstream])
        throws(RecordingError) -> [UInt8]
    {
        var interactions: [Node] = []
        let origins = upstreams.originsByName
        for exchange in recording.exchanges {
            let asked = try recording.folder.body(exchange.request.body)
            let body = try recording.folder.body(exchange.response.body)
            let status = exchange.response.status
            let request = map([
                ("body", asked.isEmpty ? Node("null", Tag(.null)) : content(asked)),
                ("headers", headers(exchange.request.fields ?? [])), ("method", text(exchange.request.method)),
                ("uri", text((origins[exchange.upstream] ?? "") + exchange.request.target)),
            ])
            let response = map([
                ("body", map([("string", content(body))])), ("headers", headers(exchange.response.fields)),
                ("status", map([("code", Node(String(status), Tag(.int))), ("message", text(statusPhrase(status)))])),
            ])
            interactions.append(map([("request", request), ("response", response)]))
        }
        let named = upstreams.exportedOrigins.map { [(ForeignRecording.originsName, Node($0.map(text)))] } ?? []
        let root = map([("interactions", Node(interactions)), ("version", Node("1", Tag(.int)))] + named)
        do {
            let yaml = try Yams.serialize(node: root, width: -1, allowUnicode: true)
            return Array(yaml.replacing("\"\(binary)", with: "!!binary \"").utf8)
        } catch { throw RecordingError(recording.folder.path, "the cassette cannot be written: \(error)") }
    }

    /// Marks binary scalars until the text is complete, because Yams writes no tags of scalars.
    private static let binary = "larder-\(UUID().uuidString)-"

    private static func map(_ members: [(String, Node)]) -> Node { Node(members.map { (Node($0.0), $0.1) }) }

    private static func text(_ text: String) -> Node { Node(text, Tag(.str), .doubleQuoted) }

    private static func content(_ bytes: [UInt8]) -> Node {
        guard let string = String(validating: bytes, as: UTF8.self),
            bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || [0x09, 0x0A, 0x0D].contains($0) })
        else { return text(binary + Data(bytes).base64EncodedString()) }
        return text(string)
    }

    private static func headers(_ lines: [String]) -> Node {
        var (names, values): ([String], [String: [Node]]) = ([], [:])
        for line in Fields(recorded: lines).lines {
            let name = String(decoding: line.name, as: UTF8.self)
            if values[name] == nil { names.append(name) }
            values[name, default: []].append(text(line.text))
        }
        return map(names.map { ($0, Node(values[$0] ?? [])) })
    }
}

/// The escapes in a YAML text that its parser loses: those of surrogates, as Python writes a lone one, and of the byte order mark.
///
/// Each is replaced by an escape that the parser does know. Where `\u` is no escape, as between single quotes, that stays text, and
/// is replaced back.
struct MarkedEscapes {
    let marked: String
    private static let mark: Unicode.Scalar = "\u{10FFFE}"
    private static let escape = "\\U0010FFFE"

    /// Nil if the text has none.
    init?(in text: String) {
        let lost = /\\u([Dd][89A-Fa-f][0-9A-Fa-f]{2}|[Ff][Ee][Ff]{2})/.matchingSemantics(.unicodeScalar)
        guard text.contains(lost) else { return nil }
        marked = text.replacing(lost) { Self.escape + $0.1 }
    }

    /// Whether a value of the parsed text has any.
    func occur(in value: String) -> Bool { value.unicodeScalars.contains(Self.mark) || value.contains(Self.escape) }

    /// The value as it is meant; nil if it has half a pair.
    func text(of value: String) -> String? {
        var units: [UInt16] = []
        var rest = Array(value.replacing(Self.escape, with: "\\u").unicodeScalars)[...]
        while let scalar = rest.popFirst() {
            let digits = String(String.UnicodeScalarView(rest.prefix(4)))
            if scalar == Self.mark, let unit = UInt16(digits, radix: 16) {
                units.append(unit)
                rest = rest.dropFirst(4)
            } else {
                units += UTF16.encode(scalar).map(Array.init) ?? []
            }
        }
        return String(validating: units, as: UTF16.self)
    }
}
