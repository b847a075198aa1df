/// Remembers what became of the credentials seen last, so that the hit path need not compute a code for each request.
///
/// It holds credentials, in memory only. Not thread-safe: one belongs to each worker. Only requests whose principal is one
/// single field line are remembered; all others take the long way.
struct PrincipalMemo<Value> {
    private var entries: [(field: Int, credential: [UInt8], value: Value)] = []
    private let capacity: Int

    init(capacity: Int = 8) {
        self.capacity = capacity
    }

    /// What was remembered for this credential.
    ///
    /// - Parameter field: the position of its field in `PrincipalFields.fieldNames`.
    @inline(__always)
    mutating func value(field: Int, credential: UnsafeRawBufferPointer) -> Value? {
        for index in entries.indices
        where entries[index].field == field && entries[index].credential.count == credential.count {
            guard entries[index].credential.elementsEqual(credential) else { continue }
            // The last one used stands first; with few clients it always does.
            if index > 0 { entries.swapAt(index, index - 1) }
            return entries[max(0, index - 1)].value
        }
        return nil
    }

    mutating func remember(_ value: Value, field: Int, credential: UnsafeRawBufferPointer) {
        entries.removeAll { $0.field == field && $0.credential.elementsEqual(credential) }
        if entries.count == capacity { entries.removeLast() }
        entries.insert((field, Array(credential), value), at: 0)
    }

    mutating func forgetAll() {
        entries.removeAll()
    }
}

extension PrincipalFields {
    /// The position in `fieldNames` of the field of this name, in any case; nil when it is none of the principal's.
    @inline(__always)
    func fieldIndex(of name: UnsafeRawBufferPointer) -> Int? {
        for index in fieldBytes.indices where FieldSyntax.equalsIgnoringCase(name, fieldBytes[index]) {
            return index
        }
        return nil
    }

    /// Whether a query may hold one of the principal's parameters; true also where an escape hides the name.
    func mayHoldParameter(_ query: UnsafeRawBufferPointer) -> Bool {
        if parameterBytes.isEmpty { return false }
        var start = 0
        while start < query.count {
            var end = start
            while end < query.count, query[end] != 0x26, query[end] != 0x3D {
                if query[end] == 0x25 { return true }
                end += 1
            }
            let name = UnsafeRawBufferPointer(rebasing: query[start..<end])
            for parameter in parameterBytes where FieldSyntax.equalsIgnoringCase(name, parameter) { return true }
            while end < query.count, query[end] != 0x26 { end += 1 }
            start = end + 1
        }
        return false
    }
}
