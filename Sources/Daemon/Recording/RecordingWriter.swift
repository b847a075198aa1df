import Foundation
import HTTPSemantics
import Mapping
import Proxy
import Settings

/// Writes a recording: first an exchange's bodies, then its line, so that a crash leaves all its lines complete but the last.
///
/// For one thread at a time. The folder is locked while the writer exists: only one process at a time records into it.
package final class RecordingWriter {
    let folder: RecordingFolder
    private let lock: RecordingLock
    /// Whether JSON is indented where that can be undone; readers of older recordings would take it for the body.
    private let indents: Bool
    private var lines: Int32
    private var number: Int
    /// The length of the complete lines.
    private var end: Int
    /// The lowest number for new placeholders: above all those already written.
    let nextPlaceholder: Int
    private(set) var count = 0
    /// The files and folders that this writer has made, in the order in which they can be removed.
    private let made: [String]
    private var unflushed: [String] = []

    /// Opens a folder, or makes it; existing exchanges stay, and new ones are added.
    ///
    /// - Parameter config: For a new recording, the config for interpreting its exchanges.
    package init(_ folder: RecordingFolder, config: String, recorded: Double) throws(RecordingError) {
        self.folder = folder
        let parts = [folder.manifest, folder.exchanges, folder.attributes, folder.bodies, folder.path]
        made = parts.filter { access($0, F_OK) != 0 }
        try folder.create()
        lock = try RecordingLock(folder)
        let isNew = !folder.exists
        lines = open(folder.exchanges, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard lines >= 0 else { throw RecordingError(folder.exchanges, RecordingFolder.reason(errno)) }
        if isNew {
            let manifest = RecordingManifest(recorded: RecordingTime.text(recorded), config: config)
            try folder.write(Array(manifest.text.utf8), to: folder.manifest)
            indents = true
        } else {
            indents = try RecordingManifest.read(folder).format >= RecordingManifest.firstIndented
        }
        let known = ExchangeLines(try folder.read(folder.exchanges, limit: 4 << 30))
        end = known.end
        number = known.ranges.count
        let text = String(decoding: known.bytes, as: UTF8.self)
        nextPlaceholder = 1 + (text.matches(of: /REDACTED-([0-9]{1,9})/).compactMap { Int($0.output.1) }.max() ?? 0)
        // A truncated line, as after a crash, does not count.
        ftruncate(lines, off_t(end))
        lseek(lines, 0, SEEK_END)
        if end > 0, known.bytes[end - 1] != 0x0A, RecordingFolder.writeAll([0x0A], to: lines) == nil { end += 1 }
        for name in (try? FileManager.default.contentsOfDirectory(atPath: folder.bodies)) ?? [] {
            // Larder itself gives no larger number.
            let digits = name.prefix { $0.isNumber }
            if digits.utf8.count < 12 { number = max(number, Int(digits) ?? 0) }
        }
    }

    deinit { close(lines) }

    /// Removes what this writer has made, if the recording has no exchange; nothing may be written afterwards.
    func removeIfEmpty() {
        guard end == 0 else { return }
        // Folders with other files in them stay.
        for path in made where unlink(path) != 0 { rmdir(path) }
    }

    /// Adds an exchange, with its bodies.
    ///
    /// - Throws: The reason why it was not written; the recording is then unchanged.
    func append(_ exchange: RecordedExchange, requestBody: [UInt8], responseBody: [UInt8])
        throws(RecordingError)
    {
        var exchange = exchange
        var written: [String] = []
        do throws(RecordingError) {
            let sent = Fields(recorded: exchange.request.fields ?? [])
            exchange.request.body = try write(requestBody, nextName + ".request", sent, &written)
            let received = Fields(recorded: exchange.response.fields)
            exchange.response.body = try write(responseBody, nextName, received, &written)
            let line = exchange.line + [0x0A]
            if let failure = RecordingFolder.writeAll(line, to: lines) {
                ftruncate(lines, off_t(end))
                lseek(lines, 0, SEEK_END)
                throw RecordingError(folder.exchanges, "the line cannot be written: \(failure)")
            }
            end += line.count
            number += 1
            count += 1
            unflushed += written
        } catch {
            for name in written { unlink("\(folder.path)/\(name)") }
            throw error
        }
    }

    /// The name of the next body, without its ending: six digits at least.
    private var nextName: String {
        let name = String(number + 1)
        return String(repeating: "0", count: max(0, 6 - name.count)) + name
    }

    private func write(_ body: [UInt8], _ name: String, _ fields: Fields, _ written: inout [String])
        throws(RecordingError) -> String?
    {
        guard !body.isEmpty else { return nil }
        let ending = RecordingFolder.ending(of: ProxiedUpstream.mediaType(fields))
        let indented = ending == "json" && indents ? JSONLayout.indented(body) : nil
        let fullName =
            "\(RecordingFolder.bodiesName)/\(name).\(indented == nil ? ending : RecordingFolder.indentedEnding)"
        written.append(fullName)
        try folder.write(indented ?? body, to: "\(folder.path)/\(fullName)")
        return fullName
    }

    /// Changes everything that this writer and earlier ones have written, to remove secrets recognised late.
    ///
    /// A crash leaves each file either unchanged or changed.
    ///
    /// - Parameter change: Given a file's bytes and, if it is the body of a message, the message's fields.
    func rewrite(_ change: ([UInt8], Fields?) -> [UInt8]) throws(RecordingError) {
        let old = try folder.read(folder.exchanges, limit: 4 << 30)
        // Those of the message that each body belongs to, by its name.
        var fields: [String: Fields] = [:]
        let known = ExchangeLines(old)
        for exchange in known.ranges.lazy.compactMap({ RecordedExchange(line: Array(known.bytes[$0])) }) {
            if let body = exchange.request.body { fields[body] = Fields(recorded: exchange.request.fields ?? []) }
            if let body = exchange.response.body { fields[body] = Fields(recorded: exchange.response.fields) }
        }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.bodies)) ?? []
        for name in names.sorted() {
            let path = "\(RecordingFolder.bodiesName)/\(name)"
            // Users may have put any files there.
            guard let old = try? folder.body(path) else { continue }
            let new = change(old, fields[path] ?? Fields())
            if new != old { try replace("\(folder.path)/\(path)", with: new) }
        }
        let new = change(old, nil)
        guard new != old else { return }
        let draft = folder.exchanges + ".new"
        try folder.write(new, to: draft)
        let descriptor = open(draft, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0, rename(draft, folder.exchanges) == 0
        else { throw RecordingError(folder.exchanges, RecordingFolder.reason(errno)) }
        close(lines)
        (lines, end) = (descriptor, new.count)
    }

    /// Replaces a body's file; a crash leaves either the old one or the new one.
    private func replace(_ file: String, with body: [UInt8]) throws(RecordingError) {
        let indented = RecordingFolder.isIndented(file) ? JSONLayout.indented(body) : nil
        try put(indented ?? body, in: file, draft: "\(folder.path)/body.new")
    }

    private func put(_ bytes: [UInt8], in file: String, draft: String) throws(RecordingError) {
        try folder.write(bytes, to: draft)
        guard rename(draft, file) == 0 else { throw RecordingError(file, RecordingFolder.reason(errno)) }
    }

    /// Writes a body of an existing exchange; returns its name.
    ///
    /// - Parameter old: The file that it replaces; nil for a new one.
    func writeBody(_ body: [UInt8], _ fields: Fields, over old: String?) throws(RecordingError) -> String? {
        // White space of its own cannot be kept in a file whose white space does not count.
        if let old, !body.isEmpty, !RecordingFolder.isIndented(old) || JSONLayout.compact(body) == body {
            try replace(try folder.path(ofBody: old), with: body)
            return old
        }
        var written: [String] = []
        let path = try write(body, nextName, fields, &written)
        if path != nil { number += 1 }
        return path
    }

    /// Replaces the lines of some exchanges, by their numbers; a crash leaves either the old lines or the new ones.
    func replace(_ exchanges: [Int: RecordedExchange]) throws(RecordingError) {
        let known = ExchangeLines(try folder.read(folder.exchanges, limit: 4 << 30))
        let lines = known.ranges.enumerated().flatMap { number, range -> [UInt8] in
            (exchanges[number]?.line ?? Array(known.bytes[range])) + [0x0A]
        }
        try put(lines, in: folder.exchanges, draft: folder.exchanges + ".new")
    }

    /// Makes all written data survive a power loss; blocks.
    func flush() {
        // One call for very many files.
        if unflushed.count > 64 { sync() } else { unflushed.forEach(flush) }
        unflushed = []
        fsync(lines)
        fsync(lock.descriptor)
    }

    private func flush(body name: String) {
        let descriptor = open("\(folder.path)/\(name)", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }
}
