import HTTPSemantics

/// The framing of an event stream, as in the HTML standard (§9.2.5).
package enum EventStreamText {
    package static let mediaType = "text/event-stream"

    static func head(_ fields: Fields) -> Fields {
        let own: Fields = ["Content-Type": mediaType, "Cache-Control": "no-store"]
        return Fields(own.lines + fields.lines)
    }

    /// A comment, invisible to the client's code, which shows both sides that the connection is alive.
    static let heartbeat = Array(":\n\n".utf8)

    /// Frames one event; its data must not contain line ends.
    package static func event(_ name: String, id: Int64, data: [UInt8]) -> [UInt8] {
        Array("id: \(id)\nevent: \(name)\ndata: ".utf8) + data + "\n\n".utf8
    }

    /// Sets the id from which the client resumes after a break; without data it is not an event (§9.2.6).
    package static func position(_ id: Int64) -> [UInt8] { Array("id: \(id)\n\n".utf8) }

    /// Sets the delay in milliseconds before the client reconnects.
    static func retry(after milliseconds: Int) -> [UInt8] { Array("retry: \(milliseconds)\n\n".utf8) }
}
