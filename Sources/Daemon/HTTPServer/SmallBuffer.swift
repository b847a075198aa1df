/// A reusable buffer for the fields that change from hit to hit.
///
/// A handler keeps one, clears it before each response and allocates nothing.
package struct SmallBuffer: ~Copyable {
    private var memory: UnsafeMutableRawBufferPointer
    private(set) var count = 0

    package init(capacity: Int = 1024) {
        memory = .allocate(byteCount: max(64, capacity), alignment: 16)
    }

    deinit {
        memory.deallocate()
    }

    /// The bytes written so far; valid until the next change.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[..<count]) }

    var isEmpty: Bool { count == 0 }

    package mutating func clear() {
        count = 0
    }

    package mutating func append(_ text: StaticString) {
        append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    package mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress else { return }
        reserve(bytes.count)
        (memory.baseAddress! + count).copyMemory(from: source, byteCount: bytes.count)
        count += bytes.count
    }

    package mutating func append(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { append($0) }
    }

    private mutating func reserve(_ more: Int) {
        guard count + more > memory.count else { return }
        let larger = UnsafeMutableRawBufferPointer.allocate(
            byteCount: max(memory.count * 2, count + more),
            alignment: 16
        )
        larger.copyMemory(from: bytes)
        memory.deallocate()
        memory = larger
    }
}
