import EventLoops
import Glibc

/// The folder of the store: made at the first start, for its owner alone.
///
/// systemd makes `StateDirectory` itself, with the mode that the unit says.
enum StoreFolder {
    /// Makes what is missing of the folders above a path.
    static func prepare(forStoreAt path: String) throws(StoreFolderError) {
        var folder = ""
        for component in path.split(separator: "/", omittingEmptySubsequences: false).dropLast() {
            folder += component + "/"
            if folder == "/" || mkdir(folder, 0o700) == 0 { continue }
            let code = errno
            guard code == EEXIST else { throw StoreFolderError(folder: folder, reason: SystemCall.message(code)) }
        }
    }
}

/// Why there is no place for the store.
struct StoreFolderError: Error, CustomStringConvertible {
    let folder: String
    let reason: String

    var description: String { "the folder \(folder) of the store cannot be made: \(reason)" }
}
