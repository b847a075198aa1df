import Foundation
import HTTPSemantics
import Settings

/// Mappings of WireMock: one, a list of them, or its folder with `mappings` and `__files`.
enum WireMockFile {
    static func read(folder path: String) throws(RecordingError) -> ForeignRecording {
        let own = access("\(path)/mappings", F_OK) == 0 ? "mappings/" : ""
        guard own.isEmpty || RecordingFolder.kind("\(path)/mappings") == S_IFDIR else {
            throw RecordingError("\(path)/mappings", "this is not a folder; put the folder itself there")
        }
        let all = (try? FileManager.default.subpathsOfDirectory(atPath: "\(path)/\(own)")) ?? []
        let names = all.filter { $0.hasSuffix(".json") }
        guard !names.isEmpty else { throw RecordingError(path, "there is no mapping of WireMock in this folder") }
        var (recording, mappings, files) = (ForeignRecording(path), [Mapping](), AttachedFiles(path))
        for name in names.sorted() {
            recording.part = own + name
            let file = "\(path)/\(own)\(name)"
            let bytes: [UInt8]
            do throws(FileBytesError) {
                bytes = try files.read(own + name)
            } catch { throw RecordingError(file, error.reason) }
            guard let json = ForeignJSON(Data(bytes)), let object = json.value as? [String: Any] else {
                recording.lose("files that are not a mapping: not a JSON object, or not Unicode")
                continue
            }
            recording.lose(ForeignJSON.loss, times: json.lost)
            mappings += self.mappings(object, file, &recording)
        }
        try read(mappings, &files, into: &recording)
        return recording
    }

    /// Whether a file has mappings, as far as its first members say.
    static func isMapping(_ path: String) -> Bool {
        guard path.hasSuffix(".json"), let bytes = try? FileBytes.read(path, limit: 1 << 30, isRegular: true).bytes,
            let object = ForeignJSON(Data(bytes))?.value as? [String: Any]
        else { return false }
        return object["request"] != nil || object["mappings"] != nil
    }

    static func read(_ object: [String: Any], _ path: String) throws(RecordingError) -> ForeignRecording {
        var recording = ForeignRecording(path)
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        var files = AttachedFiles(folder.hasSuffix("mappings") ? "\(folder)/.." : folder)
        try read(mappings(object, path, &recording), &files, into: &recording)
        return recording
    }

    private struct Mapping {
        let path: String
        /// Its place in an import, such as `mappings/users.json` or `mapping 3`.
        let part: String
        let request: [String: Any]
        let response: [String: Any]
        let scenario: String?
        /// The state of its scenario in which it matches, and the next one, if any.
        let state: (before: String, after: String?)
        let hasPriority: Bool
    }

    private static func mappings(_ object: [String: Any], _ path: String, _ recording: inout ForeignRecording)
        -> [Mapping]
    {
        let (list, folderPart) = (object["mappings"] as? [Any], recording.part)
        defer { recording.part = "" }
        return (list ?? [object]).enumerated().compactMap { number, mapping in
            let own = list == nil ? "" : "mapping \(number + 1)"
            recording.part = [folderPart, own].filter { !$0.isEmpty }.joined(separator: ": ")
            guard let mapping = mapping as? [String: Any], let request = mapping["request"] as? [String: Any],
                let response = mapping["response"] as? [String: Any]
            else {
                recording.lose("mappings without a request or a response")
                return nil
            }
            let before = mapping["requiredScenarioState"] as? String ?? "Started"
            return Mapping(
                path: path,
                part: recording.part,
                request: request,
                response: response,
                scenario: mapping["scenarioName"] as? String,
                state: (before, mapping["newScenarioState"] as? String),
                hasPriority: mapping["priority"] != nil
            )
        }
    }

    private static func read(_ all: [Mapping], _ files: inout AttachedFiles, into recording: inout ForeignRecording)
        throws(RecordingError)
    {
        // The last one first, so that each is taken from the end.
        var chains = Dictionary(grouping: all.filter { $0.scenario != nil }) { $0.scenario ?? "" }
            .mapValues { Array(inOrder($0, &recording).reversed()) }
        for mapping in all {
            // Requests recorded several times form a scenario, whose files have random names.
            let mapping = mapping.scenario.flatMap { chains[$0]?.popLast() } ?? mapping
            recording.part = mapping.part
            if let exchange = try exchange(mapping, &files, &recording) { recording.exchanges.append(exchange) }
            if mapping.hasPriority { recording.lose("priorities") }
        }
        recording.part = ""
    }

    /// The mappings of a scenario from its first state to its last, if they form one chain.
    private static func inOrder(_ mappings: [Mapping], _ recording: inout ForeignRecording) -> [Mapping] {
        var rest = Dictionary(grouping: mappings.reversed(), by: \.state.before)
        var (chain, state) = ([Mapping](), "Started")
        while let next = rest[state]?.popLast() {
            chain.append(next)
            guard let after = next.state.after else { break }
            state = after
        }
        guard chain.count < mappings.count else { return chain }
        recording.lose("scenarios: responses come in the order of the file")
        return mappings
    }

    private static func exchange(_ mapping: Mapping, _ files: inout AttachedFiles, _ recording: inout ForeignRecording)
        throws(RecordingError) -> WholeExchange?
    {
        let (request, response) = (mapping.request, mapping.response)
        guard var url = (request["url"] ?? request["urlPath"]) as? String else {
            recording.lose("mappings whose URL is a pattern")
            return nil
        }
        guard response["fault"] == nil, response["proxyBaseUrl"] == nil else {
            recording.lose("mappings that break a connection or go on to another server")
            return nil
        }
        if response["transformers"] != nil { recording.lose("templates: the body is as the file has it") }
        let parameters = request["queryParameters"] as? [String: [String: Any]] ?? [:]
        for (name, matcher) in parameters.sorted(by: { $0.key < $1.key }) {
            guard let value = matcher["equalTo"] as? String else {
                recording.lose("mappings whose query is a pattern")
                return nil
            }
            url += "\(url.contains("?") ? "&" : "?")\(PercentEncoding.encode(name))=\(PercentEncoding.encode(value))"
        }
        if request["headers"] != nil || request["cookies"] != nil || request["basicAuthCredentials"] != nil {
            recording.lose("fields that a request must have: any request gets the response")
        }
        var asked: [UInt8] = []
        if let patterns = request["bodyPatterns"] as? [[String: Any]] {
            guard patterns.count == 1, let body = body(of: patterns[0]) else {
                recording.lose("mappings whose body is a pattern")
                return nil
            }
            asked = body
        }
        guard let status = response["status"].map({ $0 as? Int }) ?? 200 else {
            recording.lose("mappings whose status is not an integer")
            return nil
        }
        let fields = (response["headers"] as? [String: Any] ?? [:]).sorted { $0.key < $1.key }.flatMap { name, value in
            (value as? [Any] ?? [value]).map { (name, "\($0)") }
        }
        let method = (request["method"] as? String ?? "ANY").uppercased()
        if method == "ANY" { recording.lose("methods other than GET of mappings for any method") }
        return WholeExchange(
            method: method == "ANY" ? "GET" : method,
            target: url,
            requestBody: asked,
            response: .init(
                status: status,
                fields: recording.fields(fields, isHead: method == "HEAD"),
                body: try content(response, mapping.path, &files),
                delay: delay(response, &recording)
            )
        )
    }

    /// The delay before a response, in milliseconds; nil for none.
    private static func delay(_ response: [String: Any], _ recording: inout ForeignRecording) -> Int? {
        let distribution = response["delayDistribution"] as? [String: Any]
        let dribble = response["chunkedDribbleDelay"] as? [String: Any]
        if distribution != nil { recording.lose("delays that vary: they are always the middle one now") }
        if dribble != nil { recording.lose("bodies in delayed pieces: they come whole, after the same time") }
        func number(_ value: Any?) -> Double { (value as? NSNumber)?.doubleValue ?? 0 }
        let middle =
            distribution?["type"] as? String == "uniform"
            ? (number(distribution?["lower"]) + number(distribution?["upper"])) / 2 : number(distribution?["median"])
        let delay = number(response["fixedDelayMilliseconds"]) + middle + number(dribble?["totalDuration"])
        guard delay >= 1 else { return nil }
        let most = RecordedExchange.Response.delays.upperBound
        if delay > Double(most) { recording.lose("what delays have above an hour") }
        return Int(min(delay, Double(most)))
    }

    private static func body(of pattern: [String: Any]) -> [UInt8]? {
        let text = pattern["equalTo"] as? String ?? pattern["equalToJson"] as? String
        if let text { return Array(text.utf8) }
        return pattern["equalToJson"].map(bytes)
    }

    private static func bytes(_ json: Any) -> [UInt8] {
        let options: JSONSerialization.WritingOptions = [.fragmentsAllowed, .sortedKeys, .withoutEscapingSlashes]
        return (try? JSONSerialization.data(withJSONObject: json, options: options)).map(Array.init) ?? []
    }

    private static func content(_ response: [String: Any], _ path: String, _ files: inout AttachedFiles)
        throws(RecordingError) -> [UInt8]
    {
        if let text = response["body"] as? String { return Array(text.utf8) }
        if let json = response["jsonBody"] { return bytes(json) }
        if let text = response["base64Body"] as? String { return base64(text) }
        guard let name = response["bodyFileName"] as? String else { return [] }
        do throws(FileBytesError) {
            return try files.read("__files/\(name)")
        } catch { throw RecordingError(path, "bodyFileName: \"\(name.printable)\": \(error.reason)") }
    }
}
