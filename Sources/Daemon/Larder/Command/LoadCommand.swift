import Admin
import ArgumentParser
import Foundation
import Glibc
import Settings
import Upstream

struct LoadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "load",
        abstract: "Load a copy made by larder save.",
        discussion: """
            Without a flag, the file is loaded into an empty store:

              larder load monday.db
              larder load monday.db --replace

            --replace removes what the store had before. A file that is damaged, or not a copy, is refused, and the store \
            stays as it is.

            Larder asks the API about loaded responses before it serves them, unless the API cannot be reached or the mode \
            is offline. Responses of authenticated users are left out if the copy comes from a Larder with another \
            principal.key.
            """
    )

    @Argument(help: .value("file", "A file made by larder save.")) var file: String
    @Flag(help: "Replace what the store contains.") var replace = false
    @OptionGroup var options: AdminOptions

    func validate() throws { try GivenText.check(["the file": file]) }

    func run() throws {
        let source = CopyFile(file)
        let descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw source.failure(systemMessage(errno)) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw source.failure("this is not a file of larder save")
        }
        if source.isStore { throw source.failure("this is the file of a store itself; make a copy with larder save") }
        let length = Int(status.st_size)
        let target = replace ? "/load?replace=true" : "/load"
        try options.present(LoadResponse.self, try send(descriptor, length, to: target)) { loaded in
            let line = "loaded \(HumanText.counts(loaded.objects, loaded.documents))"
            guard loaded.droppedDocuments > 0 || loaded.droppedObjects > 0 else { return line }
            let dropped = HumanText.counts(loaded.droppedObjects, loaded.droppedDocuments)
            return "\(line)\nleft out \(dropped) of users under another principal.key"
        }
    }

    /// Sends the file, and shows how far the daemon is with it; returns the response's body.
    private func send(_ descriptor: Int32, _ length: Int, to target: String) throws -> [UInt8] {
        let isShown = !options.json && isatty(2) == 1
        let client = try options.client()
        defer { if isShown { Terminal.progress("") } }
        let upload = CurlExchange.Upload(descriptor: descriptor, length: length) { sent in
            guard isShown else { return }
            Terminal.progress(
                sent < length ? "sent \(HumanText.bytes(sent)) of \(HumanText.bytes(length))" : "checking and loading"
            )
        }
        var response: [UInt8] = []
        try client.transfer(target, upload: upload) { response += $0 }
        return response
    }
}
