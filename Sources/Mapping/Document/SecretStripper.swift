/// Removes secret members, which must not reach the disk, from a body.
struct SecretStripper {
    /// The offsets of their values, in order.
    private let secrets: [Int]
    private var output: [UInt8] = []

    init(secrets: [Int]) {
        self.secrets = secrets.sorted()
    }

    /// The body without its secrets; `body` must be valid JSON.
    mutating func strip(_ body: [UInt8]) -> [UInt8] {
        output = []
        output.reserveCapacity(body.count)
        if let value = JSONSlice(body) { write(value) }
        return output
    }

    private mutating func write(_ value: JSONSlice) {
        guard hasSecret(in: value.range) else { return output.append(contentsOf: value.bytes) }
        switch value.kind {
        case .object:
            output.append(UInt8(ascii: "{"))
            var isFirst = true
            for member in value.members where !isSecret(member.value) {
                if !isFirst { output.append(UInt8(ascii: ",")) }
                isFirst = false
                output.append(contentsOf: value.text[member.nameRange])
                output.append(UInt8(ascii: ":"))
                write(member.value)
            }
            output.append(UInt8(ascii: "}"))
        case .array:
            output.append(UInt8(ascii: "["))
            var isFirst = true
            for element in value.elements where !isSecret(element) {
                if !isFirst { output.append(UInt8(ascii: ",")) }
                isFirst = false
                write(element)
            }
            output.append(UInt8(ascii: "]"))
        default:
            output.append(contentsOf: value.bytes)
        }
    }

    private func isSecret(_ value: JSONSlice) -> Bool {
        let index = first(from: value.range.lowerBound)
        return index < secrets.count && secrets[index] == value.range.lowerBound
    }

    private func hasSecret(in range: Range<Int>) -> Bool {
        let index = first(from: range.lowerBound)
        return index < secrets.count && secrets[index] < range.upperBound
    }

    /// The index of the first secret at or after an offset.
    private func first(from offset: Int) -> Int {
        var (low, high) = (0, secrets.count)
        while low < high {
            let middle = (low + high) / 2
            if secrets[middle] < offset { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
