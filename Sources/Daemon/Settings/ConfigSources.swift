/// The files that a config is made of, the one that was asked for first.
///
/// They share one space of lines, as a compiler's sources do: each begins after the last line of the one before. So a
/// `Place` says by itself which file it is in, and a node may move into another file's tree.
struct ConfigSources {
    private struct File {
        let name: String
        /// Lines before its first one.
        let offset: Int
        let lines: [Substring]
    }

    private var files: [File] = []
    /// Lines of all files so far.
    private var count = 0

    /// The file that was asked for.
    var mainName: String { files.first?.name ?? "" }

    /// Adds a file; gives the number of lines before its first.
    mutating func add(_ name: String, text: String) -> Int {
        // What YAML 1.1 takes for a line's end, each of them: more than there are will do, fewer won't.
        let ends: Set<Unicode.Scalar> = ["\n", "\r", "\u{85}", "\u{2028}", "\u{2029}"]
        let offset = count
        count += text.unicodeScalars.reduce(1) { ends.contains($1) ? $0 + 1 : $0 }
        files.append(
            File(name: name, offset: offset, lines: text.split(separator: "\n", omittingEmptySubsequences: false))
        )
        return offset
    }

    /// The file that a place is in, and where it is there; without a place, the file that was asked for.
    func resolve(_ place: Place?) -> (file: String, place: Place?) {
        guard let place, let file = file(of: place) else { return (mainName, place) }
        return (file.name, Place(line: place.line - file.offset, column: place.column))
    }

    /// "line 7", or "line 7 of base.yaml" where that is another file than the one the reader looks at.
    func words(for place: Place?, seenFrom other: Place?) -> String {
        let (there, here) = (resolve(place), resolve(other))
        let line = "line \(there.place?.line ?? 0)"
        return there.file == here.file ? line : "\(line) of \(there.file)"
    }

    /// The text of the line that a place is in.
    func line(_ place: Place?) -> Substring {
        guard let place, let file = file(of: place) else { return "" }
        let index = place.line - file.offset - 1
        return file.lines.indices.contains(index) ? file.lines[index] : ""
    }

    private func file(of place: Place) -> File? { files.last { $0.offset < place.line } }
}
