package import Settings
import Yams

/// Writes a recording in the format of another tool.
package enum RecordingExport {
    /// The file's content, in the format of the name's extension, and a list of what it cannot contain.
    package static func write(_ recording: RecordingContents, to path: String, upstreams: [Configuration.Upstream])
        throws(RecordingError) -> (bytes: [UInt8], losses: [String])
    {
        var losses: [String] = []
        let exchanges = recording.exchanges
        if Set(exchanges.map { $0.credential ?? 0 }).count > 1 {
            losses.append("which credential a request was made with")
        }
        if exchanges.contains(where: { $0.session != nil }) {
            losses.append("sessions, so that all requests share one sequence")
        }
        if exchanges.contains(where: { $0.response.delay != nil }) { losses.append("delays of responses") }
        let settings = settings(of: recording.manifest)
        if !settings.isEmpty {
            losses.append("settings of \(RecordingFolder.manifestName): \(settings.joined(separator: ", "))")
        }
        if path.hasSuffix(".har") {
            let (bytes, changed) = try HARFile.write(recording, upstreams)
            if changed > 0 { losses.append("bytes that are not UTF-8 in bodies of requests (\(changed))") }
            return (bytes, losses)
        }
        guard path.hasSuffix(".yaml") || path.hasSuffix(".yml") else {
            let endings = ".har, or .yaml for a cassette of VCR"
            throw RecordingError(path, "the ending of its name says what is written: \(endings)")
        }
        losses.append("the times of the exchanges")
        return (try VCRFile.write(recording, upstreams), losses)
    }

    /// The keys of a recording's config that no other tool knows.
    private static func settings(of manifest: RecordingManifest) -> [String] {
        let names = ((try? BoundedYAML.compose(manifest.config))?.mapping ?? [:]).flatMap { key, value -> [String?] in
            guard key.scalar?.string == "upstreams" else { return [key.scalar?.string] }
            return (value.mapping ?? [:]).flatMap { ($0.value.mapping ?? [:]).map { $0.key.scalar?.string } }
        }
        return names.compactMap(\.self).counted.map(\.text).filter { !["url", "prefix"].contains($0) }
    }
}

extension [Configuration.Upstream] {
    /// The upstreams in the form of `--origin`, as an export names them; nil if its URLs show all of them.
    var exportedOrigins: [String]? {
        allSatisfy { $0.url.basePath.isEmpty && $0.prefix.isEmpty } ? nil : map { RecordingImport.Origin($0).text }
    }

    var originsByName: [String: String] { Dictionary(map { ($0.name, $0.url.origin) }) { first, _ in first } }
}
