import Yams

/// `recording.yaml`: the version of the format, and the config for interpreting the exchanges.
package struct RecordingManifest: Sendable {
    /// The version that this Larder writes, and the newest that it reads.
    package static let format = 1

    /// The keys of the recording itself; all others belong to the config.
    private static let ownKeys = ["format", "recorded"]

    /// When the recording began.
    package var recorded: String?
    /// The text with the recording's own keys blanked out, so that positions in it are those of the file.
    package var config: String

    package init(recorded: String?, config: String) {
        self.recorded = recorded
        self.config = config
    }

    /// Reads the file of a folder.
    package static func read(_ folder: RecordingFolder) throws(RecordingError) -> RecordingManifest {
        let file = folder.manifest
        if RecordingReplacement.isPending(in: folder) { _ = try RecordingLock(folder) }
        guard folder.hasManifest else {
            throw RecordingError(
                folder.path,
                "there is no recording (no \(RecordingFolder.manifestName)); make one with `larder record \(folder.path) "
                    + "--upstream URL`, or with --record once of `larder run`"
            )
        }
        let bytes = try folder.read(file, limit: 8 << 20)
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw RecordingError(file, "the file is not UTF-8 text; save it as UTF-8")
        }
        let root: Node?
        do {
            root = try Yams.compose(yaml: text)
        } catch {
            throw RecordingError(file, "this is not YAML: \(error)")
        }
        guard let format = root?["format"]?.scalar?.string else {
            throw RecordingError(
                file,
                "the file names no format; a recording of this version has \"format: \(Self.format)\""
            )
        }
        guard let number = Int(format), number > 0 else {
            throw RecordingError(file, "format: \"\(format)\" is no version; write \(Self.format)")
        }
        guard number <= Self.format else {
            throw RecordingError(
                file,
                "the recording has format \(number), and this Larder reads up to \(Self.format); use a newer Larder"
            )
        }
        var lines = text.split(omittingEmptySubsequences: false) { $0.isNewline }.map(String.init)
        for index in lines.indices where ownKeys.contains(where: { lines[index].hasPrefix("\($0):") }) {
            lines[index] = ""
        }
        return RecordingManifest(
            recorded: root?["recorded"]?.scalar?.string,
            config: lines.joined(separator: "\n")
        )
    }

    /// The text of the file.
    var text: String {
        """
        # A recording of Larder: what a program asked of an API, and the responses it got.
        # Replay it: larder replay FOLDER, or larder run FOLDER -- COMMAND. See docs/replay.md.
        format: \(Self.format)
        \(recorded.map { "recorded: \($0)\n" } ?? "")\(config)
        """
    }
}
