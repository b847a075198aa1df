/// Names an upstream in the store: by its name in the configuration and its URL.
///
/// So data of another origin or base path is never mistaken for this upstream's, and is found again when the
/// configuration changes back. Only listings and the journal use labels instead; see `ObjectStore.objects`.
public struct UpstreamKey: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible {
    /// As it is stored and exchanged.
    public let rawValue: String

    /// Takes a key from its text.
    @inlinable public init(rawValue: String) { self.rawValue = rawValue }

    /// The key of an upstream by its name, which has no space, and the canonical spelling of its origin and base path.
    public init(name: String, url: String) { rawValue = "\(name) \(url)" }

    /// The upstream's name in the configuration.
    public var name: String { String(rawValue.prefix { $0 != " " }) }

    public var description: String { rawValue }

    @inlinable public static func < (left: UpstreamKey, right: UpstreamKey) -> Bool { left.rawValue < right.rawValue }
}

/// In JSON it is a string, and as the key of a dictionary the name of a member.
extension UpstreamKey: Codable, CodingKeyRepresentable {}
