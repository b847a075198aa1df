import CachePolicy
import Glibc
package import HTTPSemantics

/// What a request is served from a stored response, by its conditions and ranges (RFC 9110 §13.2.2).
package enum ServedContent: Equatable {
    case whole
    /// 304: the client already has it.
    case notModified
    /// 206
    case range(Range<Int>)
    /// 206 with several parts, in the requested order.
    case ranges([Range<Int>])
    /// 416: none of the ranges lies within the body.
    case unsatisfiable

    /// Nil if only parts of the response are known, and they do not contain the requested range.
    package init?(of ready: ReadyResponse, for request: Request, now: Int64) {
        let conditions = Preconditions(fields: request.fields, now: now)
        if conditions.isNotModified(method: request.method, against: ready.validators) {
            self = .notModified
            return
        }
        let selection = Self.selected(by: request, of: ready, now: now)
        if ready.isPartial {
            guard let parts = ready.parts, let held = Self.held(selection, in: parts) else { return nil }
            self = held
        } else {
            self = Self.selected(from: selection, length: ready.body.count)
        }
    }

    /// The ranges that apply; nil if the client gets the whole.
    private static func selected(by request: Request, of ready: ReadyResponse, now: Int64) -> RangeField? {
        guard request.method == "GET", ready.response.status == 200 || ready.isPartial,
            let field = RangeField(lines: request.fields.all("range"))
        else { return nil }
        let condition = request.fields.all("if-range")
        guard !condition.isEmpty else { return field }
        let isPermitted =
            condition.count == 1 && RangeField.permits(ifRange: condition[0], ready.validators, now: now)
        return isPermitted ? field : nil
    }

    private static func selected(from field: RangeField?, length: Int) -> ServedContent {
        switch field?.select(length: length) {
        case nil, .whole: .whole
        case .unsatisfiable: .unsatisfiable
        case .ranges(let ranges): ranges.count == 1 ? .range(ranges[0]) : .ranges(ranges)
        }
    }

    /// The requested ranges from stored parts; nil if they do not contain all of them.
    ///
    /// Only the upstream may say that no range is satisfiable, because the response may have grown.
    private static func held(_ field: RangeField?, in parts: PartialContent) -> ServedContent? {
        let selection = parts.length.map { field?.select(length: $0) } ?? field?.selectWithoutLength()
        guard case .ranges(let ranges) = selection, ranges.allSatisfy({ parts.bytes(in: $0) != nil })
        else { return nil }
        return ranges.count == 1 ? .range(ranges[0]) : .ranges(ranges)
    }

    package func status(of ready: ReadyResponse) -> Int {
        switch self {
        case .whole: ready.response.status
        case .notModified: 304
        case .range, .ranges: 206
        case .unsatisfiable: 416
        }
    }

    /// The response for the client, except for the fields that change with time.
    func message(from ready: ReadyResponse) -> (status: Int, fields: Fields, body: [UInt8]) {
        switch self {
        case .whole: return (ready.response.status, ready.fields, ready.body)
        case .notModified: return (304, StoredFields.notModified(ready.fields), [])
        case .unsatisfiable:
            var fields = Fields()
            fields.append("Content-Range", RangeField.unsatisfiedContentRange(length: ready.body.count))
            fields.append(contentsOf: ready.fields.filter { $0.isNamed(.vary) })
            return (416, fields, [])
        case .range(let range):
            var fields = Self.fieldsOfParts(of: ready)
            fields.append("Content-Range", RangeField.contentRange(range, length: ready.completeLength))
            return (206, fields, Array(ready.bytes(in: range)))
        case .ranges(let ranges):
            var fields = Self.fieldsOfParts(of: ready)
            let message = MultipartByteRanges(
                ranges.map { ($0, ready.bytes(in: $0)) },
                contentType: fields[first: "content-type"],
                length: ready.completeLength
            )
            fields.set("Content-Type", message.contentType)
            return (206, fields, message.body)
        }
    }

    /// These fields concern the bytes sent, which differ now; `Repr-Digest` concerns the whole.
    private static func fieldsOfParts(of ready: ReadyResponse) -> Fields {
        var fields = ready.fields
        for name in ["content-md5", "content-digest", "content-range"] { fields.remove(name) }
        return fields
    }
}

extension ReadyResponse {
    /// The complete length; nil if only parts are known, and the upstream did not give it.
    fileprivate var completeLength: Int? {
        guard let parts else { return body.count }
        return parts.length
    }

    /// The bytes of a range of the whole; the caller has ensured that a part contains them, otherwise empty.
    fileprivate func bytes(in range: Range<Int>) -> ArraySlice<UInt8> {
        guard let parts else { return body[range] }
        return parts.bytes(in: range) ?? []
    }
}

/// Several parts of a response in one body: `multipart/byteranges` (RFC 9110 §14.6).
struct MultipartByteRanges {
    /// The message's `Content-Type`, with the boundary.
    let contentType: String
    let body: [UInt8]

    /// - Parameters:
    ///   - parts: each with its position in the whole.
    ///   - contentType: that of the whole.
    ///   - length: that of the whole; nil if it is unknown.
    init(_ parts: [(range: Range<Int>, bytes: ArraySlice<UInt8>)], contentType: [UInt8]?, length: Int?) {
        let boundary = Self.boundary(outside: parts.map(\.bytes))
        var body: [UInt8] = []
        body.reserveCapacity(parts.reduce(64) { $0 + $1.bytes.count + 192 })
        for part in parts {
            body += "\r\n--\(boundary)\r\n".utf8
            if let contentType { body.append(field: Field("Content-Type", contentType)) }
            body.append(field: Field("Content-Range", RangeField.contentRange(part.range, length: length)))
            body += [0x0D, 0x0A]
            body += part.bytes
        }
        body += "\r\n--\(boundary)--\r\n".utf8
        self.body = body
        self.contentType = "multipart/byteranges; boundary=\(boundary)"
    }

    /// A text that occurs in none of the parts.
    ///
    /// It is random, so that nobody can write a body that contains the next one; the parts are searched nevertheless.
    private static func boundary(outside parts: [ArraySlice<UInt8>]) -> String {
        while true {
            let boundary = "larder_" + UInt64.random(in: .min ... .max).hexadecimal(width: 16)
            if !parts.contains(where: { occurs(Array(boundary.utf8), in: $0) }) { return boundary }
        }
    }

    /// Whether a non-empty text occurs in bytes; searches for the first byte first, because bodies are large.
    static func occurs(_ text: [UInt8], in bytes: ArraySlice<UInt8>) -> Bool {
        bytes.withUnsafeBytes { bytes in
            text.withUnsafeBytes { wanted in
                guard var place = bytes.baseAddress, let start = wanted.baseAddress else { return false }
                let end = place + bytes.count
                while end - place >= wanted.count {
                    guard let found = memchr(place, Int32(wanted[0]), end - place - wanted.count + 1) else { break }
                    if memcmp(found, start, wanted.count) == 0 { return true }
                    place = UnsafeRawPointer(found) + 1
                }
                return false
            }
        }
    }
}
