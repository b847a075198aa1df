import Foundation

/// One version of a resource at an origin that knows ranges: one range, `If-Range` by tag, `If-None-Match`.
struct RangedContent: Sendable {
    var body: [UInt8]
    /// As the field spells it; nil: none is sent.
    var tag: String?
    var fields: FieldLines = Fresh.hour

    init(_ body: [UInt8], tag: String? = "\"one\"", _ fields: FieldLines = Fresh.hour) {
        self.body = body
        self.tag = tag
        self.fields = fields
    }

    init(_ text: String, tag: String? = "\"one\"", _ fields: FieldLines = Fresh.hour) {
        self.init(Array(text.utf8), tag: tag, fields)
    }

    /// What an origin that serves this version answers.
    func answer(_ request: Origin.Request) -> OriginResponse {
        var fields = fields + ["Content-Type": "text/plain"]
        if let tag {
            fields.append("ETag", tag)
            if request["If-None-Match"] == tag { return .notModified(fields) }
        }
        if let condition = request["If-Range"], condition != tag { return .body(body, fields) }
        guard let range = request["Range"]?.dropFirst("bytes=".count), !range.contains(",") else {
            return .body(body, fields)
        }
        let ends = range.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
        let selected =
            switch (ends[0], ends[1]) {
            case (nil, let count?): max(0, body.count - count)..<body.count
            case (let start?, let end): start..<max(start, min(body.count, (end ?? .max - 1) + 1))
            default: 0..<0
            }
        guard !selected.isEmpty else {
            return .body([], fields + ["Content-Range": "bytes */\(body.count)"], status: 416)
        }
        return Self.part(selected, of: body, fields)
    }

    /// A 206 that tells the truth.
    static func part(_ range: Range<Int>, of body: [UInt8], _ fields: FieldLines = Fresh.hour) -> OriginResponse {
        let content: FieldLines = ["Content-Range": "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(body.count)"]
        return .body(Array(body[range]), fields + content, status: 206)
    }
}

extension Response {
    /// The parts of a `multipart/byteranges` body: what their `Content-Range` says, and their bytes as text.
    var byteRanges: [[String]] {
        guard let type = self["Content-Type"], type.hasPrefix("multipart/byteranges; boundary=") else { return [] }
        let boundary = type.dropFirst("multipart/byteranges; boundary=".count)
        let pieces = text.components(separatedBy: "\r\n--\(boundary)")
        guard pieces.last == "--\r\n", pieces.first == "" else { return [] }
        return pieces.dropFirst().dropLast().map { piece in
            let halves = piece.components(separatedBy: "\r\n\r\n")
            let range = halves[0].components(separatedBy: "\r\n").first { $0.hasPrefix("Content-Range: ") } ?? ""
            return [String(range.dropFirst("Content-Range: ".count)), halves.dropFirst().joined(separator: "\r\n\r\n")]
        }
    }
}
