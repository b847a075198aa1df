/// The parameters of a URL: after `;` in the path, in the query, where `;` separates as `&` does, and in the fragment.
package struct URLParameters: Sequence, IteratorProtocol {
    package struct Parameter {
        package var name: Range<Int>
        /// The text after the `=`; nil without one.
        package var value: Range<Int>?
    }

    private let url: [UInt8]
    private var position = 0
    private var part = Part.path

    private enum Part { case path, query, fragment }

    package init(_ url: [UInt8]) { self.url = url }

    package mutating func next() -> Parameter? {
        while position < url.count {
            let begins = isBeginning(url[position])
            position += 1
            guard begins else { continue }
            let start = position
            var end = start
            while end < url.count, !isEnd(url[end]) { end += 1 }
            position = end
            guard end > start else { continue }
            let equals = url[start..<end].firstIndex(of: 0x3D)
            return Parameter(name: start..<(equals ?? end), value: equals.map { ($0 + 1)..<end })
        }
        return nil
    }

    private mutating func isBeginning(_ byte: UInt8) -> Bool {
        switch (byte, part) {
        case (0x23, .path), (0x23, .query): part = .fragment
        case (0x3F, .path): part = .query
        case (0x3B, _), (0x26, .query), (0x26, .fragment): break
        default: return false
        }
        return true
    }

    private func isEnd(_ byte: UInt8) -> Bool {
        switch part {
        case .path: byte == 0x3B || byte == 0x2F || byte == 0x3F || byte == 0x23
        case .query: byte == 0x26 || byte == 0x3B || byte == 0x23
        case .fragment: byte == 0x26 || byte == 0x3B
        }
    }
}
