import HTTPSemantics

/// The parts of a multipart body (RFC 2046 §5.1).
struct MultipartBody {
    private(set) var parts: [(head: Range<Int>, content: Range<Int>)] = []

    /// More parts are searched for known values only.
    private static let maximumParts = 10_000

    /// - Parameter boundary: As the type says; nil if it says none, so that the body shows whether it has parts.
    init?(_ body: [UInt8], _ boundary: String?) {
        // Some bodies have another one than their type says.
        for delimiter in [boundary.map({ Array("--\($0)".utf8) }), Self.delimiter(of: body)] where parts.isEmpty {
            if let delimiter { read(body, delimiter) }
        }
        if parts.isEmpty { return nil }
    }

    private mutating func read(_ body: [UInt8], _ delimiter: [UInt8]) {
        var (start, position): (Int?, Int) = (nil, 0)
        body.withUnsafeBufferPointer { bytes in
            while parts.count < Self.maximumParts, let place = bytes.place(of: delimiter, from: position) {
                position = place + delimiter.count
                guard place == 0 || bytes[place - 1] == 0x0A else { continue }
                if let start, start <= place { parts.append(Self.part(bytes, start..<place)) }
                guard let line = bytes.place(of: 0x0A, from: position) else { return }
                start = line + 1
            }
            // The last delimiter may be missing. What follows it is a part without a name.
            if let start, start < bytes.count, parts.count < Self.maximumParts {
                parts.append(Self.part(bytes, start..<bytes.count))
            }
        }
    }

    /// The delimiter of a body that begins with one.
    private static func delimiter(of body: [UInt8]) -> [UInt8]? {
        guard body.starts(with: [0x2D, 0x2D]), let end = body.prefix(80).firstIndex(of: 0x0A) else { return nil }
        let head = FieldSyntax.lowercased(body[end..<min(body.count, end + 200)])
        guard head.firstRange(of: Array("content-".utf8)) != nil else { return nil }
        return Array(body[..<(body[end - 1] == 0x0D ? end - 1 : end)])
    }

    private static func part(_ bytes: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) -> (Range<Int>, Range<Int>) {
        var end = range.upperBound
        // The line end before a delimiter belongs to it.
        if end > range.lowerBound, bytes[end - 1] == 0x0A { end -= 1 }
        if end > range.lowerBound, bytes[end - 1] == 0x0D { end -= 1 }
        var line = range.lowerBound
        while line < end, let next = bytes.place(of: 0x0A, from: line), next < end {
            if next == line || next == line + 1 && bytes[line] == 0x0D {
                return (range.lowerBound..<line, next + 1..<end)
            }
            line = next + 1
        }
        // Without an empty line it is all content.
        return (range.lowerBound..<range.lowerBound, range.lowerBound..<max(range.lowerBound, end))
    }
}
