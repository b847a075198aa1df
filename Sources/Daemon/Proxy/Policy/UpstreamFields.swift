/// The request fields that go to the upstream.
enum UpstreamFields {
    /// Removed from every request: Larder's own business, the client's connection, and what lets a page or a client
    /// pretend to be another (DESIGN: Guard).
    private static let removed: Set<String> = [
        "host", "content-length", "expect", "accept-encoding",
        "forwarded", "x-http-method-override", "x-http-method", "x-method-override",
        // Answered here, see `Guard`; the upstream would see the origin of a page that does not concern it.
        "origin", "access-control-request-method", "access-control-request-headers",
        "access-control-request-private-network",
    ]

    private static let removedPrefixes = ["x-forwarded-", "larder-", "sec-fetch-"]

    static let conditional: Set<String> = [
        "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range",
    ]

    /// What is sent on of a client's request.
    ///
    /// - Parameter removingConditions: true where Larder asks for itself and puts its own conditions, if any.
    static func make(from request: Fields, removingConditions: Bool) -> Fields {
        var result = Fields(
            request.withoutHopByHop().lines.filter { line in
                let name = line.lowercasedName
                return !removed.contains(name)
                    && !removedPrefixes.contains { name.hasPrefix($0) }
                    && !(removingConditions && conditional.contains(name))
            }
        )
        Preconditions.stripOwnValidators(&result)
        Via.append(to: &result)
        return result
    }
}

/// The `Via` field (RFC 9110 §7.6.3).
enum Via {
    /// Adds Larder to the list of intermediaries; several lines become one.
    static func append(to fields: inout Fields) {
        let known = fields.all("via")
        fields.remove("via")
        let own = Array("1.1 larder".utf8)
        fields.lines.append(
            Field(name: Array("Via".utf8), value: Array((known + [own]).joined(separator: [0x2C, 0x20])))
        )
    }

    /// How often a request may have been through a Larder.
    private static let limit = 8

    /// Whether the request has been through this Larder's kind so often that it must be going in circles.
    static func isLoop(_ fields: Fields) -> Bool {
        fields.all("via").flatMap { FieldSyntax.members($0) }.count { member in
            member.split(separator: 0x20).dropFirst().first.map { $0.elementsEqual("larder".utf8) } ?? false
        } >= limit
    }
}
