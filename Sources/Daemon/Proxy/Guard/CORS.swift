import HTTPSemantics

/// The origins whose pages may use Larder from a browser, and the fields for them (the Fetch standard's CORS protocol).
package struct CORS: Sendable, Equatable {
    /// Origins as browsers spell them, `http://localhost:3000`; `*` allows all but `null`.
    private let origins: [[UInt8]]
    private let allowsAny: Bool

    init(origins: [String] = []) {
        // A trailing slash is a common slip in configurations; browsers never send one.
        self.origins = origins.map { text in
            var bytes = FieldSyntax.lowercased(text.utf8)
            if bytes.last == 0x2F { bytes.removeLast() }
            return bytes
        }
        allowsAny = origins.contains("*")
    }

    /// Whether pages of this origin may use Larder; `null`, the origin of sandboxed and local pages, never is.
    func allows(_ origin: [UInt8]) -> Bool {
        let lowercased = FieldSyntax.lowercased(origin)
        if lowercased.elementsEqual("null".utf8) || lowercased.contains(0x2C) { return false }
        return allowsAny || origins.contains(lowercased)
    }

    /// The fields for the response to an allowed origin, besides `Vary: Origin`.
    ///
    /// The upstream's own `Access-Control-*` fields must be removed first, because they concern the upstream's origin.
    func fields(for origin: [UInt8]) -> Fields {
        // Pages may send no credentials; with them `*` would be a literal name.
        Fields([Field("Access-Control-Allow-Origin", origin), Field("Access-Control-Expose-Headers", "*")])
    }

    /// The fields of the 204 that responds to a preflight from an allowed origin.
    func preflightFields(for origin: [UInt8], request: Fields) -> Fields {
        var fields: Fields = [:]
        fields.append("Access-Control-Allow-Origin", origin)
        if let method = request[first: "access-control-request-method"], FieldSyntax.isToken(method) {
            fields.append("Access-Control-Allow-Methods", method)
        }
        let lines = request.all("access-control-request-headers")
        let names = lines.flatMap { FieldSyntax.members($0) }.filter { FieldSyntax.isToken($0) }
        let list = Array(names.joined(separator: [0x2C, 0x20]))
        if !list.isEmpty { fields.append("Access-Control-Allow-Headers", list) }
        if request.text("access-control-request-private-network") == "true" {
            fields.append("Access-Control-Allow-Private-Network", "true")
        }
        // The seconds for which a browser may remember it.
        fields.append("Access-Control-Max-Age", "600")
        fields.append("Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers")
        return fields
    }

    /// Removes the upstream's own `Access-Control-*` fields.
    static func removeFields(from fields: inout Fields) {
        fields.removeAll { $0.lowercasedName.hasPrefix("access-control-") }
    }
}
