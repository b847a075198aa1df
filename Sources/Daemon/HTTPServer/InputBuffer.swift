/// Bytes of one connection that could not be consumed on arrival: partial heads, pipelined requests.
///
/// An empty buffer holds no memory. Most connections read into the worker's buffer and never need one.
struct InputBuffer: ~Copyable {
    private var memory: UnsafeMutablePointer<UInt8>?
    private var capacity = 0
    private var start = 0
    private var end = 0

    init() {}

    deinit {
        memory?.deallocate()
    }

    var count: Int { end - start }
    var isEmpty: Bool { start == end }

    /// The first byte; valid until the next change, and only when the buffer is not empty.
    var base: UnsafeMutablePointer<UInt8> { memory! + start }

    /// Appends a copy of the bytes.
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

    mutating func filled(_ count: Int) {
        end += count
    }

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
