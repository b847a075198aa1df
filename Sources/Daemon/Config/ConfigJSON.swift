/// A JSON value to be written, members in the order given.
indirect enum ConfigJSON: Sendable, Equatable {
    case null
    case boolean(Bool)
    case number(Int)
    case string(String)
    case array([ConfigJSON])
    case object([(String, ConfigJSON)])

    static func == (left: ConfigJSON, right: ConfigJSON) -> Bool { left.text == right.text }

    /// On one line.
    var text: String {
        var result = ""
        write(to: &result, indentation: nil)
        return result
    }

    /// On many lines, two spaces to a level.
    var prettyText: String {
        var result = ""
        write(to: &result, indentation: "")
        return result
    }

    private func write(to result: inout String, indentation: String?) {
        switch self {
        case .null: result += "null"
        case .boolean(let value): result += value ? "true" : "false"
        case .number(let value): result += "\(value)"
        case .string(let value): Self.write(value, to: &result)
        case .array(let elements):
            Self.write(elements, between: "[", "]", to: &result, indentation) { element, indentation, result in
                element.write(to: &result, indentation: indentation)
            }
        case .object(let members):
            Self.write(members, between: "{", "}", to: &result, indentation) { member, indentation, result in
                Self.write(member.0, to: &result)
                result += indentation == nil ? ":" : ": "
                member.1.write(to: &result, indentation: indentation)
            }
        }
    }

    private static func write<Element>(
        _ elements: [Element],
        between open: String,
        _ close: String,
        to result: inout String,
        _ indentation: String?,
        _ writeOne: (Element, String?, inout String) -> Void
    ) {
        guard !elements.isEmpty else {
            result += open + close
            return
        }
        let inner = indentation.map { $0 + "  " }
        result += open
        for (index, element) in elements.enumerated() {
            if index > 0 { result += "," }
            if let inner { result += "\n" + inner }
            writeOne(element, inner, &result)
        }
        if let indentation { result += "\n" + indentation }
        result += close
    }

    private static func write(_ string: String, to result: inout String) {
        result += "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case "\u{0}"..."\u{1F}":
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        result += "\""
    }
}
