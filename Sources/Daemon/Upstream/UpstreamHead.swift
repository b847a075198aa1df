package import HTTPSemantics

/// The head of an upstream's final response, ready to be passed on.
package struct UpstreamHead: Sendable, Equatable {
    var version: Version
    package var status: Int
    /// The reason phrase as received; empty in HTTP/2.
    var reason: [UInt8]
    /// The fields in their order, with the bytes received.
    ///
    /// Hop-by-hop fields and those named by `Connection` are removed; so are fields that describe the encoded body, if it has
    /// been decoded (`Content-Encoding`, `Content-Length`, digests).
    package var fields: Fields
    /// The content codings removed from the body, as the response named them; nil if it had none.
    var decodedFrom: String?
    /// Whether the upstream forbids to change the body's coding (`no-transform`), so that clients that accept other codings get
    /// other bytes.
    package var hasFixedCoding = false
    /// What shows that the body is whole, unless the response is one to HEAD.
    var endProof = EndProof.none
    /// Whether the body does not conform to the coding in its fields: it is passed on as received, and not worth storing.
    package var isGarbled = false

    /// The reason phrase to pass on, which some clients show, or even expect; nil if there is none.
    package var reasonPhrase: String? { reason.isEmpty ? nil : String(decoding: reason, as: UTF8.self) }

    enum Version: Sendable, Equatable {
        case http10
        case http11
        case http2
    }

    /// Whether the response is a stream of server-sent events, which only ends with its connection.
    package var isEventStream: Bool { fields.isEventStream }

    /// Whether the body consists of several ranges, each with a head of its own (RFC 9110 §14.6).
    package var isMultipart: Bool { fields.hasType("multipart/byteranges") }
    package var cookies: [Field] {
        fields.contains(.setCookie) ? fields.filter { $0.isNamed(.setCookie) }.lines : []
    }
}

/// What shows that a response's body is whole (RFC 9112 §6.3, RFC 9113 §8.1).
enum EndProof: Sendable, Equatable {
    /// There is no body.
    case none
    /// It has a length, which libcurl compares.
    case length
    /// It has a last chunk, for which libcurl waits.
    case chunks
    /// It ends with its connection.
    case connection
    /// It ends with its stream of HTTP/2, and may have a length.
    ///
    /// Only the flag END_STREAM shows that such a body is whole, and libcurl does not report it. It takes RST_STREAM with NO_ERROR for
    /// the same, except in 8.0 to 8.2; in 7.88 also errors of the connection, which end other streams, too.
    case stream(length: Int?)
}

extension Fields {
    /// Whether the body has a content coding that Larder does not support.
    package var isContentCoded: Bool {
        contains(.contentEncoding)
            && all(.contentEncoding).flatMap { FieldSyntax.members($0) }
                .contains { !$0.isEmpty && !FieldSyntax.equalsIgnoringCase($0, "identity".utf8) }
    }

    /// Whether the fields announce a stream of server-sent events.
    package var isEventStream: Bool { hasType("text/event-stream") }

    /// Whether the body has this media type, with any parameters.
    fileprivate func hasType(_ name: String) -> Bool {
        guard let type = self[.contentType] else { return false }
        return FieldSyntax.equalsIgnoringCase(FieldSyntax.essence(of: type), name.utf8)
    }
}

/// Assembles the heads of a response from their lines: interim ones, then the final one.
///
/// It is a value: lines in, steps out. libcurl has framed the lines and rejected non-HTTP; this rejects heads that a
/// proxy must not pass on.
struct ResponseHeadReader {
    /// The result of a line.
    enum Step: Equatable {
        case incomplete
        case informational(status: Int, fields: Fields)
        case final(UpstreamHead)
        case failed(UpstreamError)
    }

    private let limit: Int
    private let decodes: Bool
    private let clientCodings: [UInt8]?
    private var size = 0
    private var statusLine: StatusLine?
    private var fields = Fields()
    private(set) var isFinished = false
    /// The final head to pass on if the body turns out not to conform to its coding.
    private(set) var garbled: UpstreamHead?

    /// - Parameter limit: The maximum size of all heads and the trailers together, in bytes.
    init(limit: Int, decodes: Bool, clientCodings: [UInt8]? = nil) {
        (self.limit, self.decodes, self.clientCodings) = (limit, decodes, clientCodings)
    }

    /// Whether no line has arrived yet.
    var isEmpty: Bool { size == 0 }

    /// Reads one line with its line end.
    mutating func received(_ line: UnsafeRawBufferPointer) -> Step {
        size += line.count
        guard size <= limit else { return .failed(.headTooLarge) }
        // Lines after the final head are trailers, which are dropped (RFC 9110 §6.5.1 allows it).
        if isFinished { return .incomplete }
        let content = line.withoutLineEnd()
        if content.isEmpty { return blockEnded() }
        guard statusLine == nil else { return received(fieldLine: content) }
        statusLine = StatusLine(content)
        return statusLine == nil ? .failed(.badResponse("a malformed status line")) : .incomplete
    }

    private mutating func received(fieldLine content: UnsafeRawBufferPointer) -> Step {
        if content.first == 0x20 || content.first == 0x09 {
            // A folded line continues the value with a space (RFC 9112 §5.2).
            guard let begun = fields.last else { return .failed(.badResponse("a folded line before the first field")) }
            let value = (begun.value + [0x20] + Self.value(content)).trimmingBlanks()
            fields.replaceValue(at: fields.count - 1, by: value)
            return .incomplete
        }
        guard let colon = content.firstIndex(of: UInt8(ascii: ":"))
        else { return .failed(.badResponse("a header line without a colon")) }
        // White space before the colon must be removed from responses (RFC 9112 §5.1).
        let name = UnsafeRawBufferPointer(rebasing: content[..<colon]).withoutBlanks
        // An invalid name is not passed on: the next parser might interpret it differently.
        guard FieldSyntax.isToken(name) else { return .incomplete }
        if fields.isEmpty { fields.reserve(lines: 24, bytes: 1_024) }
        let value = UnsafeRawBufferPointer(rebasing: content[(colon + 1)...]).withoutBlanks
        if value.contains(where: { $0 == 0x0D || $0 == 0 }) {
            Self.value(value).withUnsafeBytes { fields.append(name: name, value: $0) }
        } else {
            fields.append(name: name, value: value)
        }
        return .incomplete
    }

    /// A value without blanks at its ends; a bare CR in it becomes a space (RFC 9112 §2.2).
    private static func value(_ content: UnsafeRawBufferPointer) -> [UInt8] {
        content.map { $0 == 0x0D || $0 == 0 ? 0x20 : $0 }.trimmingBlanks()
    }

    private mutating func blockEnded() -> Step {
        guard let line = statusLine else { return .failed(.badResponse("an empty status line")) }
        let fields = fields
        statusLine = nil
        self.fields = Fields()
        switch line.status {
        case 101: return .failed(.badResponse("101 Switching Protocols, which was not asked for"))
        case 100..<200: return interim(line, fields)
        default: return final(line, fields)
        }
    }

    private func interim(_ line: StatusLine, _ fields: Fields) -> Step {
        // Neither is allowed here (RFC 9110 §8.6, RFC 9112 §6.1), and libcurl would apply it to the final response.
        guard !fields.contains(.contentLength), !fields.contains(.transferEncoding)
        else { return .failed(.badResponse("an interim response that announces a body")) }
        return .informational(status: line.status, fields: fields.withoutHopByHop())
    }

    private mutating func final(_ line: StatusLine, _ fields: Fields) -> Step {
        isFinished = true
        var passed = fields.withoutHopByHop()
        if fields.contains(.transferEncoding) {
            guard fields.isChunkedOnly else { return .failed(.badResponse("a transfer coding that was not asked for")) }
            // The transfer coding overrides a length (RFC 9112 §6.3).
            passed.remove(.contentLength)
        } else if !passed.unifyContentLength() {
            return .failed(.badResponse("contradictory Content-Length fields"))
        }
        let endProof = EndProof(status: line.status, line.version, passed, isChunked: fields.isChunked)
        if line.status == 205 {
            // A 205 has no content (RFC 9110 §15.3.6), whatever follows.
            passed.removeEncodedBodyFields()
            passed.append("Content-Length", "0")
        }
        var head = UpstreamHead(version: line.version, status: line.status, reason: line.reason, fields: passed)
        head.endProof = endProof
        guard decodes, line.status != 205, let codings = fields.decodableCodings() else { return .final(head) }
        if let clientCodings {
            head.hasFixedCoding = fields.forbidTransforming
            if head.hasFixedCoding, Fields.accept(codings, clientCodings) { return .final(head) }
        }
        garbled = head
        garbled?.isGarbled = true
        head.decodedFrom = codings
        head.fields.removeEncodedBodyFields()
        return .final(head)
    }
}

extension EndProof {
    fileprivate init(status: Int, _ version: UpstreamHead.Version, _ fields: Fields, isChunked: Bool) {
        let length = fields.contentLength
        switch version {
        case _ where [204, 205, 304].contains(status): self = .none
        case .http2: self = .stream(length: length)
        case .http10, .http11: self = isChunked ? .chunks : length != nil ? .length : .connection
        }
    }
}

/// The first line of a response (RFC 9112 §4), which libcurl also provides for HTTP/2.
private struct StatusLine {
    let version: UpstreamHead.Version
    let status: Int
    let reason: [UInt8]

    private static let usual = Array("HTTP/1.1 200 OK".utf8)
    private static let usualReason = Array("OK".utf8)

    init?(_ line: UnsafeRawBufferPointer) {
        if Self.usual.elementsEqual(line) {
            (version, status, reason) = (.http11, 200, Self.usualReason)
            return
        }
        let parts = line.split(separator: 0x20, maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2, parts[0].starts(with: "HTTP/".utf8) else { return nil }
        switch String(decoding: parts[0].dropFirst(5), as: UTF8.self) {
        case "1.0": version = .http10
        case "2", "2.0": version = .http2
        case let other where other.hasPrefix("1."): version = .http11
        default: return nil
        }
        guard parts[1].count == 3, let status = Int(String(decoding: parts[1], as: UTF8.self)), status >= 100
        else { return nil }
        self.status = status
        reason =
            parts.count > 2 ? parts[2].map { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F ? 0x20 : $0 }.trimmingBlanks() : []
    }
}

extension Fields {
    /// Whether the transfer codings are allowed unrequested (RFC 9112 §6.1); no other would be removed, so it would alter the
    /// content.
    fileprivate var isChunkedOnly: Bool {
        let codings = all(.transferEncoding).flatMap { FieldSyntax.members($0) }
            .filter { !FieldSyntax.equalsIgnoringCase($0, "identity".utf8) }
        return codings.count <= 1 && codings.allSatisfy { FieldSyntax.equalsIgnoringCase($0, "chunked".utf8) }
    }

    /// Whether the body arrives in chunks.
    fileprivate var isChunked: Bool {
        all(.transferEncoding).flatMap { FieldSyntax.members($0) }
            .contains { FieldSyntax.equalsIgnoringCase($0, "chunked".utf8) }
    }

    /// Whether no one in between may change the content (RFC 9111 §5.2.2.6).
    fileprivate var forbidTransforming: Bool {
        all(.cacheControl).contains { value in
            FieldSyntax.members(value).contains { FieldSyntax.equalsIgnoringCase($0, "no-transform".utf8) }
        }
    }

    /// Whether a value of `Accept-Encoding` names these codings, and not with a weight of 0 (RFC 9110 §12.5.3).
    fileprivate static func accept(_ codings: String, _ value: [UInt8]) -> Bool {
        guard let wanted = ContentDecoder.Coding(named: codings) else { return false }
        return FieldSyntax.members(value).contains { member in
            let parts = FieldSyntax.members(member, separator: 0x3B)
            guard let name = parts.first, wanted == ContentDecoder.Coding(named: String(decoding: name, as: UTF8.self))
            else { return false }
            let weight = parts.dropFirst().first { $0.starts(with: "q=".utf8) || $0.starts(with: "Q=".utf8) }
            return weight?.dropFirst(2).contains { (0x31...0x39).contains($0) } ?? true
        }
    }

    /// The content coding of the body as the field spells it; nil if there is none, or it is unknown.
    ///
    /// Several codings on top of each other are left to the client; in practice they do not occur.
    fileprivate func decodableCodings() -> String? {
        guard contains(.contentEncoding), let codings = combined("content-encoding") else { return nil }
        return ContentDecoder.Coding(named: codings) == nil ? nil : codings
    }

    fileprivate mutating func removeEncodedBodyFields() {
        for name in ["content-encoding", "content-length", "content-md5", "digest", "content-digest", "repr-digest"] {
            remove(name)
        }
    }

    /// Merges all `Content-Length` lines into one; returns false if they disagree or are not numbers (RFC 9112 §6.3).
    fileprivate mutating func unifyContentLength() -> Bool {
        let values = all(.contentLength)
        guard !values.isEmpty else { return true }
        // Nearly every response has one plain number.
        if values.count == 1, (1...18).contains(values[0].count), values[0].allSatisfy(FieldSyntax.isDigit) {
            return true
        }
        let numbers = values.flatMap { $0.split(separator: UInt8(ascii: ",")).map { $0.trimmingBlanks() } }
        guard let first = numbers.first, first.count <= 18, first.allSatisfy(FieldSyntax.isDigit),
            numbers.allSatisfy({ $0 == first })
        else { return false }
        guard let place = firstIndex(where: { $0.isNamed(.contentLength) }) else { return true }
        replaceValue(at: place, by: first)
        var isFirst = true
        removeAll { line in
            guard line.isNamed(.contentLength) else { return false }
            defer { isFirst = false }
            return !isFirst
        }
        return true
    }
}

extension UnsafeRawBufferPointer {
    fileprivate func withoutLineEnd() -> UnsafeRawBufferPointer {
        var end = count
        if end > 0, self[end - 1] == 0x0A { end -= 1 }
        if end > 0, self[end - 1] == 0x0D { end -= 1 }
        return UnsafeRawBufferPointer(rebasing: self[..<end])
    }

    /// The bytes without spaces and tabs at both ends.
    fileprivate var withoutBlanks: UnsafeRawBufferPointer {
        var (start, end) = (0, count)
        while start < end, FieldSyntax.isWhitespace(self[start]) { start += 1 }
        while start < end, FieldSyntax.isWhitespace(self[end - 1]) { end -= 1 }
        return UnsafeRawBufferPointer(rebasing: self[start..<end])
    }
}

extension Collection<UInt8> where SubSequence: BidirectionalCollection {
    /// The bytes without spaces and tabs at both ends.
    fileprivate func trimmingBlanks() -> [UInt8] {
        guard let first = firstIndex(where: { !FieldSyntax.isWhitespace($0) }) else { return [] }
        let rest = self[first...]
        guard let last = rest.lastIndex(where: { !FieldSyntax.isWhitespace($0) }) else { return [] }
        return Array(rest[...last])
    }
}
