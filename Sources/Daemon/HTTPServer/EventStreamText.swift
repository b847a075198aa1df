/// The text of an event stream as the HTML standard frames it (§9.2.5).
package enum EventStreamText {
    package static let mediaType = "text/event-stream"

    /// Nothing for the client to see, so that both sides know that the connection is alive.
    package static let heartbeat = Array(":\n\n".utf8)

    /// One event; its data are made of lines that have no line end of their own.
    package static func event(_ name: String, id: Int64, data: [UInt8]) -> [UInt8] {
        var text = Array("id: \(id)\nevent: \(name)\ndata: ".utf8)
        text.reserveCapacity(text.count + data.count + 2)
        text += data
        text += "\n\n".utf8
        return text
    }

    /// Where the client is to go on after a break; no event, for it has no data (§9.2.6).
    package static func position(_ id: Int64) -> [UInt8] {
        Array("id: \(id)\n\n".utf8)
    }

    /// After how many milliseconds the client is to come back when the connection breaks.
    package static func retry(after milliseconds: Int) -> [UInt8] {
        Array("retry: \(milliseconds)\n\n".utf8)
    }
}

extension [UInt8] {
    /// JSON text on one line: between its tokens a line end is as good as a space, and within them there is none.
    package var onOneLine: [UInt8] {
        contains { $0 == 0x0A || $0 == 0x0D } ? map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 } : self
    }
}
