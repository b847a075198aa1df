import HTTPSemantics

/// The field `Larder-Position`: what a client has seen of an upstream, through whichever machine of a fleet.
///
/// Its text is `NAME=EPOCH-MILLISECONDS-NUMBER`, after the upstream's name: a position means nothing in another's stream.
enum PositionField {
    static let name = "Larder-Position"

    enum Wish: Sendable, Equatable {
        /// To be told the position, of whatever response.
        case position
        /// The same, and a response that is not older than this position.
        case from(FleetPosition)
        /// The same, but Larder has not written this text: the upstream is asked.
        case unreadable
    }

    /// The wish in a request's fields for an upstream; nil if they have no such field.
    ///
    /// Of several positions the latest counts; those of other upstreams do not.
    static func wish(_ fields: Fields, of upstream: String) -> Wish? {
        guard fields.contains(.larderPosition) else { return nil }
        var wish = Wish.position
        for line in fields.all("larder-position") {
            for member in line.split(separator: 0x2C) {
                let text = String(decoding: FieldSyntax.trimmed(member), as: UTF8.self)
                guard !text.isEmpty else { continue }
                guard let (name, position) = read(text) else { return .unreadable }
                guard name == upstream else { continue }
                if case .from(let known) = wish { wish = .from(max(known, position)) } else { wish = .from(position) }
            }
        }
        return wish
    }

    /// Adds the position of a response; without one, `Cache-Status` says that the machine is alone.
    static func add(_ position: FleetPosition?, to fields: inout Fields, of upstream: String) {
        if let position { return fields.set(name, text(position, of: upstream)) }
        guard let index = fields.lastIndex(where: { $0.isNamed(.cacheStatus) }) else { return }
        let value = fields[index].value
        guard let detail = value.firstRange(of: Array("; detail=".utf8)) else {
            return fields.replaceValue(at: index, by: value + Array("; detail=alone".utf8))
        }
        let end = value[detail.upperBound...].firstIndex(of: 0x3B) ?? value.endIndex
        fields.replaceValue(at: index, by: Array(value[..<end]) + Array("+alone".utf8) + Array(value[end...]))
    }

    static func text(_ position: FleetPosition, of upstream: String) -> String {
        "\(upstream)=\(position.epoch)-\(position.entry.text)"
    }

    private static func read(_ text: String) -> (upstream: Substring, FleetPosition)? {
        guard let mark = text.lastIndex(of: "="), mark > text.startIndex else { return nil }
        let numbers = text[text.index(after: mark)...].split(separator: "-", omittingEmptySubsequences: false)
        guard numbers.count == 3, let epoch = number(numbers[0]), let time = number(numbers[1]),
            let rest = number(numbers[2])
        else { return nil }
        return (text[..<mark], FleetPosition(epoch: epoch, entry: EntryID(time, rest)))
    }

    /// A number as Larder writes it: digits alone.
    private static func number(_ text: Substring) -> UInt64? {
        text.utf8.allSatisfy { 0x30...0x39 ~= $0 } ? UInt64(text) : nil
    }
}
