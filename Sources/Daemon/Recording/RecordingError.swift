/// Why a recording cannot be read or written: where it is, what is wrong, and what to do.
package struct RecordingError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The file, as the person named its folder.
    package let file: String
    /// Counted from 1; nil where the mistake is not in a line.
    package let line: Int?
    package let reason: String

    package init(_ file: String, line: Int? = nil, _ reason: String) {
        self.file = file
        self.line = line
        self.reason = reason
    }

    package var description: String { "\(file)\(line.map { ":\($0)" } ?? ""): \(reason)" }
}
