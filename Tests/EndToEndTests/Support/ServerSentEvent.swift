import Foundation

/// One server-sent event, read as the HTML standard (§9.2.6) has a browser read it.
struct ServerSentEvent: Sendable, Equatable {
    var name = "message"
    var data = ""
    /// The `id` that came with it.
    var id: String?

    /// All complete events of a stream.
    static func parse(_ bytes: [UInt8]) -> [ServerSentEvent] {
        let text = String(decoding: bytes, as: UTF8.self)
        var events: [ServerSentEvent] = []
        var (name, data, id): (String, [String], String?) = ("", [], nil)
        // A CRLF is one character to Swift, as it is one line end to the standard.
        var lines = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r" || $0 == "\r\n" }
        lines.removeLast()
        for line in lines {
            if line.isEmpty {
                if !data.isEmpty {
                    let text = data.joined(separator: "\n")
                    events.append(ServerSentEvent(name: name.isEmpty ? "message" : name, data: text, id: id))
                }
                (name, data, id) = ("", [], nil)
                continue
            }
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            var value = parts.count > 1 ? parts[1] : ""
            if value.first == " " { value.removeFirst() }
            switch parts[0] {
            case "event": name = String(value)
            case "data": data.append(String(value))
            case "id": id = String(value)
            default: break
            }
        }
        return events
    }
}

/// What an event of a `Larder-Live` stream tells.
struct LiveEvent: Sendable {
    let name: String
    let id: String?
    let status: Int?
    let age: Int?
    let headers: [String: String]
    /// The body's bytes, from `body` or `base64`; nil where there is neither.
    let body: [UInt8]?
    /// Whether the body came as base64.
    let isBinary: Bool
    let problemType: String?
    let problemStatus: Int?
    let problemDetail: String

    var text: String? { body.map { String(decoding: $0, as: UTF8.self) } }

    init(_ event: ServerSentEvent) throws {
        let members = try JSONSerialization.jsonObject(with: Data(event.data.utf8)) as? [String: Any] ?? [:]
        name = event.name
        id = event.id
        status = members["status"] as? Int
        age = members["age"] as? Int
        headers = members["headers"] as? [String: String] ?? [:]
        let encoded = members["base64"] as? String
        isBinary = encoded != nil
        body =
            (members["body"] as? String).map { Array($0.utf8) }
            ?? encoded.flatMap { Data(base64Encoded: $0) }.map { Array($0) }
        let problem = members["problem"] as? [String: Any] ?? [:]
        problemType = problem["type"] as? String
        problemStatus = problem["status"] as? Int
        problemDetail = problem["detail"] as? String ?? ""
    }
}

extension Response {
    /// The events of a `Larder-Live` stream that has ended.
    var events: [LiveEvent] {
        get throws { try ServerSentEvent.parse(body).map { try LiveEvent($0) } }
    }
}

extension Larder {
    /// What `Larder-Live: once` tells.
    func live(_ target: String, _ fields: FieldLines = [:]) throws -> [LiveEvent] {
        try get(target, fields + ["Larder-Live": "once"]).events
    }
}
