import Foundation
import HTTPSemantics
import Mapping
import Proxy
import Settings
import Store

/// The properties by which a replay matches requests: method, URL, body, and the selected representation.
///
/// Redacted values are left out, so that no credential has to match.
struct RequestKey: Sendable {
    /// Upstream, method, path and query, normalised.
    let request: String
    /// The selected representation, and the fields that the route names.
    let representation: String
    let body: String
    /// The request's conditions and ranges, which count if the recorded response depends on them.
    let conditions: String

    func text(credential: Int?, anyRepresentation: Bool = false, withConditions: Bool) -> String {
        let parts = [
            request, credential.map { "\($0)" } ?? "", anyRepresentation ? "*" : representation,
            withConditions ? conditions : "", body,
        ]
        return parts.joined(separator: "\n")
    }

    /// Makes the key, the same for a live request and for a recorded one.
    ///
    /// - Parameter incoming: Either not redacted at all or completely. Of a live one, the plain request counts.
    init(_ incoming: IncomingRequest, body: [UInt8]) {
        let upstream = incoming.upstream
        let message = incoming.live == nil ? incoming.message : incoming.message.plain
        let (method, fields) = (message.method, message.fields)
        let matching = Self.matching(incoming, method: method)
        let redactor = Redactor(numbers: false)
        let target = redactor.redacted(target: incoming.url, of: upstream)
        request = "\(upstream.name) \(method) \(Self.url(target, ignoring: matching.query.ignore))"
        let named = matching.headers.map { name in
            "\(name.lowercased()): \(fields.combined(name.lowercased()) ?? "")"
        }
        representation = ([incoming.context] + named).joined(separator: "\n")
        conditions = Self.conditional.compactMap { name in
            fields.combined(name).map { "\(name): \($0)" }
        }.joined(separator: "\n")
        guard !body.isEmpty else {
            self.body = ""
            return
        }
        let plain = Self.withoutNumbers(CodedContent.plain(body, ContentHead(fields)))
        // Parsing so much text takes seconds, and uploads of this size are rarely text.
        guard plain.count <= Self.readLimit else {
            self.body = Self.digest(of: Self.withoutBoundary(plain, fields))
            return
        }
        redactor.learnCredentials(of: upstream)
        var exchange = WholeExchange(method: method, target: incoming.target, requestFields: fields, requestBody: plain)
        // The content has no coding any more.
        exchange.requestFields?.remove("content-encoding")
        guard (try? redactor.redact(&exchange, of: upstream, route: incoming.route)) != nil else {
            self.body = Self.digest(of: exchange.requestBody)
            return
        }
        self.body = Self.canonical(exchange.requestBody, fields, ignoring: matching.body.ignore)
    }

    private static func digest(of bytes: [UInt8]) -> String {
        let digest = KeyHasher(secret: (0, 0)).digest(bytes)
        return "\(bytes.count) bytes, \(digest.low) \(digest.high)"
    }

    /// Larger bodies are compared byte by byte.
    private static let readLimit = 8 << 20

    private static let conditional = [
        "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range", "range",
    ]

    /// Whether a response of this status depends on its request's conditions or ranges.
    static func isConditional(status: Int) -> Bool { [206, 304, 412, 416].contains(status) }

    /// Whether the cache key contains all that counts of a request without body and conditions.
    static func isWithinCacheKey(_ incoming: IncomingRequest) -> Bool {
        matching(incoming, method: "GET").headers.isEmpty
    }

    private static func matching(_ incoming: IncomingRequest, method: String) -> RequestMatching {
        let rules = incoming.upstream.rules
        return rules.route(method: method, path: incoming.route, query: incoming.query, status: nil)
            .map { rules.settings.routes[$0.index].match } ?? RequestMatching()
    }

    // MARK: Spelling

    /// A path and query with sorted parameters; those of one name keep their order.
    private static func url(_ url: String, ignoring ignored: [String]) -> String {
        guard let mark = url.utf8.firstIndex(of: 0x3F) else { return url }
        let ignored = ignored.map { Glob($0) }
        let pairs = url.utf8[mark...].dropFirst().split(separator: 0x26).map { pair -> (name: String, text: String) in
            let halves = pair.split(separator: 0x3D, maxSplits: 1, omittingEmptySubsequences: false).map { half in
                // Most need no decoding, which is slow.
                half.contains { $0 == 0x25 || $0 == 0x2B }
                    ? PercentEncoding.decode(String(Substring(half)).replacing("+", with: " "))
                        ?? String(Substring(half)) : String(Substring(half))
            }
            return (halves[0], halves.joined(separator: "="))
        }
        .filter { pair in !ignored.contains { $0.matches(Array(pair.name.utf8)) } }
        .sorted { $0.name < $1.name }
        let path = url[..<mark]
        return pairs.isEmpty ? String(path) : "\(path)?\(pairs.map(\.text).joined(separator: "&"))"
    }

    /// A normalised body: JSON by its values, a form by its parameters, a multipart body by its parts.
    private static func canonical(_ body: [UInt8], _ fields: Fields, ignoring pointers: [String]) -> String {
        if let outline = JSONOutline(body) { return text(outline.canonical(leavingOut: Set(pointers))) }
        if fields.text("content-type")?.lowercased().hasPrefix("application/x-www-form-urlencoded") == true {
            return text(Array(url("?" + String(decoding: body, as: UTF8.self), ignoring: []).utf8))
        }
        return text(withoutBoundary(body, fields))
    }

    /// A multipart body with a fixed boundary, because clients choose a new one for each request.
    private static func withoutBoundary(_ body: [UInt8], _ fields: Fields) -> [UInt8] {
        let type = fields.text("content-type") ?? ""
        guard type.lowercased().hasPrefix("multipart/"), let range = type.range(of: "boundary=") else { return body }
        let boundary = type[range.upperBound...].prefix { $0 != ";" }.filter { $0 != "\"" }
        guard !boundary.isEmpty else { return body }
        return body.replacing(Array(boundary.utf8), with: Array("boundary".utf8))
    }

    /// The bytes with the placeholders of a recording all alike.
    ///
    /// This precedes the redaction: what follows a secret in a live request may look like a number, too.
    private static func withoutNumbers(_ bytes: [UInt8]) -> [UInt8] {
        var (result, rest): ([UInt8], ArraySlice<UInt8>) = ([], bytes[...])
        while let range = rest.firstRange(of: Redactor.numbered) {
            let digits = rest[range.upperBound...].prefix(while: FieldSyntax.isDigit)
            result += rest[..<(digits.isEmpty ? range.upperBound : range.upperBound - 1)]
            rest = rest[digits.endIndex...]
        }
        return result.isEmpty ? bytes : result + rest
    }

    /// The text; Base64 if the bytes are not text.
    private static func text(_ bytes: [UInt8]) -> String {
        String(validating: bytes, as: UTF8.self) ?? Data(bytes).base64EncodedString()
    }
}
