package import HTTPSemantics

/// The request fields that go to the upstream.
package enum UpstreamFields {
    /// Fields removed from every request: Larder's own, those of the client's connection, and those with which a page or a
    /// client could impersonate another.
    private static let removed: Set<String> = [
        "host", "content-length", "expect", "accept-encoding",
        "forwarded",
        // Handled by `Guard`.
        "access-control-request-method", "access-control-request-headers", "access-control-request-private-network",
    ]

    /// Those of them that most requests have, found without a text.
    private static let knownRemoved: KnownFields = [.host, .contentLength, .acceptEncoding]

    /// Fields that most requests have, and that go upstream as they are.
    private static let plain: KnownFields = [
        .accept, .acceptLanguage, .userAgent, .contentType, .authorization, .cookie,
    ]

    private static let removedPrefixes = ["x-forwarded-", "larder-", "sec-fetch-"]

    /// The names of the conditional fields, in lower case (RFC 9110 §13.1).
    package static let conditional: Set<String> = [
        "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range",
    ]

    /// Whether the fields of a request contain a condition.
    static func areConditional(_ fields: Fields) -> Bool { conditional.contains { fields.contains($0) } }

    /// The fields of a client's request to forward.
    ///
    /// - Parameters:
    ///   - removingConditions: True if Larder makes the request on its own and adds its own conditions, if any.
    ///   - origin: How to treat `Origin`; by default no upstream learns the origin of an unrelated page.
    ///   - passesView: Whether the upstream may be a Larder that knows views unknown to this one.
    package static func make(
        from request: Fields,
        removingConditions: Bool,
        origin: OriginHandling = .drop,
        passesView: Bool = false
    ) -> Fields {
        var result = request.withoutHopByHop().filter { line in
            if line.isOne(of: plain) { return true }
            if line.isOne(of: knownRemoved) { return false }
            let name = dashed(line.lowercasedName)
            if name == "origin" { return origin == .pass }
            if name == "larder-view" { return passesView }
            return !removed.contains(name)
                && !removedPrefixes.contains { name.hasPrefix($0) }
                && !(removingConditions && conditional.contains(name))
        }
        if case .replace(let value) = origin { result.append("Origin", value) }
        Preconditions.stripOwnValidators(&result)
        Via.append(to: &result)
        return result
    }

    private static let methodOverrides: Set<String> = ["x-http-method-override", "x-http-method", "x-method-override"]

    /// Whether a field of this name names another method than the request line.
    package static func overridesMethod(_ name: [UInt8]) -> Bool {
        methodOverrides.contains(dashed(String(decoding: FieldSyntax.lowercased(name), as: UTF8.self)))
    }

    /// The name as gateways such as CGI and WSGI read it, to which `_` and `-` are the same.
    private static func dashed(_ name: String) -> String {
        name.utf8.contains(0x5F) ? name.replacing("_", with: "-") : name
    }
}

/// How `Origin` is sent to the upstream.
package enum OriginHandling: Sendable, Equatable {
    case drop
    /// The client's value is passed on.
    case pass
    /// This value is sent with every request.
    case replace(String)
}

/// The `Via` field (RFC 9110 §7.6.3).
package enum Via {
    /// Adds Larder to the list of intermediaries; several lines become one.
    package static func append(to fields: inout Fields) {
        if fields.contains(.via) {
            fields.append(member: Array("1.1 larder".utf8), to: "Via")
        } else {
            fields.append("Via", "1.1 larder")
        }
    }

    /// The number of times a request may pass through a Larder.
    private static let maximumPasses = 8

    /// Whether the request has passed through a Larder so often that it must be looping.
    package static func isLoop(_ fields: Fields) -> Bool {
        fields.all(.via).flatMap { FieldSyntax.members($0) }.count { member in
            member.split(separator: 0x20).dropFirst().first.map { $0.elementsEqual("larder".utf8) } ?? false
        } >= maximumPasses
    }
}
