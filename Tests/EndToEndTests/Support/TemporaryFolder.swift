import Foundation

/// A folder of its own for one scenario, removed with its owner.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        var template = Array("\(NSTemporaryDirectory())/larder-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw SocketError.system(call: "mkdtemp", code: errno) }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The path of a file in the folder.
    func file(_ name: String) -> String { "\(path)/\(name)" }

    /// Writes a file and gives its path.
    @discardableResult
    func write(_ text: String, to name: String) throws -> String {
        try text.write(toFile: file(name), atomically: false, encoding: .utf8)
        return file(name)
    }

    /// The names of the files in it.
    var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] }

    /// The bytes of a file in it; empty when there is none.
    func bytes(_ name: String) -> [UInt8] { FileManager.default.contents(atPath: file(name)).map(Array.init) ?? [] }
}

extension [UInt8] {
    /// Whether the bytes hold this text somewhere.
    func contains(_ text: String) -> Bool { Data(self).range(of: Data(text.utf8)) != nil }
}
