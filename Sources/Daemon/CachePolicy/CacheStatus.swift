package import HTTPSemantics

/// How Larder handled a request (RFC 9211): one member of the `Cache-Status` list.
package struct CacheStatus: Sendable, Equatable {
    /// The reason why the request was forwarded to the upstream.
    package enum Forward: String, Sendable {
        case bypass, method
        case uriMiss = "uri-miss"
        case varyMiss = "vary-miss"
        case miss, request, stale, partial
    }

    /// Nil if the upstream was not asked.
    var forward: Forward?
    /// Whether the request was neither served from the cache nor sent on.
    private(set) var isRefusal = false
    /// The status of the upstream's response, if it differs from that of the response served.
    package var forwardStatus: Int?
    package var isStored = false
    /// Whether the request joined a fetch under way.
    package var isCollapsed = false
    /// The remaining lifetime in seconds; negative once stale.
    package var timeToLive: Int64?
    /// Why the upstream was asked, `composed`, `stale`, `offline`, `replay`, those of `StoredPolicy.overrideDetails`, or a reason.
    package var details: [String] = []

    /// The parameter `detail`; nil for none.
    package var detail: String? { details.isEmpty ? nil : details.joined(separator: "+") }

    package static func hit(timeToLive: Int64? = nil, details: [String] = []) -> CacheStatus {
        CacheStatus(timeToLive: timeToLive, details: details)
    }

    /// The status of a response fetched from the upstream.
    package static func forwarded(
        _ reason: Forward,
        status: Int? = nil,
        isStored: Bool = false,
        isCollapsed: Bool = false
    )
        -> CacheStatus
    {
        CacheStatus(forward: reason, forwardStatus: status, isStored: isStored, isCollapsed: isCollapsed)
    }

    /// The status of a request that was neither served from the cache nor sent on, with the reason.
    package static func refused(_ detail: String) -> CacheStatus { CacheStatus(isRefusal: true, details: [detail]) }

    package var isForwarded: Bool { forward != nil }
    package var isHit: Bool { forward == nil && !isRefusal }

    /// Adds why the upstream was asked, which comes first, unless the details say it already.
    package mutating func add(cause word: String?) {
        if let word, !details.contains(word) { details.insert(word, at: 0) }
    }

    /// The member in the field's syntax, with the parameters in the order of RFC 9211.
    package var text: String { String(decoding: bytes, as: UTF8.self) }

    private var bytes: [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(64)
        text += "larder".utf8
        if let forward {
            text += "; fwd=".utf8
            text += forward.rawValue.utf8
            if let forwardStatus { text += "; fwd-status=\(forwardStatus)".utf8 }
        } else if !isRefusal {
            text += "; hit".utf8
        }
        if let timeToLive {
            text += "; ttl=".utf8
            text += String(Self.bounded(timeToLive)).utf8
        }
        if isStored { text += "; stored".utf8 }
        if isCollapsed { text += "; collapsed".utf8 }
        if let detail { text += "; detail=\(Self.item(detail))".utf8 }
        return text
    }

    /// Adds this member to the field, after the upstream's, because each cache appends itself.
    package func append(to fields: inout Fields) {
        guard fields.contains(.cacheStatus) else { return fields.append("Cache-Status", bytes) }
        fields.append(member: bytes, to: "Cache-Status")
    }

    /// The text as a token if possible, else as a quoted string.
    private static func item(_ detail: String) -> String {
        let bytes = Array(detail.utf8)
        let isToken =
            bytes.first.map { FieldSyntax.isTokenByte($0) && !FieldSyntax.isDigit($0) && $0 | 0x20 >= 0x61 } ?? false
            && bytes.allSatisfy { FieldSyntax.isTokenByte($0) || $0 == 0x3A || $0 == 0x2F }
        guard !isToken else { return detail }
        return FieldSyntax.quoted(String(decoding: bytes.filter { (0x20...0x7E).contains($0) }, as: UTF8.self))
    }

    /// Limits a number to the fifteen digits of a structured field's integer.
    private static func bounded(_ number: Int64) -> Int64 {
        min(max(number, -999_999_999_999_999), 999_999_999_999_999)
    }
}

/// Writes the fields that change from hit to hit directly into a buffer.
package enum HitFields {
    /// An upper bound for the bytes that `write` needs.
    package static let capacity = 96

    /// Writes `Age: …` with its CRLF, and `Cache-Status: larder; hit; ttl=…` without one, so that more may follow.
    ///
    /// - Parameter buffer: At least `capacity` bytes.
    @inline(__always)
    package static func write(age: Int64, timeToLive: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        precondition(buffer.count >= capacity, "the buffer is too small for the fields of a hit")
        var end = copy("Age: ", to: buffer, at: 0)
        end = number(min(max(age, 0), DeltaSeconds.maximum), to: buffer, at: end)
        end = copy("\r\nCache-Status: larder; hit; ttl=", to: buffer, at: end)
        return number(min(max(timeToLive, -DeltaSeconds.maximum), DeltaSeconds.maximum), to: buffer, at: end)
    }

    @inline(__always)
    private static func copy(_ text: StaticString, to buffer: UnsafeMutableRawBufferPointer, at start: Int) -> Int {
        let count = text.utf8CodeUnitCount
        UnsafeMutableRawBufferPointer(rebasing: buffer[start..<start + count])
            .copyMemory(from: UnsafeRawBufferPointer(start: text.utf8Start, count: count))
        return start + count
    }

    /// Writes a decimal number; returns the position after it.
    @inline(__always)
    static func number(_ value: Int64, to buffer: UnsafeMutableRawBufferPointer, at start: Int) -> Int {
        var start = start
        if value < 0 {
            buffer[start] = 0x2D
            start += 1
        }
        var rest = value.magnitude
        var count = 1
        while rest >= 10 {
            rest /= 10
            count += 1
        }
        rest = value.magnitude
        var position = start + count
        repeat {
            position -= 1
            buffer[position] = UInt8(0x30 + rest % 10)
            rest /= 10
        } while position > start
        return start + count
    }
}
