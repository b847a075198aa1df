import Foundation
package import HTTPSemantics

/// The exchanges in another tool's file, and a list of what cannot be imported.
package struct ForeignRecording: Sendable {
    /// One exchange as the other tool recorded it.
    package struct Exchange: Sendable {
        package var method: String
        /// An absolute URL; only a path if the tool knows no origin.
        package var url: String
        /// Nil if any representation matches.
        package var requestFields: Fields?
        package var requestBody: [UInt8] = []
        package var status: Int
        package var responseFields: Fields
        /// Without content coding.
        package var responseBody: [UInt8] = []
        /// Unix seconds.
        package var time: Double?
    }

    package var exchanges: [Exchange] = []
    /// The kinds of data left out, each with its number.
    package private(set) var losses: [(text: String, count: Int)] = []

    package init() {}

    /// Notes data that was left out.
    package mutating func lose(_ text: String) {
        if let index = losses.firstIndex(where: { $0.text == text }) {
            losses[index].count += 1
        } else {
            losses.append((text, 1))
        }
    }

    /// Scheme and authority of each exchange with their number, in order of appearance.
    package var origins: [(origin: String, count: Int)] {
        var origins: [(origin: String, count: Int)] = []
        for exchange in exchanges {
            let origin = Self.origin(of: exchange.url)
            if let index = origins.firstIndex(where: { $0.origin == origin }) {
                origins[index].count += 1
            } else {
                origins.append((origin, 1))
            }
        }
        return origins
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
        return target.hasPrefix("/") ? target : "/" + target
    }

    /// Reads a file in the format that its content shows: HAR, a VCR cassette, WireMock's mappings.
    package static func read(_ path: String) throws(RecordingError) -> ForeignRecording {
        var status = stat()
        guard stat(path, &status) == 0 else { throw RecordingError(path, RecordingFolder.reason(errno)) }
        if status.st_mode & S_IFMT == S_IFDIR { return try WireMockFile.read(folder: path) }
        guard status.st_size <= 1 << 30, let data = FileManager.default.contents(atPath: path) else {
            throw RecordingError(path, "the file cannot be read, or is larger than 1 GiB")
        }
        if let json = try? JSONSerialization.jsonObject(with: data) {
            guard let object = json as? [String: Any] else { throw RecordingError(path, Self.unknown) }
            if object["log"] != nil { return try HARFile.read(object, path) }
            if object["request"] != nil || object["mappings"] != nil { return try WireMockFile.read(object, path) }
            return try VCRFile.read(.init(object), path)
        }
        guard let text = String(validating: data, as: UTF8.self) else { throw RecordingError(path, Self.unknown) }
        return try VCRFile.read(text: text, path)
    }

    static let unknown = "this is neither a HAR, nor a VCR cassette, nor a mapping of WireMock"
}

/// Fields that other tools keep and a recording does not.
enum ForeignFields {
    private static let framing: Set<String> = [
        "content-length", "transfer-encoding", "connection", "keep-alive", "host", "accept-encoding",
        "proxy-connection",
    ]

    /// The fields without those of the connection and of HTTP/2's request line.
    static func request(_ lines: [(String, String)]) -> Fields {
        Fields(
            lines.filter { !$0.0.hasPrefix(":") && !framing.contains($0.0.lowercased()) }.map { Field($0.0, $0.1) }
        )
    }

    static func response(_ lines: [(String, String)], isHead: Bool) -> Fields {
        Fields(
            lines.filter { name, _ in
                let name = name.lowercased()
                return !name.hasPrefix(":") && (name == "content-length" ? isHead : !framing.contains(name))
            }
            .map { Field($0.0, $0.1) }
        )
    }
}
