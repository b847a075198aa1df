/// The way to a value within an object as a declaration spells it, with steps over arrays.
///
/// Member names are separated by dots; `name[]` is every element of the array at `name`. `\.` is a dot within a name,
/// `\[` a bracket, `\\` a backslash; a backslash before anything else is itself.
struct ValuePath: Sendable, Equatable {
    /// One step.
    enum Step: Sendable, Equatable {
        /// To the member with this name, as UTF-8: names that are canonically equivalent differ in JSON.
        case member([UInt8])
        /// To each element.
        case each
    }

    var steps: [Step]

    init(_ steps: [Step]) { self.steps = steps }

    /// The path to a member by its plain name.
    init(member name: String) { steps = [.member(Array(name.utf8))] }

    /// Reads a spelling; nil if it is empty, has an empty component or ends in a lone backslash.
    init?(_ text: String) {
        steps = []
        var component = Component()
        var isEscaped = false
        for byte in text.utf8 {
            if isEscaped {
                component.append(escaped: byte)
                isEscaped = false
            } else if byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: ".") {
                guard component.finish(&steps) else { return nil }
                component = Component()
            } else {
                component.name.append(byte)
            }
        }
        guard !isEscaped, component.finish(&steps) else { return nil }
    }

    /// The names of the leading steps, up to the first over an array.
    var leadingNames: [[UInt8]] {
        steps.prefix { $0 != .each }.compactMap { if case .member(let name) = $0 { name } else { nil } }
    }

    /// What comes behind the leading names.
    var tail: ArraySlice<Step> { steps.drop { $0 != .each } }

    /// Whether the other path begins with this one and goes on.
    func leads(to other: ValuePath) -> Bool {
        steps.count < other.steps.count && other.steps.starts(with: steps)
    }

    private struct Component {
        var name: [UInt8] = []
        /// The end of the last escape: brackets before it are part of the name.
        private var literalEnd = 0

        mutating func append(escaped byte: UInt8) {
            if byte != UInt8(ascii: "."), byte != UInt8(ascii: "["), byte != UInt8(ascii: "\\") {
                name.append(UInt8(ascii: "\\"))
            }
            name.append(byte)
            literalEnd = name.count
        }

        mutating func finish(_ steps: inout [Step]) -> Bool {
            var arrays = 0
            while name.count >= literalEnd + 2, name.suffix(2).elementsEqual([UInt8(ascii: "["), UInt8(ascii: "]")]) {
                name.removeLast(2)
                arrays += 1
            }
            guard !name.isEmpty else { return false }
            steps.append(.member(name))
            steps += [Step](repeating: .each, count: arrays)
            return true
        }
    }
}
