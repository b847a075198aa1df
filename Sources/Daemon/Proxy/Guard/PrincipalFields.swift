/// The request fields and query parameters that say whose data is asked for (law 4).
///
/// In the shared reading (`shared: true`) `Authorization` is none of them: there an answer to a request with one is stored
/// only if the upstream itself says that it is for all (`public`, `must-revalidate`, `s-maxage`: RFC 9111 §3.5), and then it
/// is, whatever `Authorization` the next request has. Other credentials divide principals in both readings.
struct PrincipalFields: Sendable, Equatable {
    /// Lower-case names of fields, in configured order.
    let fieldNames: [String]
    /// Lower-case names of query parameters, without the `?`.
    let parameterNames: [String]
    private let fieldBytes: [[UInt8]]
    private let parameterBytes: [[UInt8]]
    /// Lower-case names of the fields that are credentials, whether they divide principals or not: none is ever stored.
    private let secretNames: [String]

    /// - Parameters:
    ///   - names: of fields, and of query parameters with a `?` before them. Case does not matter.
    ///   - isShared: whether RFC 9111 is read as a shared cache reads it.
    init(_ names: [String] = Settings.Upstream.defaultPrincipal, isShared: Bool = false) {
        secretNames = names.filter { !$0.hasPrefix("?") }.map { $0.lowercased() } + (isShared ? ["authorization"] : [])
        fieldNames = secretNames.filter { !isShared || $0 != "authorization" }
        parameterNames = names.filter { $0.hasPrefix("?") }.map { $0.dropFirst().lowercased() }
        fieldBytes = fieldNames.map { Array($0.utf8) }
        parameterBytes = parameterNames.map { Array($0.utf8) }
    }

    /// Whether a field of this name, in any case, says whose data is asked for.
    @inline(__always)
    func has(field name: UnsafeRawBufferPointer) -> Bool {
        for field in fieldBytes where FieldSyntax.equalsIgnoringCase(name, field) { return true }
        return false
    }

    /// Whether a query may hold one of the parameters; true also where an escape hides the name.
    ///
    /// For the hit path; the exact answer is `canonical`'s.
    func mayHaveParameter(in query: UnsafeRawBufferPointer) -> Bool {
        if parameterBytes.isEmpty { return false }
        var start = 0
        while start < query.count {
            var end = start
            while end < query.count, query[end] != 0x26, query[end] != 0x3D {
                if query[end] == 0x25 { return true }
                end += 1
            }
            let name = UnsafeRawBufferPointer(rebasing: query[start..<end])
            for parameter in parameterBytes where FieldSyntax.equalsIgnoringCase(name, parameter) { return true }
            while end < query.count, query[end] != 0x26 { end += 1 }
            start = end + 1
        }
        return false
    }

    /// A text that is equal for requests of the same principal, and for those alone; nil for a request without any of the
    /// fields and parameters, which is anonymous.
    ///
    /// It holds credentials: it goes into `PrincipalKey.digest(of:)` and nowhere else. Each part is written with its length,
    /// so that no choice of values can look like another.
    /// - Parameter lines: all lines of the field of this lower-case name, in order.
    func canonical(query: [UInt8]?, lines: (String) -> [[UInt8]]) -> [UInt8]? {
        var text: [UInt8] = []
        for name in fieldNames {
            for value in lines(name) {
                Self.append(name, value, to: &text)
            }
        }
        if let query, !parameterBytes.isEmpty {
            for parameter in query.split(separator: 0x26) {
                guard let index = parameterIndex(of: parameter) else { continue }
                let value = parameter.firstIndex(of: 0x3D).map { Array(parameter[($0 + 1)...]) } ?? []
                Self.append("?" + parameterNames[index], value, to: &text)
            }
        }
        return text.isEmpty ? nil : text
    }

    func canonical(query: [UInt8]?, fields: Fields) -> [UInt8]? {
        canonical(query: query) { name in fields.lines.filter { $0.isNamed(name) }.map(\.value) }
    }

    private static func append(_ name: String, _ value: [UInt8], to text: inout [UInt8]) {
        text += "\(name.utf8.count):\(name)\(value.count):".utf8
        text += value
    }

    /// Which of the configured parameters this `name=value` is; its name may be escaped.
    private func parameterIndex(of parameter: ArraySlice<UInt8>) -> Int? {
        let name = FieldSyntax.lowercased(TargetNormaliser.unescaped(parameter.prefix { $0 != 0x3D }))
        return parameterBytes.firstIndex(of: name)
    }
}

extension PrincipalFields {
    private static let mark = Array("REDACTED".utf8)

    /// The target with the values of the principal's query parameters replaced: what is stored and logged.
    ///
    /// Two targets that become equal by it belong to different principals, whose documents are kept apart anyway.
    func redacted(target: [UInt8]) -> [UInt8] {
        guard !parameterBytes.isEmpty, let mark = target.firstIndex(of: 0x3F) else { return target }
        let parts = target[(mark + 1)...].split(separator: 0x26, omittingEmptySubsequences: false)
        guard parts.contains(where: { parameterIndex(of: $0) != nil }) else { return target }
        let redacted = parts.map { part -> [UInt8] in
            guard parameterIndex(of: part) != nil, let equals = part.firstIndex(of: 0x3D) else { return Array(part) }
            return Array(part[...equals]) + Self.mark
        }
        return Array(target[...mark]) + Array(redacted.joined(separator: [0x26]))
    }

    func redacted(url: String) -> String {
        String(decoding: redacted(target: Array(url.utf8)), as: UTF8.self)
    }

    /// The fields with the values of the principal's own, of proxy credentials and of new cookies replaced, and with the
    /// parameters in URLs that fields carry (`Location`, `Link`, `Content-Location`, `Referer`) redacted.
    func redacted(_ fields: Fields) -> Fields {
        Fields(
            fields.lines.map { line in
                let name = line.lowercasedName
                if secretNames.contains(name) || name == "proxy-authorization" || name == "set-cookie" {
                    return Field(name: line.name, value: Self.mark)
                }
                switch name {
                case "location", "content-location", "referer":
                    return Field(name: line.name, value: redacted(target: line.value))
                case "link": return Field(name: line.name, value: redacted(link: line.value))
                default: return line
                }
            }
        )
    }

    /// Redacts between `<` and `>` of each link.
    private func redacted(link value: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var rest = value[...]
        while let open = rest.firstIndex(of: 0x3C), let close = rest[open...].firstIndex(of: 0x3E) {
            result += rest[...open]
            result += redacted(target: Array(rest[(open + 1)..<close]))
            rest = rest[close...]
        }
        return result + rest
    }
}
