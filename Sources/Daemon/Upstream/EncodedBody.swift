import CCompression
package import HTTPSemantics

/// Encodes bodies that are already complete, the same bytes always in the same way.
package enum EncodedBody {
    /// The body with a content coding; nil if the coding is unknown.
    ///
    /// - Parameter model: A body with this coding. With `deflate` it shows whether zlib's frame is used.
    package static func encode(_ body: [UInt8], coding: String, like model: [UInt8]) -> [UInt8]? {
        switch ContentDecoder.Coding(named: coding) {
        case .gzip: deflated(body, windowBits: 31)
        case .deflate: deflated(body, windowBits: model.first.map { $0 & 0x0F == 8 } ?? true ? 15 : -15)
        case .brotli: brotli(body)
        case .zstandard: zstandard(body)
        case nil: nil
        }
    }

    private static func deflated(_ body: [UInt8], windowBits: Int32) -> [UInt8]? {
        var stream = z_stream()
        guard larder_deflate_init(&stream, windowBits) == Z_OK else { return nil }
        defer { deflateEnd(&stream) }
        let room = Int(deflateBound(&stream, uLong(body.count)))
        return body.withUnsafeBufferPointer { input in
            stream.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
            stream.avail_in = uInt(input.count)
            return made(room: room) { output in
                stream.next_out = output.baseAddress
                stream.avail_out = uInt(output.count)
                return deflate(&stream, Z_FINISH) == Z_STREAM_END ? Int(stream.total_out) : nil
            }
        }
    }

    private static func brotli(_ body: [UInt8]) -> [UInt8]? {
        // The best quality takes seconds for a megabyte.
        let quality: Int32 = 5
        return made(room: BrotliEncoderMaxCompressedSize(body.count) + 16) { output in
            var count = output.count
            let isMade = BrotliEncoderCompress(
                quality,
                BROTLI_DEFAULT_WINDOW,
                BROTLI_MODE_GENERIC,
                body.count,
                body,
                &count,
                output.baseAddress
            )
            return isMade == BROTLI_TRUE ? count : nil
        }
    }

    private static func zstandard(_ body: [UInt8]) -> [UInt8]? {
        made(room: ZSTD_compressBound(body.count)) { output in
            let count = ZSTD_compress(output.baseAddress, output.count, body, body.count, 3)
            return ZSTD_isError(count) == 0 ? count : nil
        }
    }

    /// An array that a library fills, which returns how much it has written; nil if it fails.
    private static func made(room: Int, _ fill: (UnsafeMutableBufferPointer<UInt8>) -> Int?) -> [UInt8]? {
        var isMade = false
        let result = [UInt8](unsafeUninitializedCapacity: room) { output, count in
            if let written = fill(output) { (count, isMade) = (written, true) }
        }
        return isMade ? result : nil
    }
}

extension DecodedBody {
    /// The largest content of a body with several codings, or within a recording, in bytes.
    static let byteLimit = 256 << 20

    /// The body without all of its content codings; nil if one is unknown, or the body does not conform to it.
    package static func decode(_ body: [UInt8], _ fields: Fields) -> [UInt8]? {
        var body = body
        for coding in codings(fields).reversed() {
            guard let content = decode(body, coding: coding, limit: byteLimit) else { return nil }
            body = content
        }
        return body
    }

    /// The content codings in the order in which they were applied, in lower case, without `identity`.
    package static func codings(_ fields: Fields) -> [String] {
        FieldSyntax.members(fields.combinedBytes("content-encoding") ?? [])
            .map { String(decoding: FieldSyntax.lowercased($0), as: UTF8.self) }.filter { $0 != "identity" }
    }
}
