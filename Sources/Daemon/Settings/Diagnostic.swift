/// A line and column of the config file, both from 1; columns count Unicode scalars.
package struct Place: Sendable, Hashable, Comparable {
    package var line: Int
    package var column: Int

    package static func < (left: Place, right: Place) -> Bool {
        (left.line, left.column) < (right.line, right.column)
    }
}

/// One thing to say about a config: where, what is wrong, and what to write instead.
package struct Diagnostic: Sendable, Equatable, CustomStringConvertible {
    package enum Severity: String, Sendable {
        /// The config is not used.
        case error
        /// It works, but probably not as meant or not as safely as it could.
        case warning
    }

    package var severity: Severity = .error
    package var file: String
    /// nil is about the file as a whole.
    package var place: Place?
    package var message: String

    /// `larder.yaml:3:5: error: …`, which editors and terminals can follow.
    package var description: String {
        let position = place.map { ":\($0.line):\($0.column)" } ?? ""
        return "\(file)\(position): \(severity.rawValue): \(message)"
    }
}

/// A config that cannot be used, with everything there is to say about it.
struct ConfigError: Error, CustomStringConvertible {
    /// In the order of the file; at least one is an error.
    let diagnostics: [Diagnostic]

    init(_ diagnostics: [Diagnostic]) {
        self.diagnostics = diagnostics
    }

    var description: String { diagnostics.map(\.description).joined(separator: "\n") }
}
