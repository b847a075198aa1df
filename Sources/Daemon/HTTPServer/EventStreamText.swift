/// The framing of an event stream, as in the HTML standard (§9.2.5).
package enum EventStreamText {
    package static let mediaType = "text/event-stream"

    /// A comment, invisible to the client's code, which shows both sides that the connection is alive.
    package static let heartbeat = Array(":\n\n".utf8)

    /// Frames one event; its data must not contain line ends.
    package static func event(_ name: String, id: Int64, data: [UInt8]) -> [UInt8] {
        var text = Array("id: \(id)\nevent: \(name)\ndata: ".utf8)
        text.reserveCapacity(text.count + data.count + 2)
        text += data
        text += "\n\n".utf8
        return text
    }

    /// Sets the id from which the client resumes after a break; without data it is not an event (§9.2.6).
    package static func position(_ id: Int64) -> [UInt8] {
        Array("id: \(id)\n\n".utf8)
    }

    /// Sets the delay in milliseconds before the client reconnects.
    package static func retry(after milliseconds: Int) -> [UInt8] {
        Array("retry: \(milliseconds)\n\n".utf8)
    }
}

extension [UInt8] {
    /// JSON text on one line: line ends occur only between tokens, where a space means the same.
    package var onOneLine: [UInt8] {
        contains { $0 == 0x0A || $0 == 0x0D } ? map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 } : self
    }
}
