/// An error in reading or writing a recording: its place, the problem, and the remedy.
package struct RecordingError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The file, below the folder as the user wrote it.
    package let file: String
    /// Counted from 1; nil if the error is not in a line.
    package let line: Int?
    package let reason: String

    package init(_ file: String, line: Int? = nil, _ reason: String) {
        self.file = file
        self.line = line
        self.reason = reason
    }

    package var description: String { "\(file)\(line.map { ":\($0)" } ?? ""): \(reason)" }
}
