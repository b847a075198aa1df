package import HTTPSemantics
import RawStructuredFieldValues

/// Response directives from fields that address certain caches, such as `CDN-Cache-Control` (RFC 9213).
package enum TargetedDirectives {
    /// The directives of the first field of the target list that is present, not empty, and well formed.
    ///
    /// Where there is one, it replaces `Cache-Control`, `Expires` and `Pragma` altogether (RFC 9213 §2.2).
    /// - Parameter targets: field names, the most specific first.
    /// - Returns: also the name of the field that was taken; nil when none speaks.
    package static func find(in fields: Fields, targets: [String]) -> (field: String, directives: ResponseDirectives)? {
        for target in targets {
            let lines = fields.lines.filter { $0.isNamed(target.lowercased()) }
            guard !lines.isEmpty, let directives = parse(lines.map(\.value)) else { continue }
            return (target, directives)
        }
        return nil
    }

    /// Reads the lines of one targeted field, a structured dictionary; nil when it is empty or breaks its syntax.
    ///
    /// Unlike in `Cache-Control`, names are in lower case, numbers are not quoted, of repeated members the last counts, and
    /// one mistake anywhere invalidates the whole field (RFC 9213 §2.1). A value of a type that its directive does not have
    /// is not consumed: `max-age="60"` and `max-age=60.5` grant no freshness, `public=1` permits nothing.
    static func parse(_ lines: [[UInt8]]) -> ResponseDirectives? {
        let value = Array(lines.joined(separator: [0x2C, 0x20]))
        var parser = StructuredFieldValueParser(value)
        guard let members = try? parser.parseDictionaryFieldValue(), !members.isEmpty else { return nil }
        var directives = ResponseDirectives()
        for (name, member) in members {
            // Parameters of a directive are ignored; an inner list is a type that no directive has.
            guard case .item(let item) = member else {
                directives.apply(Array(name.utf8), .unreadable)
                continue
            }
            switch item.rfc9651BareItem {
            case .bool(true): directives.apply(Array(name.utf8), .none)
            // `no-store=?0` says in so many words that the directive does not hold.
            case .bool(false):
                if ResponseDirectives.numeric.contains(name) { directives.apply(Array(name.utf8), .unreadable) }
            case .integer(let number) where number >= 0:
                directives.apply(Array(name.utf8), .seconds(min(number, DeltaSeconds.maximum)))
            case .string(let text): directives.apply(Array(name.utf8), .text(Array(text.utf8)))
            case .token(let text): directives.apply(Array(name.utf8), .text(Array(text.utf8)))
            default: directives.apply(Array(name.utf8), .unreadable)
            }
        }
        return directives
    }
}
