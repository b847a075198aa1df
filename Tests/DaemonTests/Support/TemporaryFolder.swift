import Glibc

/// A folder of one test's own, gone with everything in it when the test is over.
final class TemporaryFolder: Sendable {
    let path: String

    init() {
        var template = Array("/tmp/larder-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { fatalError("no temporary folder: \(errno)") }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        removeTree(path)
    }

    /// What is in the folder, sorted.
    var names: [String] { entries(of: path).sorted() }

    /// Writes a file that only its owner can read.
    func write(_ content: String, to name: String) {
        let file = open(path + "/" + name, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        defer { close(file) }
        let bytes = Array(content.utf8)
        precondition(Glibc.write(file, bytes, bytes.count) == bytes.count)
    }
}

private func entries(of path: String) -> [String] {
    guard let folder = opendir(path) else { return [] }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
        let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        if name != ".", name != ".." { names.append(name) }
    }
    return names
}

private func removeTree(_ path: String) {
    if unlink(path) == 0 { return }
    for name in entries(of: path) { removeTree(path + "/" + name) }
    rmdir(path)
}
