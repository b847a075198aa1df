import Foundation
import HTTPSemantics
import Settings

/// HAR 1.2, as browsers and proxies write it.
enum HARFile {
    static func read(_ object: [String: Any], _ path: String) throws(RecordingError) -> ForeignRecording {
        guard let log = object["log"] as? [String: Any], let entries = log["entries"] as? [Any]
        else { throw RecordingError(path, "the HAR has no log.entries") }
        var recording = ForeignRecording(path)
        var files = AttachedFiles(path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ".")
        for (number, entry) in entries.enumerated() {
            recording.part = "entry \(number + 1)"
            guard let entry = entry as? [String: Any], let request = entry["request"] as? [String: Any],
                let url = request["url"] as? String, let method = request["method"] as? String,
                let response = entry["response"] as? [String: Any], let status = response["status"] as? Int
            else {
                recording.lose("entries without a request's url or method, or a response's status as an integer")
                continue
            }
            guard MessageSyntax.finalStatuses.contains(status), url.hasPrefix("http") else {
                let isAnswered = status != 0
                recording.lose(isAnswered ? "responses that are not final, or not HTTP" : "requests without a response")
                continue
            }
            let content = response["content"] as? [String: Any] ?? [:]
            var fields = recording.fields(lines(response["headers"]), isHead: method == "HEAD")
            // Bodies are decoded in a HAR.
            fields.remove("content-encoding")
            let body =
                try attached(content, &files, path) ?? bytes(of: content, fields, size: content["size"], &recording)
            if body.isEmpty, content["size"] as? Int ?? 0 > 0, method != "HEAD" {
                recording.lose("responses whose body the file does not have")
                continue
            }
            let posted = request["postData"] as? [String: Any] ?? [:]
            if let entries = posted["params"] as? [[String: Any]], !entries.isEmpty, posted["text"] as? String == nil {
                recording.lose("bodies of requests that are given as parameters")
            }
            let sent = recording.fields(lines(request["headers"]))
            let asked = bytes(of: posted, sent, size: request["bodySize"], &recording)
            let exchange = WholeExchange(
                method: method,
                target: url,
                requestFields: sent,
                requestBody: try attached(posted, &files, path) ?? asked,
                response: .init(status: status, fields: fields, body: body),
                arrivalTime: (entry["startedDateTime"] as? String).flatMap(time)
            )
            recording.exchanges.append(exchange)
        }
        recording.part = ""
        recording.name(log[ForeignRecording.originsName] as? [String] ?? [])
        if log["pages"] != nil { recording.lose("the pages of the HAR") }
        return recording
    }

    /// The bytes of a body in the HAR: in Base64, or as text, which was in the charset that its type names.
    private static func bytes(
        of content: [String: Any],
        _ fields: Fields,
        size: Any?,
        _ recording: inout ForeignRecording
    ) -> [UInt8] {
        guard let text = content["text"] as? String else { return [] }
        if content["encoding"] as? String == "base64" { return base64(text) }
        var head = ContentHead(fields)
        if head.type.isEmpty { head.type = content["mimeType"] as? String ?? "" }
        let size = (size as? Int).flatMap { $0 > 0 ? $0 : nil }
        let read = ForeignText(text, charset: head.charset, size: size)
        if !read.isExact { recording.loseBytes(charset: head.charset) }
        return read.bytes
    }

    /// Reads a body that Playwright has put into a file beside the HAR (option `attach`); nil if there is none.
    private static func attached(_ content: [String: Any], _ files: inout AttachedFiles, _ path: String)
        throws(RecordingError) -> [UInt8]?
    {
        guard (content["text"] as? String ?? "").isEmpty, let name = content["_file"] as? String else { return nil }
        do throws(FileBytesError) {
            return try files.read(name)
        } catch { throw RecordingError(path, "_file: \"\(name.printable)\": \(error.reason)") }
    }

    private static func lines(_ value: Any?) -> [(String, String)] {
        (value as? [Any] ?? []).flatMap { header -> [(String, String)] in
            guard let header = header as? [String: Any], let name = header["name"] as? String,
                let value = header["value"] as? String
            else { return [] }
            // Browsers merge lines of one name into one value, separated by line feeds.
            return value.split(separator: "\n", omittingEmptySubsequences: false).map { (name, String($0)) }
        }
    }

    private static func time(_ text: String) -> Double? {
        let day = Date.ISO8601FormatStyle().year().month().day()
        let precise = day.time(includingFractionalSeconds: true).timeZone(separator: .omitted)
        let date = (try? Date(text, strategy: precise)) ?? (try? Date(text, strategy: .iso8601))
        return date?.timeIntervalSince1970 ?? RecordingTime.seconds(text).map(Double.init)
    }

    // MARK: Writing

    /// The HAR, and how many bodies of requests it has in other bytes, as it has text only.
    static func write(_ recording: RecordingContents, _ upstreams: [Configuration.Upstream])
        throws(RecordingError) -> (bytes: [UInt8], changed: Int)
    {
        var (entries, changed): ([JSONText], Int) = ([], 0)
        let origins = upstreams.originsByName
        for exchange in recording.exchanges {
            let url = (origins[exchange.upstream] ?? "") + exchange.request.target
            let sent = Fields(recorded: exchange.request.fields ?? [])
            let received = Fields(recorded: exchange.response.fields)
            let asked = try recording.folder.body(exchange.request.body)
            let body = try recording.folder.body(exchange.response.body)
            var request =
                message(sent, size: asked.count) + [
                    ("method", .string(exchange.request.method)), ("url", .string(url)),
                    ("queryString", .array(query(url))),
                ]
            if !asked.isEmpty {
                let type = sent.text("content-type") ?? ""
                let text = String(decoding: asked, as: UTF8.self)
                if !asked.elementsEqual(text.utf8) { changed += 1 }
                request.append(("postData", ["mimeType": .string(type), "text": .string(text)]))
            }
            let (text, type) = (text(of: body, received), received.text("content-type") ?? "")
            let content = JSONText.object(present: [
                "size": .integer(body.count), "mimeType": .string(type),
                "text": .string(text ?? Data(body).base64EncodedString()), "encoding": text == nil ? "base64" : nil,
            ])
            let response =
                message(received, size: -1) + [
                    ("status", .integer(exchange.response.status)),
                    ("statusText", .string(statusPhrase(exchange.response.status))), ("content", content),
                    ("redirectURL", .string(received.text("location") ?? "")),
                ]
            entries.append([
                "startedDateTime": .string(exchange.arrivalTime ?? "1970-01-01T00:00:00.000Z"), "time": 0,
                "request": .object(request), "response": .object(response), "cache": [:],
                "timings": ["send": 0, "wait": 0, "receive": 0],
            ])
        }
        let log = JSONText.object(present: [
            "version": "1.2", "creator": ["name": "larder", "version": "1"], "entries": .array(entries),
            ForeignRecording.originsName: upstreams.exportedOrigins.map { .array($0.map { .string($0) }) },
        ])
        return (Array((JSONText.object([("log", log)]).prettyText + "\n").utf8), changed)
    }

    /// A body as text, if reading that gives the same bytes; nil for Base64.
    private static func text(of body: [UInt8], _ fields: Fields) -> String? {
        guard !body.starts(with: WideText.utf8Mark), let text = String(validating: body, as: UTF8.self)
        else { return nil }
        return ForeignText(text, charset: ContentHead(fields).charset).bytes == body ? text : nil
    }

    private static func message(_ fields: Fields, size: Int) -> [(name: String, value: JSONText)] {
        let lines = fields.lines.map { pair(String(decoding: $0.name, as: UTF8.self), $0.text) }
        return [
            ("httpVersion", "HTTP/1.1"), ("headers", .array(lines)), ("cookies", []), ("headersSize", .integer(-1)),
            ("bodySize", .integer(size)),
        ]
    }

    private static func query(_ url: String) -> [JSONText] {
        (URLComponents(string: url)?.queryItems ?? []).map { pair($0.name, $0.value ?? "") }
    }

    private static func pair(_ name: String, _ value: String) -> JSONText {
        ["name": .string(name), "value": .string(value)]
    }
}

/// The bytes of a Base64 text, whatever else is in it; none if it is none.
func base64(_ text: String) -> [UInt8] {
    Data(base64Encoded: text, options: .ignoreUnknownCharacters).map(Array.init) ?? []
}
