import HTTPSemantics
import Upstream

/// The reason why nothing can be said about the content of a body.
struct UndecodableContent: Error {
    let reason: String
}

/// What the fields of a message, or of a part of a multipart body, say about its content.
struct ContentHead {
    /// The media type as written, with its parameters.
    var type = ""
    /// The content codings, in the order in which they were applied.
    var codings: [String] = []
    /// `base64` or `quoted-printable`, if a part has it.
    var transferEncoding = ""
    var name: [UInt8]?

    init() {}

    init(_ fields: Fields) {
        type = fields.text("content-type") ?? ""
        codings = DecodedBody.codings(fields)
    }

    fileprivate init(part fields: Fields) {
        self.init(fields)
        transferEncoding = fields.text("content-transfer-encoding")?.lowercased() ?? ""
        name = fields.text("content-disposition").flatMap { Self.name(inDisposition: $0) }
    }

    /// The media type without parameters, in lower case.
    var essence: String {
        String(decoding: FieldSyntax.lowercased(FieldSyntax.essence(of: Array(type.utf8)[...])), as: UTF8.self)
    }

    var boundary: String? { essence.hasPrefix("multipart/") ? Self.parameter("boundary", of: type) : nil }
    var charset: String { Self.parameter("charset", of: type)?.lowercased() ?? "" }

    /// Whether the content is no text: such content is searched for known values only.
    var isOpaque: Bool {
        let essence = essence
        return ["image/", "audio/", "video/", "font/"].contains { essence.hasPrefix($0) && !essence.hasSuffix("+xml") }
            || ["application/zip", "application/pdf", "application/wasm", "application/x-tar"].contains(essence)
    }

    private static func parameter(_ name: String, of value: String) -> String? {
        parameters(of: value).first { $0.name == name && !$0.value.isEmpty }
            .map { String(decoding: $0.value, as: UTF8.self) }
    }

    /// The name of a part, which may be in pieces, and in a charset (RFC 2231 §3 and §4): `name*0*=UTF-8''pass; name*1=word`.
    private static func name(inDisposition value: String) -> [UInt8]? {
        let pieces = parameters(of: value).filter { $0.name == "name" || $0.name.hasPrefix("name*") }
            .sorted { $0.name < $1.name }
        guard let first = pieces.first else { return nil }
        // A part may say its name in both ways.
        let wanted = first.name == "name" ? pieces.prefix(1) : pieces[...]
        return wanted.flatMap { piece -> [UInt8] in
            let isCoded = piece.name.hasSuffix("*")
            let start = isCoded ? piece.value.lastIndex(of: 0x27).map { $0 + 1 } ?? 0 : 0
            let text = Array(piece.value[start...])
            let escapes: UnescapedText.Escapes = isCoded ? .percent : .backslash
            return text.withUnsafeBufferPointer { UnescapedText(unescaping: $0, escapes) }?.bytes ?? text
        }
    }

    /// The parameters after the first word, their names in lower case.
    private static func parameters(of value: String) -> [(name: String, value: [UInt8])] {
        FieldSyntax.members(Array(value.utf8)[...], separator: 0x3B).dropFirst().compactMap { member in
            guard let equals = member.firstIndex(of: 0x3D) else { return nil }
            let name = FieldSyntax.lowercased(FieldSyntax.trimmed(member[..<equals]))
            let text = FieldCredentials.unquoted(Array(FieldSyntax.trimmed(member[(equals + 1)...])))
            return (String(decoding: name, as: UTF8.self), text)
        }
    }
}

/// Changes the content of a body, whatever its codings, and writes it back with the same ones.
///
/// The codings are those of HTTP, of the parts of a multipart body, UTF-16 and UTF-32, and compressed files. All other
/// charsets are supersets of ASCII, as far as credentials are concerned, and need no decoding.
enum CodedContent {
    /// Changes one piece of content: text as UTF-8 or in a superset of ASCII, or bytes that are no text.
    typealias Change = (inout [UInt8], ContentHead) -> Void

    /// Codings within codings beyond this are not decoded.
    private static let depth = 8

    /// Changes a body's content; the body stays as it is, byte by byte, if the content does.
    static func change(_ body: inout [UInt8], _ head: ContentHead, depth: Int = 0, _ change: Change)
        throws(UndecodableContent)
    {
        guard !body.isEmpty else { return }
        guard depth < Self.depth else { throw UndecodableContent(reason: "has too many codings within each other") }
        if let (content, head, encode) = try decoded(body, head) {
            var changed = content
            try Self.change(&changed, head, depth: depth + 1, change)
            guard changed != content else { return }
            guard let encoded = encode(changed) else { throw UndecodableContent(reason: "cannot be encoded again") }
            return body = encoded
        }
        if let parts = MultipartBody(body, head.boundary) {
            var edits: [Edit] = []
            for part in parts.parts {
                let content = Array(body[part.content])
                var changed = content
                let head = ContentHead(part: Fields(lines: body[part.head]))
                try Self.change(&changed, head, depth: depth + 1, change)
                if changed != content { edits.append(Edit(range: part.content, text: changed)) }
            }
            body = Edit.apply(edits, to: body)
        }
        change(&body, head)
    }

    /// The content within a body's outermost coding, its head, and the function that codes it again; nil if there is no coding.
    private static func decoded(_ body: [UInt8], _ head: ContentHead) throws(UndecodableContent)
        -> (content: [UInt8], head: ContentHead, encode: ([UInt8]) -> [UInt8]?)?
    {
        var inner = head
        if let coding = inner.codings.popLast() {
            guard let content = DecodedBody.decode(body, coding: coding, limit: RecordingFolder.bodyLimit) else {
                throw UndecodableContent(reason: "has a content coding that cannot be decoded: \(coding.printable)")
            }
            return (content, inner, { EncodedBody.encode($0, coding: coding, like: body) })
        }
        if let (content, encode) = transferDecoded(body, head) {
            inner.transferEncoding = ""
            return (content, inner, encode)
        }
        if let (content, coding) = DecodedBody.ofFile(body) {
            inner.type = ""
            return (content, inner, { EncodedBody.encode($0, coding: coding, like: body) })
        }
        if body.starts(with: WideText.utf8Mark) { return (Array(body.dropFirst(3)), inner, { WideText.utf8Mark + $0 }) }
        guard let text = try WideText(body, head) else { return nil }
        inner.type = head.essence
        return (text.utf8, inner, text.encoded)
    }

    /// The content without its content codings and as UTF-8, for comparisons; as it is if that cannot be made.
    static func plain(_ body: [UInt8], _ head: ContentHead) -> [UInt8] {
        var body = body
        for coding in head.codings.reversed() {
            guard let content = DecodedBody.decode(body, coding: coding, limit: RecordingFolder.bodyLimit)
            else { return body }
            body = content
        }
        if body.starts(with: WideText.utf8Mark) { return Array(body.dropFirst(3)) }
        return (try? WideText(body, head))?.utf8 ?? body
    }

    // MARK: Parts

    /// The content of a part without its transfer encoding, and the function that adds it again.
    private static func transferDecoded(_ body: [UInt8], _ head: ContentHead) -> ([UInt8], ([UInt8]) -> [UInt8])? {
        switch head.transferEncoding {
        case "base64":
            let digits = body.filter { !FieldSyntax.isWhitespace($0) && $0 != 0x0D && $0 != 0x0A && $0 != 0x3D }
            guard digits.allSatisfy({ Base64.isDigit($0) }) else { return nil }
            return (Base64.decode(digits), { folded(Base64.encode($0), body.contains(0x0A)) })
        case "quoted-printable":
            return (QuotedPrintable.decode(body), { QuotedPrintable.encode($0) })
        default: return nil
        }
    }

    private static func folded(_ digits: [UInt8], _ hasLines: Bool) -> [UInt8] {
        guard hasLines else { return digits }
        let lines = stride(from: 0, to: digits.count, by: 76).map { digits[$0..<min($0 + 76, digits.count)] }
        return Array(lines.joined(separator: [0x0D, 0x0A]))
    }
}

/// The content transfer encoding `quoted-printable` (RFC 2045 §6.7).
private enum QuotedPrintable {
    static func decode(_ body: [UInt8]) -> [UInt8] {
        var (result, index): ([UInt8], Int) = ([], 0)
        while index < body.count {
            let rest = body[(index + 1)...]
            if body[index] != 0x3D {
                result.append(body[index])
                index += 1
            } else if rest.starts(with: [0x0D, 0x0A]) {
                index += 3
            } else if rest.first == 0x0A {
                index += 2
            } else if rest.count >= 2, let high = FieldSyntax.hexDigit(body[index + 1]),
                let low = FieldSyntax.hexDigit(body[index + 2])
            {
                result.append(high << 4 | low)
                index += 3
            } else {
                result.append(body[index])
                index += 1
            }
        }
        return result
    }

    static func encode(_ content: [UInt8]) -> [UInt8] {
        var (result, column): ([UInt8], Int) = ([], 0)
        for byte in content {
            let isPlain = (0x20..<0x7F).contains(byte) && byte != 0x3D || byte == 0x0D || byte == 0x0A || byte == 0x09
            let spelled = isPlain ? [byte] : [0x3D] + byte.hexadecimal(width: 2).uppercased().utf8
            if column + spelled.count > 75, byte != 0x0D, byte != 0x0A {
                result += [0x3D, 0x0D, 0x0A]
                column = 0
            }
            result += spelled
            column = byte == 0x0A ? 0 : column + spelled.count
        }
        return result
    }
}

extension UnsafeBufferPointer<UInt8> {
    func place(of bytes: [UInt8], from position: Int) -> Int? {
        guard let first = bytes.first else { return nil }
        var position = position
        while let place = place(of: first, from: position), place + bytes.count <= count {
            if self[place..<place + bytes.count].elementsEqual(bytes) { return place }
            position = place + 1
        }
        return nil
    }
}

extension Fields {
    /// Reads field lines, such as those of a part; what is no field line is left out.
    init(lines: ArraySlice<UInt8>) {
        self.init()
        for line in lines.split(separator: 0x0A) {
            if let first = line.first, FieldSyntax.isWhitespace(first), !self.lines.isEmpty {
                self.lines[self.lines.count - 1].value += line.filter { $0 != 0x0D }
                continue
            }
            guard let colon = line.firstIndex(of: 0x3A) else { continue }
            let value = FieldSyntax.trimmed(line.withoutReturn[(colon + 1)...])
            append(String(decoding: line[..<colon], as: UTF8.self), Array(value))
        }
    }
}

extension ArraySlice<UInt8> {
    /// A line without the carriage return at its end.
    var withoutReturn: Self { last == 0x0D ? dropLast() : self }
}

extension [UInt8] {
    func replacing(_ bytes: [UInt8], with other: [UInt8]) -> [UInt8] {
        var (edits, position): ([Edit], Int) = ([], 0)
        withUnsafeBufferPointer { text in
            while let place = text.place(of: bytes, from: position) {
                position = place + bytes.count
                edits.append(Edit(range: place..<position, text: other))
            }
        }
        return Edit.apply(edits, to: self)
    }
}
