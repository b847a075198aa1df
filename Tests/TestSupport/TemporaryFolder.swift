import Foundation

/// A folder of one test's own, gone with everything in it when the last who knows it has let go.
package final class TemporaryFolder: Sendable {
    package let path: String

    package init() {
        var template = Array("\(NSTemporaryDirectory())/larder-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { fatalError("no temporary folder: \(String(cString: strerror(errno)))") }
        // As a program spells it that looks where it really is.
        guard let real = realpath(template, nil) else { fatalError("no temporary folder: \(errno)") }
        defer { free(real) }
        path = String(cString: real)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The path of a file in the folder; of the store, where nothing is said.
    package func file(_ name: String = "larder.db") -> String { "\(path)/\(name)" }

    /// Writes a file that only its owner can read, and gives its path.
    @discardableResult
    package func write(_ text: String, to name: String) throws -> String {
        try text.write(toFile: file(name), atomically: false, encoding: .utf8)
        chmod(file(name), 0o600)
        return file(name)
    }

    /// The names of the files in it, sorted.
    package var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }

    /// The bytes of a file in it; empty when there is none.
    package func bytes(_ name: String) -> [UInt8] {
        FileManager.default.contents(atPath: file(name)).map(Array.init) ?? []
    }
}

extension [UInt8] {
    /// Whether the bytes hold this text somewhere.
    package func contains(_ text: String) -> Bool { Data(self).range(of: Data(text.utf8)) != nil }
}
