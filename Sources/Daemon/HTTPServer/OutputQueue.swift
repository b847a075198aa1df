import EventLoops
import Glibc

/// The bytes that the socket has not accepted yet, in order.
struct OutputQueue {
    private struct Piece {
        var bytes: [UInt8]
        var offset: Int
        var end: Int
        var count: Int { end - offset }
    }

    private var pieces: [Piece] = []
    private var first = 0
    private(set) var byteCount = 0

    /// Pieces up to this size are merged, so that chunk heads do not cost a vector each.
    private static let smallPiece = 1024
    private static let vectorsPerCall = 8
    /// The number of bytes offered to the kernel per call, so that a large response does not delay the others.
    private static let bytesPerCall = 1 << 20

    var isEmpty: Bool { byteCount == 0 }

    /// Appends a part of an array, which is shared.
    mutating func append(_ bytes: [UInt8], from offset: Int = 0, to end: Int? = nil) {
        let end = end ?? bytes.count
        guard offset < end else { return }
        byteCount += end - offset
        if end - offset <= Self.smallPiece, first < pieces.count,
            pieces[pieces.count - 1].bytes.count <= Self.smallPiece,
            pieces[pieces.count - 1].end == pieces[pieces.count - 1].bytes.count
        {
            pieces[pieces.count - 1].bytes += bytes[offset..<end]
            pieces[pieces.count - 1].end += end - offset
        } else {
            pieces.append(Piece(bytes: bytes, offset: offset, end: end))
        }
    }

    /// Offers the queued bytes to the socket; returns the number it accepted.
    mutating func send(to descriptor: Int32) -> SystemCall.Outcome<Int> {
        let outcome = withUnsafeTemporaryAllocation(of: iovec.self, capacity: Self.vectorsPerCall) { vectors in
            gather(first, 0, 0, vectors, descriptor)
        }
        if case .done(let count) = outcome { took(count) }
        return outcome
    }

    /// Fills the vectors recursively: each piece's closure keeps its bytes in place.
    private func gather(
        _ index: Int,
        _ filled: Int,
        _ offered: Int,
        _ vectors: UnsafeMutableBufferPointer<iovec>,
        _ descriptor: Int32
    ) -> SystemCall.Outcome<Int> {
        guard index < pieces.count, filled < vectors.count, offered < Self.bytesPerCall else {
            return SocketCall.send(descriptor, UnsafeMutableBufferPointer(rebasing: vectors[..<filled]))
        }
        let piece = pieces[index]
        let count = min(piece.count, Self.bytesPerCall - offered)
        return piece.bytes.withUnsafeBytes { bytes in
            vectors[filled] = iovec(
                iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress! + piece.offset),
                iov_len: count
            )
            return gather(index + 1, filled + 1, offered + count, vectors, descriptor)
        }
    }

    private mutating func took(_ count: Int) {
        byteCount -= count
        var rest = count
        while rest > 0 {
            let used = min(rest, pieces[first].count)
            pieces[first].offset += used
            rest -= used
            if pieces[first].count == 0 {
                pieces[first].bytes = []
                first += 1
            }
        }
        if first == pieces.count {
            pieces.removeAll(keepingCapacity: pieces.count < 32)
            first = 0
        } else if first > 64 {
            pieces.removeFirst(first)
            first = 0
        }
    }
}
