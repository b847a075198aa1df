/// An entity tag: an opaque string, weak or strong (RFC 9110 §8.8.3).
package struct EntityTag: Sendable, Equatable {
    package var isWeak: Bool
    /// The bytes between the quotes; backslashes are literal.
    package var opaque: [UInt8]

    init(isWeak: Bool, opaque: [UInt8]) { (self.isWeak, self.opaque) = (isWeak, opaque) }

    /// Parses one entity tag that fills the whole value; nil for anything else, such as an unquoted one.
    package init?(_ value: some Collection<UInt8>) {
        var bytes = Array(value)[...]
        isWeak = bytes.starts(with: [0x57, 0x2F])
        if isWeak { bytes.removeFirst(2) }
        guard bytes.count >= 2, bytes.first == 0x22, bytes.last == 0x22 else { return nil }
        let opaque = bytes.dropFirst().dropLast()
        guard opaque.allSatisfy({ $0 == 0x21 || (0x23...0x7E).contains($0) || $0 >= 0x80 }) else { return nil }
        self.opaque = Array(opaque)
    }

    package var bytes: [UInt8] { (isWeak ? [0x57, 0x2F] : []) + [0x22] + opaque + [0x22] }

    /// Whether both are strong and have the same bytes (RFC 9110 §8.8.3.2).
    package func matchesStrongly(_ other: EntityTag) -> Bool { !isWeak && !other.isWeak && opaque == other.opaque }

    /// Whether both have the same bytes, weak or not.
    package func matchesWeakly(_ other: EntityTag) -> Bool { opaque == other.opaque }

    /// Whether Larder made the tag, for a response composed of newer objects; no upstream knows such tags.
    package var isOwn: Bool { opaque.starts(with: "larder-".utf8) }
}

/// The value of `If-Match` or `If-None-Match`: any, or a list of tags.
package enum EntityTagCondition: Sendable, Equatable {
    case any
    case tags([EntityTag])

    /// Parses all lines of the field; nil if there are none.
    ///
    /// Members that are not entity tags match nothing. `*` counts only if it stands alone.
    package init?(lines: [[UInt8]]) {
        guard !lines.isEmpty else { return nil }
        // Unlike in a quoted string, a backslash escapes nothing in an entity tag.
        let members = lines.flatMap { FieldSyntax.members($0[...], escapes: false) }
        if members.count == 1, members[0].elementsEqual([0x2A]) {
            self = .any
        } else {
            self = .tags(members.compactMap { EntityTag($0) })
        }
    }

    /// Compares weakly, as for `If-None-Match`.
    package func matchesWeakly(_ tag: EntityTag?) -> Bool {
        switch self {
        case .any: true
        case .tags(let tags): tag.map { tag in tags.contains { $0.matchesWeakly(tag) } } ?? false
        }
    }

    /// The condition without Larder's own tags, which must not go upstream; nil if no tag remains.
    package var withoutOwn: EntityTagCondition? {
        guard case .tags(let tags) = self else { return self }
        let foreign = tags.filter { !$0.isOwn }
        return foreign.isEmpty ? nil : .tags(foreign)
    }

    package var namesOwn: Bool { if case .tags(let tags) = self { tags.contains(where: \.isOwn) } else { false } }

    /// The condition in the field's syntax.
    package var bytes: [UInt8] {
        switch self {
        case .any: [0x2A]
        case .tags(let tags): Array(tags.map(\.bytes).joined(separator: [0x2C, 0x20]))
        }
    }
}
