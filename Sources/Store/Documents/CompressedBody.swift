import CCompression

/// Compresses bodies for the file, each as one frame of Zstandard (RFC 8878).
///
/// For one thread.
final class BodyCompressor {
    private let context: OpaquePointer

    /// A smaller body saves less than the work is worth.
    private static let smallest = 1024
    /// Larger bodies would hold up other commits.
    private static let largest = 64 << 20
    /// The fastest of the ordinary levels: on recorded responses of GitHub the next ones save 2 % more.
    private static let level: Int32 = 1

    init() {
        guard let context = ZSTD_createCCtx() else { preconditionFailure("out of memory for zstd") }
        self.context = context
    }

    deinit { ZSTD_freeCCtx(context) }

    /// The frame for a body; nil if it would not be smaller by an eighth.
    func compress(_ body: [UInt8]) -> [UInt8]? {
        guard Self.smallest...Self.largest ~= body.count else { return nil }
        let limit = body.count - body.count / 8
        let frame = [UInt8](unsafeUninitializedCapacity: limit) { room, count in
            // It fails if the room is too small.
            let size = ZSTD_compressCCtx(context, room.baseAddress, limit, body, body.count, Self.level)
            count = ZSTD_isError(size) == 0 ? size : 0
        }
        return body.count <= CompressedBody.largestRatio * frame.count ? frame : nil
    }
}

enum CompressedBody {
    /// How many times larger than its frame a body may be: a damaged or hostile frame must not take all memory.
    static let largestRatio = 1024

    /// The body in a frame.
    static func body(_ frame: UnsafeRawBufferPointer) throws(StoreError) -> [UInt8] {
        // Two large numbers stand for an unknown size and an error.
        let size = ZSTD_getFrameContentSize(frame.baseAddress, frame.count)
        guard size <= largestRatio * frame.count else {
            throw .corrupt("a compressed body has no valid size")
        }
        let body = [UInt8](unsafeUninitializedCapacity: Int(size)) { room, count in
            let written = ZSTD_decompress(room.baseAddress, room.count, frame.baseAddress, frame.count)
            count = ZSTD_isError(written) == 0 ? written : 0
        }
        guard body.count == size else { throw .corrupt("a compressed body is damaged") }
        return body
    }
}
