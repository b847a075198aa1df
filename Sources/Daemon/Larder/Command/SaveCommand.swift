import Admin
import ArgumentParser
import Foundation
import Glibc
import Settings
import Upstream

struct SaveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "save",
        abstract: "Copy the store into a file, while Larder serves.",
        discussion: """
            The copy is an SQLite file of its own, readable by you alone. larder load puts it back, here or elsewhere:

              larder save monday.db
              larder load monday.db --replace

            It contains stored responses, also those of authenticated users, but neither credentials nor the key by which \
            users are told apart. While it is made, the store's disk needs room for a second one.
            """
    )

    @Argument(help: .value("file", "The file to make.")) var file: String
    @Flag(help: "Replace the file if there is one.") var force = false
    @OptionGroup var options: AdminOptions

    func validate() throws { try GivenText.check(["the file": file]) }

    func run() throws {
        let target = CopyFile(file)
        if let complaint = target.complaintAboutWriting(isForced: force) { throw target.failure(complaint) }
        // A name of its own, so that two processes that save the same file do not overwrite each other's part.
        let part = "\(file).\(getpid()).part"
        unlink(part)
        let descriptor = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw target.failure("it cannot be written: \(systemMessage(errno))") }
        var isComplete = false
        defer {
            close(descriptor)
            if !isComplete { unlink(part) }
        }
        let size = try receive(into: descriptor, target)
        guard fsync(descriptor) == 0, rename(part, file) == 0 else {
            throw target.failure("it cannot be written: \(systemMessage(errno))")
        }
        isComplete = true
        options.report(Saved(file: file, bytes: size), "saved the store as \(file), \(HumanText.bytes(size))")
    }

    private static func progress(_ client: AdminClient) -> String? {
        let bytes = try? client.send("GET", "/save")
        guard let response = bytes.flatMap({ try? AdminJSON.decode(SavingResponse.self, from: $0) }), response.total > 0
        else { return nil }
        return "copied \(HumanText.bytes(Int(response.copied))) of \(HumanText.bytes(Int(response.total)))"
    }

    private struct Saved: Encodable {
        var file: String
        var bytes: Int
    }

    /// Has the daemon copy the store, and writes the received bytes; returns their number.
    private func receive(into descriptor: Int32, _ target: CopyFile) throws -> Int {
        let client = try options.client()
        let isShown = !options.json && isatty(2) == 1
        let watch = isShown ? ProgressWatch { Self.progress(client) } : nil
        defer {
            watch?.end()
            if isShown { Terminal.progress("") }
        }
        var (size, code): (Int, Int32) = (0, 0)
        try client.transfer("/save") { bytes in
            watch?.end()
            if code == 0 { code = writeAll(UnsafeRawBufferPointer(rebasing: bytes[...]), to: descriptor).code }
            size += bytes.count
            if isShown { Terminal.progress("received \(HumanText.bytes(size))") }
        }
        guard code == 0 else { throw target.failure("it cannot be written: \(systemMessage(code))") }
        return size
    }
}

/// A file that is, or is to be, a copy of a store.
struct CopyFile {
    let path: String

    init(_ path: String) { self.path = path }

    func failure(_ complaint: String) -> CommandFailure { CommandFailure("\(path): \(complaint)") }

    /// Why a copy cannot be written here; nil if it can.
    func complaintAboutWriting(isForced: Bool) -> String? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return errno == ENOENT ? nil : systemMessage(errno) }
        switch status.st_mode & S_IFMT {
        case S_IFDIR: return "this is a folder; name a file in it"
        case S_IFREG: break
        default: return "this is not a regular file"
        }
        if isStore { return "this is the file of a store; name another one" }
        return isForced ? nil : "there is a file already; --force replaces it"
    }

    /// Whether Larder uses, or has used, it as its store.
    var isStore: Bool { access(path + ".lock", F_OK) == 0 || access(path + "-wal", F_OK) == 0 }
}
