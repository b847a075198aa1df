import HTTPSemantics

/// Decodes the chunked coding of a request body as it arrives (RFC 9112 §7.1).
///
/// Extensions are skipped and trailers are dropped, both within bounds. Anything malformed is refused.
struct ChunkedDecoder {
    enum Step: Equatable {
        /// This range of the bytes belongs to the body.
        case body(Range<Int>)
        /// All bytes are consumed, and the body is not complete.
        case needsMore
        /// The body ended before this offset.
        case end(Int)
        case refused(RequestFault)
    }

    private enum State {
        case sizeStart, size, afterSize, `extension`, sizeLineFeed
        case data, dataReturn, dataLineFeed
        case trailerStart, trailerName, trailerValue, trailerLineFeed, lastLineFeed
        case end
    }

    private var state = State.sizeStart
    private var remaining = 0
    private var digits = 0
    /// The number of bytes in extensions so far, over the whole body.
    private var extensionBytes = 0
    private var trailerBytes = 0
    private var trailerLines = 0
    private let maxTrailer: Int
    private let maxTrailerLines: Int
    private let classes = ByteClass.table

    private static let maxExtensions = 16 * 1024

    init(limits: HTTPLimits) {
        maxTrailer = limits.maxHead
        maxTrailerLines = limits.maxFields
    }

    /// Reads from `bytes[offset...]` up to the next piece of body, the end of the body, or the end of the bytes.
    mutating func next(_ bytes: UnsafeRawBufferPointer, from offset: inout Int) -> Step {
        while offset < bytes.count {
            if state == .data {
                let count = min(remaining, bytes.count - offset)
                remaining -= count
                if remaining == 0 { state = .dataReturn }
                offset += count
                return .body((offset - count)..<offset)
            }
            if let fault = read(bytes[offset]) { return .refused(fault) }
            offset += 1
            if state == .end { return .end(offset) }
        }
        return .needsMore
    }

    private mutating func read(_ byte: UInt8) -> RequestFault? {
        switch state {
        case .sizeStart, .size, .afterSize, .extension, .sizeLineFeed: return readSizeLine(byte)
        case .dataReturn: return expect(0x0D, byte, then: .dataLineFeed)
        case .dataLineFeed: return expect(0x0A, byte, then: .sizeStart)
        case .data, .end: return nil
        case .trailerStart, .trailerName, .trailerValue, .trailerLineFeed, .lastLineFeed: return readTrailer(byte)
        }
    }

    private mutating func expect(_ wanted: UInt8, _ byte: UInt8, then next: State) -> RequestFault? {
        state = next
        return byte == wanted ? nil : .badChunk
    }

    private mutating func readSizeLine(_ byte: UInt8) -> RequestFault? {
        switch state {
        case .sizeStart, .size:
            if let digit = FieldSyntax.hexDigit(byte).map(Int.init) {
                digits = state == .sizeStart ? 1 : digits + 1
                remaining = state == .sizeStart ? digit : remaining << 4 | digit
                state = .size
                // 15 digits cannot overflow, and no honest client pads a size with zeros.
                return digits > 15 ? .badChunk : nil
            }
            return state == .size ? endSize(byte) : .badChunk
        case .afterSize:
            // "Bad" white space is allowed before an extension only.
            return byte == 0x20 || byte == 0x09
                ? countExtension() : byte == UInt8(ascii: ";") ? endSize(byte) : .badChunk
        case .extension:
            if byte == 0x0D {
                state = .sizeLineFeed
                return nil
            }
            return classes[Int(byte)] & ByteClass.value == 0 ? .badChunk : countExtension()
        default: return expect(0x0A, byte, then: remaining == 0 ? .trailerStart : .data)
        }
    }

    private mutating func endSize(_ byte: UInt8) -> RequestFault? {
        switch byte {
        case 0x0D: state = .sizeLineFeed
        case UInt8(ascii: ";"): state = .extension
        case 0x20, 0x09: state = .afterSize
        default: return .badChunk
        }
        return byte == 0x0D ? nil : countExtension()
    }

    private mutating func countExtension() -> RequestFault? {
        extensionBytes += 1
        return extensionBytes > Self.maxExtensions ? .chunkExtensionTooLong : nil
    }

    private mutating func readTrailer(_ byte: UInt8) -> RequestFault? {
        trailerBytes += 1
        if trailerBytes > maxTrailer { return .badTrailer }
        let kind = classes[Int(byte)]
        switch state {
        case .trailerStart where byte == 0x0D: state = .lastLineFeed
        case .trailerStart:
            trailerLines += 1
            state = .trailerName
            if kind & ByteClass.token == 0 || trailerLines > maxTrailerLines { return .badTrailer }
        case .trailerName where byte == UInt8(ascii: ":"): state = .trailerValue
        case .trailerName:
            if kind & ByteClass.token == 0 { return .badTrailer }
        case .trailerValue where byte == 0x0D: state = .trailerLineFeed
        case .trailerValue:
            if kind & ByteClass.value == 0 { return .badTrailer }
        case .trailerLineFeed:
            state = .trailerStart
            if byte != 0x0A { return .badTrailer }
        default:
            state = .end
            if byte != 0x0A { return .badTrailer }
        }
        return nil
    }
}
