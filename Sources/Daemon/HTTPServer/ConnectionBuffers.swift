import EventLoops
import Glibc

/// Bytes of one connection that could not be consumed on arrival: partial heads, pipelined requests.
///
/// An empty buffer holds no memory. Most connections read into the worker's buffer and never need one.
struct InputBuffer: ~Copyable {
    private var memory: UnsafeMutablePointer<UInt8>?
    /// The bytes of memory that it holds.
    private(set) var capacity = 0
    private var start = 0
    private var end = 0

    init() {}

    deinit { memory?.deallocate() }

    var count: Int { end - start }
    var isEmpty: Bool { start == end }

    /// The first byte; valid until the next change, and only when the buffer is not empty.
    var base: UnsafeMutablePointer<UInt8> { memory! + start }

    mutating func append(_ bytes: UnsafePointer<UInt8>, count: Int) {
        let room = makeRoom(count)
        room.baseAddress!.update(from: bytes, count: count)
        end += count
    }

    /// Makes room for at least `least` bytes at the end; the caller then reports the bytes written with `filled`.
    mutating func makeRoom(_ least: Int) -> UnsafeMutableBufferPointer<UInt8> {
        if capacity - end < least {
            let needed = count + least
            if needed <= capacity, let memory {
                memory.update(from: memory + start, count: count)
            } else {
                var larger = max(capacity, 1024)
                while larger < needed { larger *= 2 }
                let fresh = UnsafeMutablePointer<UInt8>.allocate(capacity: larger)
                if let memory {
                    fresh.update(from: memory + start, count: count)
                    memory.deallocate()
                }
                memory = fresh
                capacity = larger
            }
            end -= start
            start = 0
        }
        return UnsafeMutableBufferPointer(start: memory! + end, count: capacity - end)
    }

    mutating func filled(_ count: Int) { end += count }

    /// Drops the first bytes, and frees the memory when none is left.
    mutating func drop(_ count: Int) {
        start += count
        if start == end { free() }
    }

    private mutating func free() {
        memory?.deallocate()
        memory = nil
        (capacity, start, end) = (0, 0, 0)
    }
}

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
        guard index < pieces.count, filled < vectors.count, offered < Self.bytesPerCall
        else { return SocketCall.send(descriptor, UnsafeMutableBufferPointer(rebasing: vectors[..<filled])) }
        let piece = pieces[index]
        let count = min(piece.count, Self.bytesPerCall - offered)
        return piece.bytes.withUnsafeBytes { bytes in
            let start = UnsafeMutableRawPointer(mutating: bytes.baseAddress! + piece.offset)
            vectors[filled] = iovec(iov_base: start, iov_len: count)
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

/// A reusable buffer for the fields that change from hit to hit.
///
/// A handler keeps one, clears it before each response and allocates nothing.
package struct SmallBuffer: ~Copyable {
    private var memory: UnsafeMutableRawBufferPointer
    private(set) var count = 0

    package init(capacity: Int = 1024) { memory = .allocate(byteCount: max(64, capacity), alignment: 16) }

    deinit { memory.deallocate() }

    /// The bytes written so far; valid until the next change.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[..<count]) }
    var isEmpty: Bool { count == 0 }

    package mutating func clear() { count = 0 }

    package mutating func append(_ text: StaticString) {
        append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    package mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress else { return }
        reserve(bytes.count)
        (memory.baseAddress! + count).copyMemory(from: source, byteCount: bytes.count)
        count += bytes.count
    }

    package mutating func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { append($0) } }

    @inline(__always)
    private mutating func reserve(_ more: Int) {
        if count + more > memory.count { grow(by: more) }
    }

    private mutating func grow(by more: Int) {
        let capacity = max(memory.count * 2, count + more)
        let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 16)
        larger.copyMemory(from: bytes)
        memory.deallocate()
        memory = larger
    }
}
