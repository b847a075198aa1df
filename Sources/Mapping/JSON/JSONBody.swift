/// Questions about a body that claims to be JSON.
public enum JSONBody {
    /// Whether a text is no JSON, or only the beginning of one.
    ///
    /// What is nested deeper than the scanner goes is not found malformed.
    public static func isMalformed(_ text: [UInt8]) -> Bool {
        text.withUnsafeBufferPointer {
            JSONScanner($0, allowsReferences: true).scanText() == JSONScanner.Failure.malformed
        }
    }

    /// Whether a text is spelled like a JSON number.
    public static func isNumber(_ text: String) -> Bool { Reference.isNumber(text) }
}
