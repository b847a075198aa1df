package import HTTPSemantics

/// The request fields that go to the upstream.
package enum UpstreamFields {
    /// Removed from every request: Larder's own business, the client's connection, and what lets a page or a client
    /// pretend to be another (DESIGN: Guard).
    private static let removed: Set<String> = [
        "host", "content-length", "expect", "accept-encoding",
        "forwarded",
        // Answered here, see `Guard`.
        "access-control-request-method", "access-control-request-headers", "access-control-request-private-network",
    ]

    private static let removedPrefixes = ["x-forwarded-", "larder-", "sec-fetch-"]

    package static let conditional: Set<String> = [
        "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range",
    ]

    /// What is sent on of a client's request.
    ///
    /// - Parameters:
    ///   - removingConditions: true where Larder asks for itself and puts its own conditions, if any.
    ///   - origin: what becomes of `Origin`; unless the config says so, no upstream sees the origin of a page that does not
    ///     concern it.
    ///   - passesView: whether the upstream may be a Larder that knows the views which this one does not.
    package static func make(
        from request: Fields,
        removingConditions: Bool,
        origin: OriginHandling = .drop,
        passesView: Bool = false
    ) -> Fields {
        var result = Fields(
            request.withoutHopByHop().lines.filter { line in
                let name = dashed(line.lowercasedName)
                if name == "origin" { return origin == .pass }
                if name == "larder-view" { return passesView }
                return !removed.contains(name)
                    && !removedPrefixes.contains { name.hasPrefix($0) }
                    && !(removingConditions && conditional.contains(name))
            }
        )
        if case .replace(let value) = origin { result.append("Origin", value) }
        Preconditions.stripOwnValidators(&result)
        Via.append(to: &result)
        return result
    }
}

extension UpstreamFields {
    private static let methodOverrides: Set<String> = ["x-http-method-override", "x-http-method", "x-method-override"]

    /// Whether a field names another method than the request line does.
    package static func overridesMethod(_ field: Field) -> Bool {
        methodOverrides.contains(dashed(field.lowercasedName))
    }

    /// The name as gateways such as CGI and WSGI read it, for which `_` and `-` are one.
    private static func dashed(_ name: String) -> String {
        name.utf8.contains(0x5F) ? name.replacing("_", with: "-") : name
    }
}

/// What the upstream sees in `Origin`.
package enum OriginHandling: Sendable, Equatable {
    /// Nothing.
    case drop
    /// What the client sent.
    case pass
    /// This, on every request.
    case replace(String)
}

/// The `Via` field (RFC 9110 §7.6.3).
package enum Via {
    /// Adds Larder to the list of intermediaries; several lines become one.
    package static func append(to fields: inout Fields) {
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
    package static func isLoop(_ fields: Fields) -> Bool {
        fields.all("via").flatMap { FieldSyntax.members($0) }.count { member in
            member.split(separator: 0x20).dropFirst().first.map { $0.elementsEqual("larder".utf8) } ?? false
        } >= limit
    }
}
