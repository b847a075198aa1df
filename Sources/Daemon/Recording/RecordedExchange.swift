import Basics
import Foundation
package import HTTPSemantics
import Mapping
import Settings

/// A request and its response with their bodies in memory, before they are in a recording.
package struct WholeExchange: Sendable, Equatable {
    var method: String
    /// Path and query; in another tool's file the absolute URL, if the tool knows the origin.
    var target: String
    /// Nil if unknown, so that any representation matches.
    var requestFields: Fields?
    var requestBody: [UInt8] = []
    var response = Response()
    /// When the request arrived, in Unix seconds; nil if unknown.
    var arrivalTime: Double?
    var session: String?

    /// A response as a client received it, without what only concerns one connection.
    package struct Response: Sendable, Equatable {
        var status = 200
        package var fields = Fields()
        /// Without content coding.
        package var body: [UInt8] = []
        /// The milliseconds that a replay waits before it; nil for none.
        var delay: Int?

        package init(status: Int = 200, fields: Fields = Fields(), body: [UInt8] = [], delay: Int? = nil) {
            (self.status, self.fields, self.body, self.delay) = (status, fields, body, delay)
        }
    }
}

/// One request and its response, as in a line of `exchanges.jsonl`.
///
/// Bodies are separate files. Their lengths are recomputed at replay, so that they can be edited freely.
package struct RecordedExchange: Codable, Sendable, Equatable {
    /// The name of the upstream in `recording.yaml`.
    package var upstream: String
    /// The number of the request's credential, counted from 1 by first appearance; nil for anonymous.
    var credential: Int?
    /// The request's `Larder-Session`, such as the name of a test; nil for none.
    var session: String?
    /// When the request arrived, such as `2026-11-23T03:47:00.123Z`; nil if unknown.
    var arrivalTime: String?
    package var request: Request
    var response: Response

    private enum CodingKeys: String, CodingKey {
        case upstream, credential, session, arrivalTime = "time", request, response
    }

    package struct Request: Codable, Sendable, Equatable {
        package var method: String
        /// Path and query as they went upstream.
        package var target: String
        /// Lines such as `Accept: application/json`; nil if unknown, so that any representation matches.
        package var fields: [String]?
        /// The body's file, relative to the folder; nil for none.
        var body: String?
    }

    struct Response: Codable, Sendable, Equatable {
        var status: Int
        /// Lines such as `Content-Type: application/json`.
        var fields: [String]
        var body: String?
        /// The milliseconds that a replay waits before it; nil for none.
        var delay: Int?

        /// An hour: longer than any client waits.
        static let delays = 0...3_600_000
    }

    /// A short form of the request for people: `GET /users/1`.
    package var title: String { "\(request.method) \(request.target)" }

    /// Unix seconds; nil if the line has no time.
    var seconds: Int64? { arrivalTime.flatMap { RecordingTime.seconds($0) } }

    /// The JSON line, without a line end.
    var line: [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(self) else { preconditionFailure("text and numbers are always JSON") }
        return Array(data)
    }
}

extension RecordedExchange {
    /// A part that no message can have: a writer leaves the exchange out, and a reader refuses its line.
    struct Flaw: Sendable, Equatable {
        /// The part, as in a list of what was left out.
        let part: String
        /// The problem and the remedy, for who has edited the line.
        let complaint: String

        init(_ part: String, _ complaint: String) { (self.part, self.complaint) = (part, complaint) }
    }

    /// The first part that HTTP does not allow; nil if the exchange can be replayed.
    var flaw: Flaw? {
        if !MessageSyntax.isMethod(request.method) {
            return Flaw("method", "\"\(request.method.printable)\" is not a method; write it as \"GET\"")
        }
        if !MessageSyntax.isTarget(request.target) {
            return Flaw("target", "\"\(request.target.printable)\" is not a path; write it as \"/users?page=2\"")
        }
        if !MessageSyntax.finalStatuses.contains(response.status) {
            let (least, most) = (MessageSyntax.finalStatuses.lowerBound, MessageSyntax.finalStatuses.upperBound)
            let complaint = "is not the status of a final response; write one from \(least) to \(most)"
            return Flaw("status", "\(response.status) \(complaint)")
        }
        if let delay = response.delay, !Response.delays.contains(delay) {
            let most = Response.delays.upperBound
            return Flaw("delay", "\(delay) is not a delay in milliseconds; write one from 0 to \(most)")
        }
        // JSON can spell characters that no message can contain.
        guard
            let line = ((request.fields ?? []) + response.fields).first(where: { !Self.isField($0) })
                ?? (request.method == "HEAD" ? response.fields.first { !Self.isLength($0) } : nil)
        else { return nil }
        return Flaw("fields", "\"\(line.printable)\" is not a field line; write each line as a string of its own")
    }

    private static func isField(_ line: String) -> Bool {
        let parts = line.utf8.split(separator: 0x3A, maxSplits: 1, omittingEmptySubsequences: false)
        return parts.count == 2 && MessageSyntax.isFieldName(parts[0]) && MessageSyntax.isFieldValue(parts[1])
    }

    /// False for a `Content-Length` that is no number; true for any other field.
    private static func isLength(_ line: String) -> Bool {
        let field = Fields(recorded: [line]).lines.first
        return field.map { !$0.isNamed("content-length") || MessageSyntax.isLength($0.value) } ?? true
    }

    /// Parses a line of the usual form; nil for any other, which the decoder must parse or reject.
    ///
    /// The decoder took half of the time until a large recording was ready.
    init?(line: [UInt8]) {
        guard let root = JSONOutline(line), let upstream = root["upstream"]?.text,
            let request = root["request"].flatMap(Request.init), let response = root["response"].flatMap(Response.init)
        else { return nil }
        self.init(upstream: upstream, request: request, response: response)
        guard root.read("credential", \.integer, into: &credential), root.read("time", \.text, into: &arrivalTime),
            root.read("session", \.text, into: &session)
        else { return nil }
    }
}

extension RecordedExchange.Request {
    fileprivate init?(_ node: JSONOutline) {
        guard let method = node["method"]?.text, let target = node["target"]?.text else { return nil }
        self.init(method: method, target: target)
        guard node.read("fields", \.texts, into: &fields), node.read("body", \.text, into: &body) else { return nil }
    }
}

extension RecordedExchange.Response {
    fileprivate init?(_ node: JSONOutline) {
        guard let status = node["status"]?.integer, let fields = node["fields"]?.texts else { return nil }
        self.init(status: status, fields: fields)
        guard node.read("body", \.text, into: &body), node.read("delay", \.integer, into: &delay) else { return nil }
    }
}

extension JSONOutline {
    /// Reads a member that may be absent; returns false if it is there in another form.
    fileprivate func read<Value>(_ name: StaticString, _ form: (Self) -> Value?, into value: inout Value?) -> Bool {
        guard let member = self[name] else { return true }
        value = form(member)
        return value != nil
    }

    /// The elements of a list of strings; nil for any other value.
    fileprivate var texts: [String]? {
        guard let elements else { return nil }
        let texts = elements.compactMap(\.text)
        return texts.count == elements.count ? texts : nil
    }
}

extension Fields {
    /// The field lines in a recording's form.
    ///
    /// A value that is not UTF-8 is read as ISO 8859-1, as field values once were.
    var recorded: [String] {
        lines.map { line in
            let value =
                String(validating: line.value, as: UTF8.self)
                ?? String(String.UnicodeScalarView(line.value.map { Unicode.Scalar($0) }))
            return "\(String(decoding: line.name, as: UTF8.self)): \(value)"
        }
    }

    /// Reads a recording's field lines; a line without a colon is left out.
    package init(recorded: [String]) {
        let fields = recorded.compactMap { line -> Field? in
            let bytes = Array(line.utf8)
            guard let colon = bytes.firstIndex(of: 0x3A), colon > 0 else { return nil }
            let value = bytes[(colon + 1)...].drop { $0 == 0x20 || $0 == 0x09 }
            return Field(name: Array(bytes[..<colon]), value: Array(value))
        }
        self.init(fields)
    }
}

/// Converts times to and from a recording's form.
enum RecordingTime {
    /// Formats a time, such as `2026-11-23T03:47:00.123Z`; one that the form cannot have becomes the nearest.
    static func text(_ seconds: Double) -> String {
        let possible = min(max(seconds.isNaN ? 0 : seconds, 0), 253_402_300_799)
        return Timestamp.text(milliseconds: Int64((possible * 1000).rounded()))
    }

    /// Parses a time; fractions are cut off.
    static func seconds(_ text: String) -> Int64? { Timestamp(Array(text.utf8)).map { Int64($0.seconds) } }
}
