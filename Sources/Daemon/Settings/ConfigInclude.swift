import Foundation
import Glibc
import Yams

extension ConfigReader {
    /// The files read for one config, so that none is read twice and none includes itself.
    struct Inclusion {
        /// Roots by the real path of their file; nil for one that could not be read.
        fileprivate var roots: [String: Node?] = [:]
        /// The chain of inclusions from the main file to the current one.
        fileprivate var chain: [String] = []

        fileprivate static let depth = 16

        init(_ file: String = "") { chain = [Self.real(file)] }

        fileprivate static func real(_ path: String) -> String {
            URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        }
    }

    /// Composes the text of a file and merges it with the files that it includes; nil, with errors, if that fails.
    ///
    /// - Parameter isIncluded: whether another file names this one. That may be any file of the user's, such as one with a
    ///   password, and the config that names it may come from elsewhere: unless it is a config, nothing of it is shown.
    mutating func compose(_ yaml: String, file: String, isIncluded: Bool = false) -> Node? {
        let offset = sources.add(file, text: yaml)
        let root: Node
        let plain = yaml.hasPrefix("\u{FEFF}") ? String(yaml.unicodeScalars.dropFirst()) : yaml
        do {
            // An empty file, or one of comments only, has no root.
            root = try BoundedYAML.compose(String(repeating: "\n", count: offset) + plain) ?? .mapping([:])
        } catch {
            for mistake in error.mistakes {
                let place = mistake.place ?? (offset > 0 ? Place(line: offset + 1, column: 1) : nil)
                let hint = line(place).contains("${") ? "; a value with \"${…}\" needs quotes between braces" : ""
                self.error(place, (isIncluded ? mistake.unquoted ?? mistake.message : mistake.message) + hint)
            }
            return nil
        }
        if isIncluded, !isConfig(root) { return nil }
        refuseTags(in: root)
        if root.isNothing { return .mapping([:]) }
        guard let mapping = root.mapping else { return failMisfit(root, wanted: "keys with values") }
        guard let include = mapping["include"] else { return root }
        return layered(include, in: mapping, of: file)
    }

    /// Whether all keys of an included file are those of a config; the errors do not quote it.
    private mutating func isConfig(_ root: Node) -> Bool {
        guard !root.isNothing else { return true }
        guard let mapping = root.mapping else {
            let kind = root.scalar == nil ? root.kindInWords : "text"
            error(root.place, "\(kind) was found here; write keys with values, as in any config")
            return false
        }
        let known = ConfigDraft.keys.map(\.facts.name)
        let foreign = mapping.keys.filter { !known.contains($0.scalar?.string ?? "") }
        for key in foreign {
            let meant = key.scalar.flatMap { Suggestion.nearest(to: $0.string, among: known) }
            let remedy = meant.map { "did you mean \"\($0)\"?" } ?? "expected: \(known.joined(separator: ", "))"
            error(key.place, "this is not the name of a key of a config; \(remedy)")
        }
        return foreign.isEmpty
    }

    /// Refuses tags other than YAML's own, which only other programs understand.
    private mutating func refuseTags(in node: Node) {
        let tag = node.tag.description
        if !tag.isEmpty, tag != "!", tag != "?", !tag.hasPrefix("tag:yaml.org,2002:") {
            error(node.place, "\"\(tag)\" is a tag, which Larder does not read; remove it")
        }
        switch node {
        case .mapping(let mapping):
            for (key, value) in mapping {
                refuseTags(in: key)
                refuseTags(in: value)
            }
        case .sequence(let sequence): for element in sequence { refuseTags(in: element) }
        case .scalar, .alias: break
        }
    }

    private mutating func layered(_ node: Node, in own: Node.Mapping, of file: String) -> Node? {
        let entries = under("include") { $0.texts(node, wanted: "a file, the name of a preset, or a list of them") }
        // Missing files have been reported; the rest is checked all the same.
        var roots = (entries ?? []).compactMap { entry in
            let root = included(entry.text, at: entry.place, from: file)
            if root == nil { isIncomplete = true }
            return root
        }
        roots.append(.mapping(own))
        if Set(roots.flatMap(Self.upstreamNames)).count > 1 {
            // A file's top-level models and routes apply only to its own upstreams, not to those of its neighbours.
            for index in roots.indices.dropLast() { roots[index] = Self.kept(roots[index]) }
        }
        return roots.dropFirst().reduce(roots[0]) { ConfigLayering.file.lay($1, over: $0) }
    }

    private mutating func included(_ entry: String, at place: Place?, from file: String) -> Node? {
        guard let path = path(of: entry, at: place, from: file) else { return nil }
        let real = Inclusion.real(path)
        if let start = inclusion.chain.firstIndex(of: real) {
            let round = (inclusion.chain[start...] + [real]).map { URL(fileURLWithPath: $0).lastPathComponent }
            error(place, "\"\(entry)\" includes itself: \(round.joined(separator: " → ")); take one of these out")
            return nil
        }
        if let known = inclusion.roots[real] { return known }
        guard inclusion.chain.count <= Inclusion.depth else {
            error(place, "files include each other more than \(Inclusion.depth) deep; include \"\(entry)\" further up")
            return nil
        }
        inclusion.chain.append(real)
        defer { inclusion.chain.removeLast() }
        let root = read(path, at: place).flatMap { compose($0, file: path, isIncluded: true) }
        inclusion.roots[real] = .some(root)
        return root
    }

    private mutating func read(_ path: String, at place: Place?) -> String? {
        do {
            let bytes = try FileBytes.read(path, limit: ConfigFile.sizeLimit).bytes
            if let text = String(validating: bytes, as: UTF8.self) { return text }
            error(place, "\"\(path)\" cannot be included: it is not UTF-8 text")
        } catch { self.error(place, "\"\(path)\" cannot be included: \(error.reason)") }
        return nil
    }

    /// The path of an entry: relative to the including file's folder, or a preset's name.
    private mutating func path(of entry: String, at place: Place?, from file: String) -> String? {
        guard entry.contains("/") || entry.hasSuffix(".yaml") || entry.hasSuffix(".yml") else {
            do {
                // Within a file that replaces a preset, the preset's name means the shipped one.
                let chain = inclusion.chain
                return try Preset.find(entry, environment: environment) { chain.contains(Inclusion.real($0)) }.path
            } catch {
                self.error(place, "\(error) To include a file, write its path, such as ./\(entry).yaml")
                return nil
            }
        }
        return entry.hasPrefix("/") ? entry : pathBeside(file, entry)
    }

    private static func upstreamNames(_ root: Node) -> [String] {
        root.mapping?["upstreams"]?.mapping?.compactMap { $0.key.scalar?.string } ?? []
    }

    /// A file's root, with its top-level models, routes and errors moved under each of its upstreams.
    private static func kept(_ root: Node) -> Node {
        guard let mapping = root.mapping, let upstreams = mapping["upstreams"]?.mapping, !upstreams.isEmpty
        else { return root }
        func isMapping(_ key: Node) -> Bool { key.scalar.map { ConfigLayering.mapping[$0.string] != nil } ?? false }
        let moved = mapping.filter { isMapping($0.key) }.map { ($0.key, $0.value) }
        let pairs = upstreams.map { name, upstream in
            (name, ConfigLayering.members(ConfigLayering.mapping).lay(upstream, over: .mapping(Node.Mapping(moved))))
        }
        let rest = mapping.map { key, value in
            let isMoved = key.scalar?.string == "upstreams"
            return (key, isMoved ? Node.mapping(Node.Mapping(pairs, .implicit, .any, value.mark)) : value)
        }
        return .mapping(Node.Mapping(rest.filter { !isMapping($0.0) }, mapping.tag, mapping.style, mapping.mark))
    }
}

/// How a value in a file is merged with the value at the same place in included files.
indirect enum ConfigLayering: Sendable {
    /// The including file's value replaces the other.
    case value
    /// Member by member: named members each in their own way, all others in one.
    case members([String: ConfigLayering], others: ConfigLayering = .value)
    /// Rule by rule, and within rules key by key.
    ///
    /// Two rules are the same if they match the same responses.
    case rules
    /// Words with a sign modify the other value; anything else replaces it.
    case changes

    static let file = ConfigLayering.members(
        mapping.merging([
            "upstreams":
                .members(
                    [:],
                    others: .members(
                        mapping.merging([
                            "principal": .changes, "budget": .members([:]),
                            "webhooks": .members([:], others: .members([:])),
                        ]) { $1 }
                    )
                ),
            "store": .members([:]), "memory": .members([:]), "limits": .members([:]), "timeouts": .members([:]),
            "log": .members([:]),
        ]) { first, _ in first }
    )

    /// The keys allowed both at the top and under an upstream.
    static let mapping: [String: ConfigLayering] = [
        "models": .members([:], others: .members(["properties": .members([:])])),
        "routes": .rules, "errors": .rules,
    ]

    /// Merges `upper` over `lower`.
    ///
    /// - Parameter removes: whether a member of `upper` without a value removes the other's. It does not at the top, where an
    ///   emptied section is more likely a mistake.
    func lay(_ upper: Node, over lower: Node?, removes: Bool = false) -> Node {
        switch self {
        case .value: upper
        case .members(let named, let others): Self.lay(upper, over: lower, named, others, removes: removes)
        case .rules: Self.layRules(upper, over: lower)
        case .changes: Self.layChanges(upper, over: lower)
        }
    }

    private static func layChanges(_ upper: Node, over lower: Node?) -> Node {
        guard case .sequence(let words) = upper.asList, case .sequence(let base)? = lower?.asList, !words.isEmpty,
            words.allSatisfy({ ["+", "-"].contains($0.scalar?.string.first) })
        else { return upper }
        return .sequence(Node.Sequence(Array(base) + Array(words), words.tag, words.style, words.mark))
    }

    private static func lay(
        _ upper: Node,
        over lower: Node?,
        _ named: [String: ConfigLayering],
        _ others: ConfigLayering,
        removes: Bool
    ) -> Node {
        guard case .mapping(var result) = upper else { return upper }
        let base = lower?.mapping ?? Node.Mapping([])
        // Nil for removed members.
        var pairs: [(Node, Node)?] = base.map { ($0.key, $0.value) }
        var places = Dictionary(base.enumerated().map { ($1.key, $0) }) { first, _ in first }
        for (key, value) in result {
            let index = places[key]
            if removes, value.isNothing {
                if let index { pairs[index] = nil }
                places[key] = nil
                continue
            }
            let layering = key.scalar.flatMap { named[$0.string] } ?? others
            let laid = layering.lay(value, over: index.flatMap { pairs[$0]?.1 }, removes: true)
            // The key's own place is where the reader of a message must look.
            if let index {
                pairs[index] = (key, laid)
            } else {
                places[key] = pairs.count
                pairs.append((key, laid))
            }
        }
        result = Node.Mapping(pairs.compactMap(\.self), result.tag, result.style, result.mark ?? base.mark)
        return .mapping(result)
    }

    private static func layRules(_ upper: Node, over lower: Node?) -> Node {
        guard case .sequence(let rules) = upper, case .sequence(let base)? = lower else { return upper }
        var result = Array(base)
        var places: [RuleKey: Int] = [:]
        for (index, rule) in base.enumerated() {
            if let key = RuleKey(rule), places[key] == nil { places[key] = index }
        }
        for rule in rules {
            let key = RuleKey(rule)
            if let key, let index = places[key] {
                var laid = Self.members([:]).lay(rule, over: result[index], removes: true)
                // The included rule's bindings still need its captures.
                if let path = rule["path"]?.scalar?.string, !path.contains("{") {
                    laid["path"] = result[index]["path"]
                }
                result[index] = laid
            } else {
                if let key { places[key] = result.count }
                result.append(rule)
            }
        }
        return .sequence(Node.Sequence(result, rules.tag, rules.style, rules.mark))
    }
}

extension Node {
    fileprivate var asList: Node {
        guard case .scalar = self else { return self }
        return .sequence(Node.Sequence([self], Tag(.implicit), .flow, mark))
    }
}

/// The responses that a rule matches; names of captures make no difference.
private struct RuleKey: Hashable {
    private let path: [String]
    private let demands: [Node?]

    init?(_ rule: Node) {
        guard let rule = rule.mapping, let path = rule["path"]?.scalar?.string else { return nil }
        // Slashes at the beginning or end make no difference either.
        self.path = path.split(separator: "/").map { component in
            guard component.hasPrefix("{"), component.hasSuffix("}") else { return String(component) }
            return component.hasSuffix(":#}") ? "#" : "*"
        }
        demands = ["method", "status", "query", "content_type"].map { rule[$0] }
    }
}

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

    static func executablePath() -> String {
        var buffer = [CChar](repeating: 0, count: 4096)
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        return String(decoding: buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

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
