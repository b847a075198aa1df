import CCompression
import HTTPSemantics

/// Removes a content coding from a body as it arrives (RFC 9110 §8.4.1).
///
/// libcurl can decode too, but accepts a truncated body as complete, and rejects a gzip file of several members
/// (RFC 1952 §2.2). For one thread.
final class ContentDecoder {
    /// The body does not conform to its coding.
    struct Malformed: Error {
        let reason: String
    }

    /// The supported codings, as a value for `Accept-Encoding`.
    static let codings = "gzip, deflate, br, zstd"

    private let algorithm: any Algorithm
    private var hasInput = false
    /// The number of bytes that follow the coded body and are no part of it.
    private var trailingBytes = 0
    /// The largest number of them that is ignored.
    private static let trailingLimit = 256 << 10

    enum Coding {
        case gzip, deflate, brotli, zstandard

        /// The one coding that a `Content-Encoding` names besides `identity`; nil if it names none, several or an unknown one.
        init?(named field: String) {
            let names = field.lowercased().split { $0 == "," || $0 == " " || $0 == "\t" }.filter { $0 != "identity" }
            switch names {
            case ["gzip"], ["x-gzip"]: self = .gzip
            case ["deflate"]: self = .deflate
            case ["br"]: self = .brotli
            case ["zstd"]: self = .zstandard
            default: return nil
            }
        }
    }

    init(_ coding: Coding) {
        algorithm =
            switch coding {
            case .gzip: Inflater(.gzip)
            case .deflate: Inflater(.deflate)
            case .brotli: BrotliDecoder()
            case .zstandard: ZstandardDecoder()
            }
    }

    /// Decodes into `room`, and removes the consumed bytes from the front of the input.
    ///
    /// Bytes after the end are ignored, as browsers do: some servers pad a body, or append to it.
    ///
    /// - Returns: The number of bytes written; 0 if more input is needed.
    func decode(_ input: inout UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) throws(Malformed)
        -> Int
    {
        if !input.isEmpty { hasInput = true }
        // Of these the algorithm may take some before it sees that they begin nothing.
        let size = input.count
        if !hasTrailingBytes {
            do throws(Malformed) {
                let count = try algorithm.decode(&input, room)
                if count > 0 || input.isEmpty { return count }
            } catch {
                guard algorithm.isBetweenMembers else { throw error }
            }
        }
        trailingBytes += size
        input = UnsafeRawBufferPointer(start: nil, count: 0)
        guard trailingBytes <= Self.trailingLimit else { throw Malformed(reason: "too many bytes follow its end") }
        return 0
    }

    /// Whether bytes followed the end that are no part of the coded body.
    var hasTrailingBytes: Bool { trailingBytes > 0 }

    /// Whether the input so far is a complete coded body, checksums included; an empty one is complete, too.
    var isAtEnd: Bool { !hasInput || hasTrailingBytes || algorithm.isAtEnd }
}

private typealias Malformed = ContentDecoder.Malformed

/// A library's decoder for one coding.
private protocol Algorithm: AnyObject {
    /// Decodes into the room; leaves input that follows the end and begins nothing new.
    func decode(_ input: inout UnsafeRawBufferPointer, _ room: UnsafeMutableRawBufferPointer) throws(Malformed) -> Int
    var isAtEnd: Bool { get }
    /// Whether one member has ended, and nothing has been decoded of a next one.
    var isBetweenMembers: Bool { get }
}

/// Decodes gzip, and deflate with or without zlib's frame, because servers differ.
private final class Inflater: Algorithm {
    enum Format { case gzip, deflate }

    private let format: Format
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    private var isReady = false
    private(set) var isAtEnd = false
    private var hasEnded = false
    var isBetweenMembers: Bool { hasEnded && (isAtEnd || stream.pointee.total_out == 0) }

    init(_ format: Format) {
        self.format = format
        stream.initialize(to: z_stream())
    }

    deinit {
        if isReady { inflateEnd(stream) }
        stream.deallocate()
    }

    func decode(_ input: inout UnsafeRawBufferPointer, _ room: UnsafeMutableRawBufferPointer) throws(Malformed) -> Int {
        while true {
            if isAtEnd {
                // Another member may follow (RFC 1952 §2.2).
                guard format == .gzip, input.first == 0x1F else { return 0 }
                inflateReset(stream)
                isAtEnd = false
            }
            if !isReady {
                guard let first = input.first else { return 0 }
                // A zlib frame begins with 8 in the lower half of its first byte (RFC 1950 §2.2), raw deflate never does.
                let windowBits = format == .gzip ? 31 : first & 0x0F == 8 ? 15 : -15
                let isMade = larder_inflate_init(stream, Int32(windowBits)) == Z_OK
                precondition(isMade, "out of memory for zlib")
                isReady = true
            }
            let start = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
            stream.pointee.next_in = UnsafeMutablePointer(mutating: start)
            stream.pointee.avail_in = uInt(input.count)
            stream.pointee.next_out = room.baseAddress?.assumingMemoryBound(to: UInt8.self)
            stream.pointee.avail_out = uInt(room.count)
            let status = inflate(stream, Z_NO_FLUSH)
            input = UnsafeRawBufferPointer(rebasing: input.suffix(Int(stream.pointee.avail_in)))
            let written = room.count - Int(stream.pointee.avail_out)
            switch status {
            case Z_STREAM_END: (isAtEnd, hasEnded) = (true, true)
            case Z_OK, Z_BUF_ERROR: break
            default: throw Malformed(reason: stream.pointee.msg.map { String(cString: $0) } ?? "not compressed")
            }
            // A member may be empty, and another one may follow.
            if written > 0 || input.isEmpty || status == Z_BUF_ERROR { return written }
        }
    }
}

private final class BrotliDecoder: Algorithm {
    private let state: OpaquePointer
    private(set) var isAtEnd = false
    var isBetweenMembers: Bool { isAtEnd }

    init() {
        guard let state = BrotliDecoderCreateInstance(nil, nil, nil)
        else { preconditionFailure("out of memory for brotli") }
        self.state = state
    }

    deinit { BrotliDecoderDestroyInstance(state) }

    func decode(_ input: inout UnsafeRawBufferPointer, _ room: UnsafeMutableRawBufferPointer) throws(Malformed) -> Int {
        if isAtEnd { return 0 }
        var (leftIn, leftOut) = (input.count, room.count)
        var nextIn = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        var nextOut = room.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let result = BrotliDecoderDecompressStream(state, &leftIn, &nextIn, &leftOut, &nextOut, nil)
        input = UnsafeRawBufferPointer(rebasing: input.suffix(leftIn))
        if result == BROTLI_DECODER_RESULT_ERROR {
            let text = BrotliDecoderErrorString(BrotliDecoderGetErrorCode(state)).map { String(cString: $0) }
            throw Malformed(reason: text ?? "not compressed")
        }
        if result == BROTLI_DECODER_RESULT_SUCCESS { isAtEnd = true }
        return room.count - leftOut
    }
}

private final class ZstandardDecoder: Algorithm {
    private let context: OpaquePointer
    private(set) var isAtEnd = false
    private(set) var isBetweenMembers = false

    init() {
        guard let context = ZSTD_createDCtx() else { preconditionFailure("out of memory for zstd") }
        self.context = context
        // 8 MiB, the window that a client must support (RFC 9659 §3).
        ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, 23)
    }

    deinit { ZSTD_freeDCtx(context) }

    func decode(_ input: inout UnsafeRawBufferPointer, _ room: UnsafeMutableRawBufferPointer) throws(Malformed) -> Int {
        var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
        var target = ZSTD_outBuffer(dst: room.baseAddress, size: room.count, pos: 0)
        repeat {
            // Another frame may follow, or a skippable one (RFC 8878 §3.1).
            if isAtEnd, source.pos < source.size, !Self.mayBegin(input[source.pos]) { break }
            let before = source.pos
            let rest = ZSTD_decompressStream(context, &target, &source)
            guard ZSTD_isError(rest) == 0 else { throw Malformed(reason: String(cString: ZSTD_getErrorName(rest))) }
            // A frame has ended when nothing is left to flush. Without input the library returns the size it expects of the next
            // one.
            if source.pos > before || target.pos > 0 { isAtEnd = rest == 0 }
            if isAtEnd { isBetweenMembers = true } else if target.pos > 0 { isBetweenMembers = false }
        } while target.pos == 0 && source.pos < source.size
        input = UnsafeRawBufferPointer(rebasing: input.suffix(source.size - source.pos))
        return target.pos
    }

    /// Whether a frame, or a skippable one, may begin with this byte.
    private static func mayBegin(_ byte: UInt8) -> Bool { byte == 0x28 || byte & 0xF0 == 0x50 }
}

/// Checks a body that is passed on in its content codings: whether each of them ends where the body ends.
final class CodingCheck {
    /// The outermost coding first.
    private let decoders: [ContentDecoder]
    private let rooms: [UnsafeMutableRawBufferPointer]
    private var decodedBytes = 0
    /// Whether the body does not conform to its codings, as far as is looked at.
    private(set) var isMalformed = false

    /// The largest content that is looked at, with that of all codings together.
    private static let byteLimit = 64 << 20
    private static let maxCodings = 3

    /// Nil if there is no coding, or the outermost one is unknown.
    init?(_ fields: Fields) {
        let codings = DecodedBody.codings(fields).reversed().prefix(Self.maxCodings)
        let known = codings.map { ContentDecoder.Coding(named: $0) }.prefix { $0 != nil }
        guard !known.isEmpty else { return nil }
        decoders = known.compactMap(\.self).map(ContentDecoder.init)
        rooms = decoders.map { _ in .allocate(byteCount: 32 << 10, alignment: 16) }
    }

    deinit { for room in rooms { room.deallocate() } }

    func received(_ bytes: UnsafeRawBufferPointer) {
        guard !isMalformed else { return }
        do { try decode(bytes, 0) } catch { isMalformed = true }
    }

    private func decode(_ bytes: UnsafeRawBufferPointer, _ level: Int) throws(Malformed) {
        guard level < decoders.count else { return }
        var input = bytes
        while case let count = try decoders[level].decode(&input, into: rooms[level]), count > 0 {
            decodedBytes += count
            guard decodedBytes <= Self.byteLimit else { throw Malformed(reason: "too large") }
            try decode(UnsafeRawBufferPointer(rebasing: rooms[level][..<count]), level + 1)
        }
    }

    var hasTrailingBytes: Bool { decoders.contains(where: \.hasTrailingBytes) }

    /// Whether the body so far is complete, by each of its codings.
    var isAtEnd: Bool { decoders.allSatisfy(\.isAtEnd) }
}

/// Decodes bodies that are already complete, such as those in files of other tools.
package enum DecodedBody {
    /// The body without its content coding; nil if the coding is unknown or the body does not conform to it.
    ///
    /// - Parameters:
    ///   - limit: The maximum size of the decoded body in bytes.
    ///   - allowsMore: Whether other bytes may follow the end, as many files have them.
    package static func decode(_ body: [UInt8], coding: String, limit: Int, allowsMore: Bool = false) -> [UInt8]? {
        guard let coding = ContentDecoder.Coding(named: coding) else { return nil }
        let decoder = ContentDecoder(coding)
        var room = [UInt8](repeating: 0, count: 64 << 10)
        var result: [UInt8] = []
        let isWhole = body.withUnsafeBytes { input in
            var rest = input
            while true {
                guard let count = try? room.withUnsafeMutableBytes({ try decoder.decode(&rest, into: $0) })
                else { return false }
                result += room[..<count]
                if result.count > limit { return false }
                if count == 0 {
                    return rest.isEmpty && decoder.isAtEnd && (allowsMore || !decoder.hasTrailingBytes)
                }
            }
        }
        return isWhole ? result : nil
    }

    /// The largest content of a compressed file that is looked at, in bytes.
    private static let fileLimit = 64 << 20

    /// The content of a compressed file, which no field announces, with its coding; nil if the body is no such file, or is damaged.
    package static func ofFile(_ body: [UInt8]) -> (content: [UInt8], coding: String)? {
        guard let coding = coding(ofFile: body),
            let content = decode(body, coding: coding, limit: fileLimit, allowsMore: true), !content.isEmpty
        else { return nil }
        return (content, coding)
    }

    /// The coding by the first bytes; with `deflate`, only decoding shows whether it is one.
    private static func coding(ofFile body: [UInt8]) -> String? {
        guard body.count > 4 else { return nil }
        if body.starts(with: [0x1F, 0x8B, 8]) { return "gzip" }
        if body.starts(with: [0x28, 0xB5, 0x2F, 0xFD]) { return "zstd" }
        if body[0] == 0x78 { return (UInt(body[0]) << 8 | UInt(body[1])) % 31 == 0 ? "deflate" : nil }
        return body[0] >= 0x7F ? "deflate" : nil
    }
}
