package import HTTPSemantics

/// The request fields that a response was selected by (RFC 9110 §12.5.5).
package enum VaryField: Sendable, Equatable {
    /// `*`, alone or within a list: no other request can be known to match.
    case any
    /// Lower-case names, sorted, each once; empty without the field.
    case fields([String])

    init(lines: [[UInt8]]) {
        var names: Set<String> = []
        for member in lines.flatMap({ FieldSyntax.members($0) }) {
            if member.elementsEqual([0x2A]) {
                self = .any
                return
            }
            // A member that is no field name can select nothing that a request could carry: it is `*` for all we know.
            guard FieldSyntax.isToken(member) else {
                self = .any
                return
            }
            names.insert(String(decoding: FieldSyntax.lowercased(member), as: UTF8.self))
        }
        self = .fields(names.sorted())
    }

    package init(_ fields: Fields) { self.init(lines: fields.all("vary")) }
}

extension Fields {
    /// Adds names to `Vary`, in one line with what it says already; nothing is repeated, and `*` stays alone.
    package mutating func vary(by names: [String]) {
        guard case .fields(let known) = VaryField(self) else { return }
        let new = names.filter { !known.contains($0.lowercased()) }
        guard !new.isEmpty else { return }
        let lines = all("vary").filter { !$0.isEmpty } + new.map { Array($0.utf8) }
        remove("vary")
        self.lines.append(Field(name: Array("Vary".utf8), value: Array(lines.joined(separator: [0x2C, 0x20]))))
    }
}
