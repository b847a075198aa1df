import Foundation
import HTTPSemantics
import Mapping
import Settings

/// The folder of a recording: its file names, and safe reading and writing, which no name in it can lead outside.
package struct RecordingFolder: Sendable {
    /// The path as the user wrote it, without trailing slashes.
    package let path: String

    static let manifestName = "recording.yaml"
    package static let exchangesName = "exchanges.jsonl"
    static let bodiesName = "bodies"
    /// The files that each recording has, besides its bodies.
    static let fixedNames = [attributesName, manifestName, exchangesName]
    static let attributesName = ".gitattributes"
    /// The largest body that is recorded or replayed, in bytes.
    package static let bodyLimit = 256 << 20

    package init(_ path: String) {
        var path = path
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        self.path = path
    }

    package var manifest: String { "\(path)/\(Self.manifestName)" }
    var exchanges: String { "\(path)/\(Self.exchangesName)" }
    var bodies: String { "\(path)/\(Self.bodiesName)" }
    var attributes: String { "\(path)/\(Self.attributesName)" }

    /// Whether the folder contains a recording; one without any exchange counts as none.
    ///
    /// A damaged one counts, so that reading it says what is wrong.
    package var exists: Bool {
        var status = stat()
        return hasManifest && (lstat(exchanges, &status) != 0 || status.st_size > 0)
    }

    /// Whether the folder contains a recording, even one without exchanges; true where only reading it can show that.
    package var hasManifest: Bool {
        access(manifest, F_OK) == 0 || ![ENOENT, ENOTDIR].contains(errno) || RecordingReplacement.isPending(in: self)
    }

    // MARK: Reading

    /// Reads one of its files; throws if it is not a regular file.
    func read(_ file: String, limit: Int) throws(RecordingError) -> [UInt8] {
        do throws(FileBytesError) {
            return try FileBytes.read(file, limit: limit, isRegular: true).bytes
        } catch { throw RecordingError(file, error.isAbsent ? Self.reason(ENOENT) : error.reason) }
    }

    /// The path of a body, by its name in a line.
    func path(ofBody name: String) throws(RecordingError) -> String {
        let start = "\(Self.bodiesName)/"
        guard name.hasPrefix(start), Self.isName(name.utf8.dropFirst(start.utf8.count)) else {
            throw RecordingError(
                exchanges,
                "\"\(name)\" is not a body of this recording; bodies are named bodies/NAME, with letters, digits, \".\", \"-\" and \"_\""
            )
        }
        return "\(path)/\(name)"
    }

    /// A body, by its name in a line; empty for none.
    package func body(_ name: String?) throws(RecordingError) -> [UInt8] {
        guard let name else { return [] }
        let text = try file(ofBody: name)
        return Self.isIndented(name) ? JSONLayout.compact(text) : text
    }

    /// Whether a body's file has white space that the body has not (`format: 2`).
    static func isIndented(_ name: String) -> Bool { name.hasSuffix(".\(indentedEnding)") }

    static let indentedEnding = "indented.json"

    func file(ofBody name: String) throws(RecordingError) -> [UInt8] {
        let file = try path(ofBody: name)
        do throws(FileBytesError) {
            return try FileBytes.read(name, below: path, limit: Self.bodyLimit)
        } catch { throw RecordingError(file, error.isAbsent ? Self.reason(ENOENT) : error.reason) }
    }

    func whole(_ response: RecordedExchange.Response) throws(RecordingError) -> WholeExchange.Response {
        .init(status: response.status, fields: Fields(recorded: response.fields), body: try body(response.body))
    }

    /// The reason why a body cannot be read; nil if it can.
    func complaint(aboutBody name: String) -> String? {
        let file: String
        do { file = try path(ofBody: name) } catch { return error.reason }
        var status = stat()
        guard lstat(file, &status) == 0 else {
            return errno == ENOENT
                ? "the body \(name) is missing; put the file back, or take \"body\" out of the line"
                : "the body \(name): \(Self.reason(errno))"
        }
        if status.st_mode & S_IFMT == S_IFLNK {
            return "the body \(name) is a symbolic link; put the file itself there"
        }
        guard status.st_mode & S_IFMT == S_IFREG else { return "the body \(name) is not a regular file" }
        guard status.st_size <= Self.bodyLimit else {
            return "the body \(name) has \(status.st_size) bytes; \(Self.bodyLimit) is the most that is replayed"
        }
        return nil
    }

    /// The reason why the folder for bodies cannot be used; nil if it can, or does not exist.
    var complaintAboutBodies: String? {
        guard let kind = Self.kind(bodies), kind != S_IFDIR else { return nil }
        return "this is not a folder, and bodies are read from no other place; put the folder itself there"
    }

    /// What is at a path, such as `S_IFDIR`, links not followed; nil if nothing is.
    static func kind(_ path: String) -> mode_t? {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & S_IFMT : nil
    }

    /// Whether it can be the name of a file in a folder of recordings.
    static func isName(_ name: Substring.UTF8View) -> Bool {
        !name.isEmpty && name.first != UInt8(ascii: ".") && name.isAlphanumeric(or: ".-_")
    }

    // MARK: Writing

    /// Makes the folder and its fixed contents, accessible to its owner only; a folder that exists keeps its mode.
    func create() throws(RecordingError) {
        try Self.makeFolder(path)
        if let complaint = complaintAboutBodies { throw RecordingError(bodies, complaint) }
        try Self.makeFolder(bodies)
        // Bodies are binary: no tool may convert their line ends.
        if access(attributes, F_OK) != 0 { try write(Array("bodies/* -text\n".utf8), to: attributes) }
    }

    /// Makes a folder and those above it, unless they exist.
    static func makeFolder(_ path: String) throws(RecordingError) {
        if let (folder, code) = makeFolders(path) {
            throw RecordingError(folder, "the folder cannot be made: \(Self.reason(code))")
        }
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR
        else { throw RecordingError(path, "this is not a folder; name another one") }
    }

    /// Makes the recording from files supplied by the caller; it is there with all of them, or not at all.
    package func copy(_ files: [String], _ bytes: (String) throws -> [UInt8]) throws {
        guard !exists else { throw RecordingError(path, "there is a recording already; name a new folder") }
        let replacement = try RecordingReplacement(self)
        let draft = replacement.draft
        try draft.create()
        for file in files {
            let target = file.hasPrefix(Self.bodiesName) ? try draft.path(ofBody: file) : "\(draft.path)/\(file)"
            try draft.write(try bytes(file), to: target)
        }
        try replacement.commit()
    }

    func remove() { try? FileManager.default.removeItem(atPath: path) }

    /// Writes a file, replacing any old one, readable by its owner only.
    func write(_ bytes: [UInt8], to file: String) throws(RecordingError) {
        let descriptor = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw RecordingError(file, "the file cannot be written: \(Self.reason(errno))") }
        let failure = Self.writeAll(bytes, to: descriptor)
        close(descriptor)
        if let failure {
            unlink(file)
            throw RecordingError(file, "the file cannot be written: \(failure)")
        }
    }

    /// Writes all bytes; returns the reason if that failed.
    static func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> String? {
        let code = bytes.withUnsafeBytes { Settings.writeAll($0, to: descriptor).code }
        return code == 0 ? nil : reason(code)
    }

    static func reason(_ code: Int32) -> String { code == ENOENT ? "there is no such file" : systemMessage(code) }

    static func ending(of mediaType: String?) -> String {
        let type = mediaType ?? ""
        if let known = endings[type] { return known }
        if type.hasSuffix("+json") { return "json" }
        if type.hasSuffix("+xml") { return "xml" }
        return type.hasPrefix("text/") ? "txt" : "bin"
    }

    private static let endings = [
        "application/json": "json", "application/xml": "xml", "text/xml": "xml", "text/html": "html",
        "text/csv": "csv", "text/css": "css", "text/javascript": "js", "application/javascript": "js",
        "application/x-www-form-urlencoded": "form", "application/x-ndjson": "jsonl", "text/event-stream": "events",
        "application/pdf": "pdf", "application/zip": "zip", "application/gzip": "gz", "image/png": "png",
        "image/jpeg": "jpg", "image/gif": "gif", "image/svg+xml": "svg", "image/webp": "webp", "text/markdown": "md",
        "application/yaml": "yaml", "text/yaml": "yaml", "application/x-yaml": "yaml",
    ]
}
