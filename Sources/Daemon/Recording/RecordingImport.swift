import Foundation
import HTTPSemantics
import Mapping
import Proxy
package import Settings

/// Makes a recording from another tool's file, redacted like one of Larder's own.
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
            var prefix = parts.count > 1 ? parts[1] : ""
            while prefix.hasSuffix("/") { prefix.removeLast() }
            self.prefix = prefix.isEmpty || prefix.hasPrefix("/") ? prefix : "/" + prefix
        }
    }

    package private(set) var count = 0
    private var file: ForeignRecording
    /// The kinds of data left out, each with its number.
    package var losses: [(text: String, count: Int)] { file.losses }
    /// What looks secret and was not redacted, with how often each was seen.
    package private(set) var lookalikes: [String: Int] = [:]

    /// - Parameter origins: The origins to import; empty for the only one in the file.
    package init(_ file: ForeignRecording, _ path: String, origins: [Origin], into folder: RecordingFolder)
        throws(RecordingError)
    {
        self.file = file
        let origins = try Self.chosen(origins, of: file, path)
        let config = Self.config(origins)
        let settings = ConfigFile.parse(config, file: folder.manifest, environment: [:])
        if let mistake = settings.diagnostics.first(where: { $0.severity == .error }) {
            throw RecordingError(path, mistake.message)
        }
        let upstreams = (try? CompiledConfiguration(settings.settings).upstreams) ?? []
        let began = file.exchanges.lazy.compactMap(\.time).first ?? Date().timeIntervalSince1970
        guard !folder.exists else {
            throw RecordingError(folder.path, "there is a recording already; name a new folder")
        }
        let replacement = try RecordingReplacement(folder)
        let draft = try RecordingWriter(replacement.draft, config: config, recorded: began)
        let writer = RedactedWriter(draft, upstreams: upstreams)
        for var exchange in file.exchanges {
            let origin = ForeignRecording.origin(of: exchange.target)
            let target = ForeignRecording.target(of: exchange.target)
            let place = upstreams.firstIndex { upstream in
                let url = upstream.settings.url
                return (origin.isEmpty || UpstreamURL.isSame(origin, url))
                    && (target.hasPrefix(url.basePath + "/") || url.basePath.isEmpty || target == url.basePath)
            }
            guard let place else {
                self.file.lose("exchanges with \(origin)")
                continue
            }
            let upstream = upstreams[place]
            exchange.target = target
            let owner = upstream.credentials(target: target, fields: exchange.requestFields ?? Fields())
            let omission = try writer.append(
                exchange,
                of: upstream.name,
                route: upstream.route(ofURL: target),
                credential: owner.map { writer.number(of: $0) }
            )
            switch omission {
            case .unfit(let flaw): self.file.lose("exchanges whose \(flaw.part) HTTP does not allow")
            case .unsearchable(let reason): self.file.lose("exchanges with a body that \(reason)")
            case nil: count += 1
            }
        }
        try writer.lookThrough()
        lookalikes = writer.lookalikes
        try replacement.commit()
    }

    private static func chosen(_ origins: [Origin], of file: ForeignRecording, _ path: String) throws(RecordingError)
        -> [Origin]
    {
        guard origins.isEmpty else { return origins }
        let found = file.origins
        guard let first = found.first else {
            let losses = file.losses.map { "\($0.text) (\($0.count))" }.joined(separator: ", ")
            throw RecordingError(
                path,
                "there is no exchange in the file"
                    + (losses.isEmpty ? "" : " that can be imported; left out: \(losses)")
            )
        }
        if first.text.isEmpty {
            throw RecordingError(path, "the file does not name the API's address; add --origin https://api.example.com")
        }
        guard found.count == 1 else {
            let list = found.map { "\n  --origin \($0.text)   (\($0.count))" }.joined()
            throw RecordingError(
                path,
                "the file has exchanges with several origins; say which are to be imported, each with a path of its own "
                    + "(--origin URL=/PREFIX) where there is more than one:\(list)"
            )
        }
        do {
            return [try Origin(first.text)]
        } catch { throw RecordingError(path, "\(error)") }
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

/// Writes a recording in the format of another tool.
package enum RecordingExport {
    /// The file's content, in the format of the name's extension, and a list of what it cannot contain.
    package static func write(_ recording: RecordingContents, to path: String, origins: [String: String])
        throws(RecordingError) -> (bytes: [UInt8], losses: [String])
    {
        var losses: [String] = []
        if Set(recording.exchanges.map { $0.credential ?? 0 }).count > 1 {
            losses.append("which credential a request was made with")
        }
        if ["models:", "routes:", "errors:"].contains(where: { recording.manifest.config.contains("\n\($0)") }) {
            losses.append("models and routes")
        }
        if path.hasSuffix(".har") { return (try HARFile.write(recording, origins: origins), losses) }
        guard path.hasSuffix(".yaml") || path.hasSuffix(".yml") else {
            throw RecordingError(
                path,
                "the ending of its name says what is written: .har, or .yaml for a cassette of VCR"
            )
        }
        losses.append("the times of the exchanges")
        return (try VCRFile.write(recording, origins: origins), losses)
    }
}

/// The exchanges in another tool's file, and a list of what cannot be imported.
package struct ForeignRecording: Sendable {
    var exchanges: [WholeExchange] = []
    /// The kinds of data left out, each with its number.
    package var losses: [(text: String, count: Int)] { lost.counted }
    private var lost: [String] = []

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
            guard MessageSyntax.isFieldName(line.name), MessageSyntax.isFieldValue(line.value),
                !isLength || MessageSyntax.isLength(line.value)
            else {
                lose("fields that HTTP does not allow")
                continue
            }
            fields.lines.append(line)
        }
        return fields
    }

    /// Notes data that was left out.
    mutating func lose(_ text: String, times: Int = 1) { lost += Array(repeating: text, count: times) }

    /// Scheme and authority of each exchange with their number, in order of appearance.
    var origins: [(text: String, count: Int)] { exchanges.map { Self.origin(of: $0.target) }.counted }

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

    /// Reads a file in the format that its content shows: HAR, a VCR cassette, WireMock's mappings.
    package static func read(_ path: String) throws(RecordingError) -> ForeignRecording {
        var status = stat()
        guard stat(path, &status) == 0 else { throw RecordingError(path, RecordingFolder.reason(errno)) }
        if status.st_mode & S_IFMT == S_IFDIR { return try WireMockFile.read(folder: path) }
        // Whoever names a device or a pipe would wait for its end.
        guard status.st_mode & S_IFMT == S_IFREG else { throw RecordingError(path, "this is not a regular file") }
        let data: Data
        do throws(FileBytesError) {
            data = Data(try FileBytes.read(path, limit: 1 << 30).bytes)
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
        guard let text = String(validating: data, as: UTF8.self) else { throw RecordingError(path, Self.unknown) }
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
        if let value = try? JSONSerialization.jsonObject(with: data) {
            self.value = value
            return
        }
        guard let root = JSONOutline(Array(data))?.root else { return nil }
        var lost = 0
        func readable(_ list: [JSONOutline.Node]) -> [Any] {
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
}

/// Files that another tool's file names; they are in its folder, or below it.
struct AttachedFiles {
    private let folder: String
    /// Those read, by name: equal bodies often share one.
    private var known: [String: [UInt8]] = [:]
    private var size = 0

    /// The maximum size of all of them, in bytes.
    private static let limit = 1 << 30

    init(_ folder: String) { self.folder = folder }

    /// Reads one by its name relative to the folder.
    mutating func read(_ name: String) throws(FileBytesError) -> [UInt8] {
        if let bytes = known[name] { return bytes }
        let bytes = try FileBytes.read(name, below: folder, limit: min(RecordingFolder.bodyLimit, Self.limit - size))
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
