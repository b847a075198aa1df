import Foundation
import HTTPSemantics
import Mapping
import Proxy
package import Settings

/// Makes a recording from other tools' files, redacted like one of Larder's own.
package struct RecordingImport {
    /// An origin to import, and the path under which programs reach it.
    package struct Origin: Sendable, Equatable {
        let url: UpstreamURL
        /// Such as `/api`; empty if the origin has the address to itself.
        let prefix: String

        /// Parses `URL` or `URL=PREFIX`.
        package init(_ text: String) throws(InvalidValue) {
            // A base path contains no "=".
            let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
            url = try UpstreamURL(parts.first ?? "")
            let prefix = parts.count > 1 ? parts[1] : "/"
            self.prefix = try PathPrefix.read(prefix.hasPrefix("/") ? prefix : "/" + prefix)
        }

        init(_ upstream: Configuration.Upstream) { (url, prefix) = (upstream.url, upstream.prefix) }

        var text: String { url.description + (prefix.isEmpty ? "" : "=\(prefix)") }
    }

    package private(set) var count = 0
    package private(set) var losses = ForeignLosses()
    /// What looks secret and was not redacted, with how often each was seen.
    package private(set) var lookalikes: [String: Int] = [:]

    /// Makes a new recording.
    ///
    /// - Parameter origins: The origins to import; empty for the only one in the files.
    package init(_ files: [ForeignRecording], origins: [Origin], into folder: RecordingFolder) throws(RecordingError) {
        let config = Self.config(try Self.chosen(origins, of: files))
        guard !folder.exists else {
            let remedy = "add to it with --into, or name a new folder"
            throw RecordingError(folder.path, "there is a recording already; \(remedy)")
        }
        let replacement = try RecordingReplacement(folder)
        let began = files.lazy.flatMap(\.exchanges).compactMap(\.arrivalTime).first ?? Date().timeIntervalSince1970
        let draft = try RecordingWriter(replacement.draft, config: config, recorded: began)
        try write(files, to: draft, config, folder)
        try replacement.commit()
    }

    /// Adds to a recording, whose own upstreams say which exchanges are imported.
    package init(_ files: [ForeignRecording], addedTo folder: RecordingFolder) throws(RecordingError) {
        let config = try RecordingManifest.read(folder).config
        let writer = try RecordingWriter(folder, config: config, recorded: Date().timeIntervalSince1970)
        try write(files, to: writer, config, folder)
        writer.flush()
    }

    private mutating func write(
        _ files: [ForeignRecording],
        to recording: RecordingWriter,
        _ config: String,
        _ folder: RecordingFolder
    ) throws(RecordingError) {
        let settings = ConfigFile.parse(config, file: folder.manifest, environment: [:])
        if let mistake = settings.diagnostics.first(where: { $0.severity == .error }) {
            throw RecordingError(folder.manifest, mistake.message)
        }
        let upstreams = (try? CompiledConfiguration(settings.settings).upstreams) ?? []
        let writer = RedactedWriter(recording, upstreams: upstreams)
        for file in files {
            losses.add(file.losses)
            writer.beginCredentials()
            for exchange in file.exchanges { try write(exchange, of: file.path, writer, upstreams) }
        }
        guard count > 0 else { throw Self.emptiness(files, losses) }
        try writer.lookThrough()
        lookalikes = writer.lookalikes
    }

    private mutating func write(
        _ exchange: WholeExchange,
        of file: String,
        _ writer: RedactedWriter,
        _ upstreams: [ProxiedUpstream]
    ) throws(RecordingError) {
        let origin = ForeignRecording.origin(of: exchange.target)
        let target = ForeignRecording.target(of: exchange.target)
        let place = "\(file): \(exchange.method) \(target)".printable
        let candidates = upstreams.filter { upstream in
            let url = upstream.settings.url
            return (origin.isEmpty || UpstreamURL.isSame(origin, url))
                && (target.hasPrefix(url.basePath + "/") || url.basePath.isEmpty || target == url.basePath)
        }
        let nearest = candidates.max { $0.settings.url.basePath.count < $1.settings.url.basePath.count }
        guard let upstream = nearest else {
            return losses.add("exchanges with \(origin.isEmpty ? "paths of no upstream" : origin)", at: place)
        }
        guard max(exchange.requestBody.count, exchange.response.body.count) <= RecordingFolder.bodyLimit
        else { return losses.add("exchanges with a body of more than 256 MiB", at: place) }
        var exchange = exchange
        exchange.target = target
        let owner = upstream.credentials(target: target, fields: exchange.requestFields ?? Fields())
        let (route, number) = (upstream.route(ofURL: target), owner.map { writer.number(of: $0) })
        switch try writer.append(exchange, of: upstream.name, route: route, credential: number) {
        case .unfit(let flaw): losses.add("exchanges whose \(flaw.part) HTTP does not allow", at: place)
        case .unsearchable(let reason): losses.add("exchanges with a body that \(reason)", at: place)
        case nil: count += 1
        }
    }

    private static func emptiness(_ files: [ForeignRecording], _ losses: ForeignLosses) -> RecordingError {
        RecordingError(
            files.count == 1 ? files[0].path : "the files",
            losses.isEmpty
                ? "there is no exchange to import"
                : "there is no exchange that can be imported; left out: \(losses.sentences.joined(separator: "; "))"
        )
    }

    private static func chosen(_ origins: [Origin], of files: [ForeignRecording]) throws(RecordingError) -> [Origin] {
        guard origins.isEmpty else { return origins }
        let named = files.flatMap(\.origins).map(\.text).counted.compactMap { try? Origin($0.text) }
        guard named.isEmpty else { return named }
        let path = files.count == 1 ? files[0].path : "the files"
        let found = files.flatMap(\.exchanges).map { ForeignRecording.origin(of: $0.target) }.counted
        guard let first = found.first else {
            var losses = ForeignLosses()
            for file in files { losses.add(file.losses) }
            throw emptiness(files, losses)
        }
        if first.text.isEmpty {
            throw RecordingError(path, "no file names the API's address; add --origin https://api.example.com")
        }
        guard found.count == 1 else {
            let list = found.map { "\n  --origin \($0.text)   (\($0.count))" }.joined()
            throw RecordingError(
                path,
                "there are exchanges with several origins; say which are to be imported, each with a path of its own "
                    + "(--origin URL=/PREFIX) where there is more than one:\(list)"
            )
        }
        do { return [try Origin(first.text)] } catch { throw RecordingError(path, "\(error)") }
    }

    private static func config(_ origins: [Origin]) -> String {
        var lines = ["upstreams:"]
        for (index, origin) in origins.enumerated() {
            lines.append("  \(origins.count == 1 ? "upstream" : "upstream\(index + 1)"):")
            lines.append("    url: \"\(origin.url)\"")
            if !origin.prefix.isEmpty { lines.append("    prefix: \"\(origin.prefix)\"") }
        }
        return lines.joined(separator: "\n") + "\n"
    }
}

extension UpstreamURL {
    /// Whether the text of an origin means the same origin as a URL.
    fileprivate static func isSame(_ origin: String, _ url: UpstreamURL) -> Bool {
        guard var other = try? UpstreamURL(origin) else { return false }
        other.basePath = url.basePath
        return other.canonical == url.canonical
    }
}

/// What an import leaves out or changes, by kinds.
package struct ForeignLosses: Sendable {
    package struct Kind: Sendable {
        package let text: String
        package fileprivate(set) var count: Int
        /// The place of the first one, such as `session.har: entry 3`.
        package let first: String
    }

    /// In order of first appearance.
    package private(set) var kinds: [Kind] = []

    var isEmpty: Bool { kinds.isEmpty }

    package var sentences: [String] {
        kinds.map { "\($0.text) (\($0.count)\($0.count > 1 ? ", first" : "") in \($0.first))" }
    }

    mutating func add(_ text: String, times: Int = 1, at place: String) {
        guard times > 0 else { return }
        if let index = kinds.firstIndex(where: { $0.text == text }) {
            kinds[index].count += times
        } else {
            kinds.append(Kind(text: text, count: times, first: place))
        }
    }

    mutating func add(_ others: ForeignLosses) {
        for kind in others.kinds { add(kind.text, times: kind.count, at: kind.first) }
    }
}

/// The exchanges in another tool's file, and a list of what cannot be imported.
package struct ForeignRecording: Sendable {
    let path: String
    var exchanges: [WholeExchange] = []
    /// The upstreams that an export of Larder's names: neither format has a place for a base path or a prefix.
    private(set) var origins: [RecordingImport.Origin] = []
    private(set) var losses = ForeignLosses()
    /// The part of the file that is being read, such as `entry 3`; empty for the whole.
    var part = ""

    init(_ path: String) { self.path = path }

    /// The member of an export that has them, if any upstream has a base path or a prefix.
    static let originsName = "_larder_origins"

    /// Takes over the upstreams that the file names.
    mutating func name(_ origins: [String]) { self.origins = origins.compactMap { try? RecordingImport.Origin($0) } }

    private static let framing: Set<String> = [
        "content-length", "transfer-encoding", "connection", "keep-alive", "host", "accept-encoding",
        "proxy-connection",
    ]

    /// Another tool's field lines as a message's, without those of the connection and of HTTP/2's request line, which a
    /// recording does not keep, and without those that no message can have.
    ///
    /// - Parameter isHead: Whether they are of a response to HEAD, whose length says what the body would have.
    mutating func fields(_ lines: [(String, String)], isHead: Bool = false) -> Fields {
        var fields = Fields()
        for line in lines.map({ Field($0.0, $0.1) }) {
            let (name, isLength) = (line.lowercasedName, line.isNamed("content-length"))
            if name.hasPrefix(":") || Self.framing.contains(name) && !(isHead && isLength) { continue }
            var field = line
            field.value = Self.unfolded(line.value)
            let shown = "field \"\(String(decoding: line.name, as: UTF8.self).printable)\""
            guard MessageSyntax.isFieldName(field.name), MessageSyntax.isFieldValue(field.value),
                !isLength || MessageSyntax.isLength(field.value)
            else {
                lose("fields that HTTP does not allow", shown)
                continue
            }
            if field.value != line.value { lose("line breaks in fields, which are spaces now", shown) }
            fields.lines.append(field)
        }
        return fields
    }

    /// A value in one line: what some tools keep of folded lines has spaces for its line breaks (RFC 9112 §5.2).
    private static func unfolded(_ value: [UInt8]) -> [UInt8] {
        guard value.contains(where: { $0 == 0x0D || $0 == 0x0A }) else { return value }
        let lines = value.split { $0 == 0x0D || $0 == 0x0A }.map { FieldSyntax.trimmed($0) }
        return Array(lines.joined(separator: [0x20]))
    }

    /// Notes data that was left out, or changed.
    ///
    /// - Parameter detail: Where it was in the part that is being read.
    mutating func lose(_ text: String, _ detail: String = "", times: Int = 1) {
        let place = [path, part, detail].filter { !$0.isEmpty }.joined(separator: ": ")
        losses.add(text, times: times, at: place)
    }

    /// Notes a body whose bytes its text does not show.
    mutating func loseBytes(charset: String) {
        lose("the bytes of bodies, which are UTF-8 now", charset.isEmpty ? "" : "charset \(charset.printable)")
    }

    /// Scheme and authority of a URL; empty for a path.
    static func origin(of url: String) -> String {
        guard let mark = url.firstRange(of: "://") else { return "" }
        return url[..<mark.upperBound].lowercased()
            + url[mark.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }.lowercased()
    }

    /// Path and query of a URL.
    static func target(of url: String) -> String {
        let rest = url.firstRange(of: "://").map { mark in
            url[mark.upperBound...].drop { $0 != "/" && $0 != "?" && $0 != "#" }
        }
        let target = String((rest ?? url[...]).prefix { $0 != "#" })
        // Clients send other characters than those of ASCII escaped.
        let escaped = PercentEncoding.encode(target) { $0 < 0x80 }
        return escaped.hasPrefix("/") ? escaped : "/" + escaped
    }

    /// Reads a file in the format that its content shows: HAR, a VCR cassette, WireMock's mappings; or the files of a folder.
    package static func read(_ path: String) throws(RecordingError) -> [ForeignRecording] {
        var status = stat()
        guard stat(path, &status) == 0 else { throw RecordingError(path, RecordingFolder.reason(errno)) }
        if status.st_mode & S_IFMT == S_IFDIR { return try read(folder: path) }
        // Whoever names a device or a pipe would wait for its end.
        guard status.st_mode & S_IFMT == S_IFREG else { throw RecordingError(path, "this is not a regular file") }
        return [try read(file: path)]
    }

    private static let endings = [".har", ".yaml", ".yml", ".json"]

    /// Reads WireMock's folder as one recording, and the files of any other folder one by one, in the order of their names.
    private static func read(folder path: String) throws(RecordingError) -> [ForeignRecording] {
        let names = ((try? FileManager.default.subpathsOfDirectory(atPath: path)) ?? []).sorted()
        let files = names.filter { name in endings.contains { name.hasSuffix($0) } }
        let isOfWireMock = names.contains("mappings") || files.contains { WireMockFile.isMapping("\(path)/\($0)") }
        guard !isOfWireMock else { return [try WireMockFile.read(folder: path)] }
        guard !files.isEmpty else {
            let list = endings.joined(separator: ", ")
            throw RecordingError(path, "there is no file to import in this folder; their names end with one of \(list)")
        }
        return try files.map { name throws(RecordingError) in try read(file: "\(path)/\(name)", isRegular: true) }
    }

    /// - Parameter isRegular: Whether the file may be no link, as nobody has named it.
    private static func read(file path: String, isRegular: Bool = false) throws(RecordingError) -> ForeignRecording {
        let data: Data
        do throws(FileBytesError) {
            data = Data(try FileBytes.read(path, limit: 1 << 30, isRegular: isRegular).bytes)
        } catch { throw RecordingError(path, error.reason) }
        if let json = ForeignJSON(data) {
            guard let object = json.value as? [String: Any] else { throw RecordingError(path, Self.unknown) }
            var recording =
                if object["log"] != nil {
                    try HARFile.read(object, path)
                } else if object["request"] != nil || object["mappings"] != nil {
                    try WireMockFile.read(object, path)
                } else {
                    try VCRFile.read(.init(object), path)
                }
            recording.lose(ForeignJSON.loss, times: json.lost)
            return recording
        }
        if let flaw = ForeignJSON.flaw(of: data) { throw RecordingError(path, flaw) }
        guard let text = String(validating: data, as: UTF8.self)
        else { throw RecordingError(path, "the file is not UTF-8 text; \(Self.unknown)") }
        return try VCRFile.read(text: text, path)
    }

    static let unknown = "this is neither a HAR, nor a VCR cassette, nor a mapping of WireMock"
}

/// A JSON text whose exchanges are read one by one if it cannot be read as a whole.
struct ForeignJSON {
    /// As `JSONSerialization` makes it.
    let value: Any
    /// The number of exchanges left out, such as those with half of a surrogate pair.
    private(set) var lost = 0
    static let loss = "exchanges that are not Unicode, or have numbers beyond all limits"

    /// Nil if the text is not JSON.
    init?(_ data: Data) {
        let data = Self.escapingMarks(in: data)
        if let value = try? JSONSerialization.jsonObject(with: data) {
            self.value = value
            return
        }
        guard let root = JSONOutline(Array(data)) else { return nil }
        var lost = 0
        func readable(_ list: [JSONOutline]) -> [Any] {
            let values = list.compactMap {
                try? JSONSerialization.jsonObject(with: Data($0.bytes), options: .fragmentsAllowed)
            }
            lost = list.count - values.count
            return values
        }
        if let entries = root["log"]?["entries"]?.elements {
            value = ["log": ["entries": readable(entries)]]
        } else if let list = (root["interactions"] ?? root["http_interactions"])?.elements {
            value = ["interactions": readable(list)]
        } else if let list = root["mappings"]?.elements {
            value = ["mappings": readable(list)]
        } else {
            return nil
        }
        self.lost = lost
    }

    /// The text with escapes for the byte order marks in it, which the parser takes out of the beginnings of strings.
    private static func escapingMarks(in data: Data) -> Data {
        // The first one may be that of the file.
        let rest = data.dropFirst(WideText.utf8Mark.count)
        guard rest.range(of: Data(WideText.utf8Mark)) != nil else { return data }
        return data.prefix(WideText.utf8Mark.count) + rest.replacing(WideText.utf8Mark, with: #"\ufeff"#.utf8)
    }

    /// Why a text that looks like JSON cannot be read, in a sentence that shows none of it; nil for other text.
    static func flaw(of data: Data) -> String? {
        let bytes = data.drop { FieldSyntax.isWhitespace($0) || $0 == 0x0A || $0 == 0x0D }
        // A cassette in YAML may begin like this, but not in a way that other tools write.
        guard bytes.first == 0x7B || bytes.first == 0x5B else { return nil }
        if JSONOutline(Array(bytes)) != nil {
            return "the file has text that is not Unicode, such as half of a surrogate pair (\\ud83d without \\ude00), "
                + "or numbers beyond all limits; make it again, or replace them"
        }
        var (depth, isInString, isEscaped, line, last) = (0, false, false, 1, 1)
        for byte in bytes {
            if byte == 0x0A { line += 1 }
            if isInString {
                if byte == 0x22, !isEscaped { isInString = false }
                isEscaped = byte == 0x5C && !isEscaped
                continue
            }
            switch byte {
            case 0x22: isInString = true
            case 0x7B, 0x5B: depth += 1
            case 0x7D, 0x5D: depth -= 1
            default: continue
            }
            last = line
        }
        guard depth > 0 || isInString else { return nil }
        return "the file is cut short: it ends within what begins in line \(last); make it again"
    }
}

/// Files that another tool's file names; they are in its folder, or below it.
struct AttachedFiles {
    private let folder: String
    /// Those read, by name: equal bodies often share one.
    private var known: [String: [UInt8]] = [:]
    private var size = 0

    /// The maximum size of all of them, in bytes.
    private static let byteLimit = 1 << 30

    init(_ folder: String) { self.folder = folder }

    mutating func read(_ name: String) throws(FileBytesError) -> [UInt8] {
        if let bytes = known[name] { return bytes }
        let bytes = try FileBytes.read(
            name,
            below: folder,
            limit: min(RecordingFolder.bodyLimit, Self.byteLimit - size)
        )
        known[name] = bytes
        size += bytes.count
        return bytes
    }
}

extension [String] {
    /// Each text with its number, in order of first appearance.
    package var counted: [(text: String, count: Int)] {
        var (places, counted): ([String: Int], [(text: String, count: Int)]) = ([:], [])
        for text in self {
            if let place = places[text] {
                counted[place].count += 1
            } else {
                places[text] = counted.count
                counted.append((text, 1))
            }
        }
        return counted
    }
}
