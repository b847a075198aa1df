import Glibc

/// A config shipped with Larder, found by name.
package struct Preset {
    let name: String
    package let path: String

    /// Finds `NAME.yaml`; the error lists the places searched and the presets there are.
    ///
    /// - Parameter besides: whether to skip a file with that name, unless there is no other.
    package static func find(
        _ name: String,
        environment: [String: String],
        executable: String = executablePath(),
        besides isPassedOver: (String) -> Bool = { _ in false }
    ) throws(PresetError) -> Preset {
        let folders = folders(environment: environment, executable: executable)
        guard UpstreamName.isValid(name) else { throw PresetError(name: name, folders: folders) }
        let paths = folders.map { folder -> String in "\(folder)/\(name).yaml" }.filter { path in
            access(path, F_OK) == 0
        }
        if let path = paths.first(where: { !isPassedOver($0) }) ?? paths.first { return Preset(name: name, path: path) }
        throw PresetError(name: name, folders: folders)
    }

    /// The names of all presets.
    package static func names(environment: [String: String]) -> [String] {
        Set(folders(environment: environment, executable: executablePath()).flatMap(PresetError.names)).sorted()
    }

    /// The folders of presets: the user's and the machine's come first, so that they can replace installed ones.
    static func folders(environment: [String: String], executable: String) -> [String] {
        var folders = Defaults(environment: environment).configFolders
        let parts = executable.split(separator: "/", omittingEmptySubsequences: false)
        // PREFIX/bin/larder: PREFIX/share/larder
        if parts.count > 2 { folders.append(parts.dropLast(2).joined(separator: "/") + "/share/larder") }
        // SOURCE/.build/…/larder: SOURCE/config
        if let build = parts.lastIndex(of: ".build") {
            folders.append(parts[..<build].joined(separator: "/") + "/config")
        }
        return folders
    }

    /// The executable of this process.
    static func executablePath() -> String {
        var buffer = [CChar](repeating: 0, count: 4096)
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        return String(decoding: buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

/// There is no preset of a name.
package struct PresetError: Error, CustomStringConvertible {
    let name: String
    let folders: [String]

    package var description: String {
        let known = Set(folders.flatMap(Self.names)).sorted()
        let meant = Suggestion.nearest(to: name, among: known).map { " Did you mean \"\($0)\"?" } ?? ""
        let list = known.isEmpty ? "" : " There are: \(known.joined(separator: ", "))."
        return "there is no preset \"\(name)\" in \(folders.joined(separator: ", ")).\(meant.isEmpty ? list : meant)"
    }

    fileprivate static func names(in folder: String) -> [String] {
        guard let directory = opendir(folder) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name.hasSuffix(".yaml"), name != "larder.yaml" { names.append(String(name.dropLast(5))) }
        }
        return names
    }
}
