/// Computes the JSON pointer (RFC 6901) of the value at an offset of valid JSON.
enum JSONPointer {
    /// The pointer to the value that begins at `offset`; the text is scanned up to there.
    static func text(to offset: Int, in text: UnsafeBufferPointer<UInt8>) -> String {
        let scanner = JSONScanner(text, allowsReferences: true)
        var pointer = ""
        var start = scanner.skipSpace(0)
        while start < offset, let step = step(from: start, to: offset, scanner, text) {
            pointer += step.component
            start = step.value
        }
        return pointer
    }

    /// The member or element of the container at `start` in which the offset lies.
    private static func step(
        from start: Int,
        to offset: Int,
        _ scanner: JSONScanner,
        _ text: UnsafeBufferPointer<UInt8>
    ) -> (component: String, value: Int)? {
        let isObject = scanner.byte(start) == UInt8(ascii: "{")
        guard isObject || scanner.byte(start) == UInt8(ascii: "[") else { return nil }
        var position = scanner.skipSpace(start + 1)
        var index = 0
        while position <= offset {
            var component = "/\(index)"
            if isObject {
                let nameEnd = scanner.scanString(position)
                guard nameEnd >= 0 else { return nil }
                let name = JSONString.text(UnsafeBufferPointer(rebasing: text[position..<nameEnd])) ?? "\u{FFFD}"
                component = "/" + escaped(name)
                position = scanner.skipColon(nameEnd)
                guard position >= 0 else { return nil }
            }
            let end = scanner.scanValue(position, depth: 0)
            guard end >= 0 else { return nil }
            if offset < end { return (component, position) }
            position = scanner.skipSpace(end)
            guard scanner.byte(position) == UInt8(ascii: ",") else { return nil }
            position = scanner.skipSpace(position + 1)
            index += 1
        }
        return nil
    }

    /// A name escaped as a component of a pointer.
    static func escaped(_ name: String) -> String {
        guard name.utf8.contains(UInt8(ascii: "~")) || name.utf8.contains(UInt8(ascii: "/")) else { return name }
        var result = ""
        for scalar in name.unicodeScalars {
            switch scalar {
            case "~": result += "~0"
            case "/": result += "~1"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
