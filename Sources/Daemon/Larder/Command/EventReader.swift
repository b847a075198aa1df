/// One server-sent event as it was received.
struct ReceivedEvent: Sendable, Equatable {
    var name = "message"
    /// The lines of its data, joined.
    var data = ""
    /// The number that came with it or before it.
    var lastID = ""
}

/// Reads a stream of server-sent events as the HTML standard defines (§9.2.6), in pieces of any length.
struct EventReader {
    /// The number to resume from: that of the last complete event.
    private(set) var lastID: String
    private var nextID: String
    private var line: [UInt8] = []
    private var name = ""
    private var data: [String] = []
    private var isAfterReturn = false

    init(lastID: String = "") {
        self.lastID = lastID
        nextID = lastID
    }

    /// Takes a piece; returns the events that it completes.
    mutating func take(_ bytes: some Sequence<UInt8>) -> [ReceivedEvent] {
        var events: [ReceivedEvent] = []
        for byte in bytes {
            let isSecondOfTwo = isAfterReturn && byte == 0x0A
            isAfterReturn = byte == 0x0D
            if isSecondOfTwo { continue }
            guard byte == 0x0A || byte == 0x0D else {
                line.append(byte)
                continue
            }
            if let event = endOfLine() { events.append(event) }
            line.removeAll(keepingCapacity: true)
        }
        return events
    }

    private mutating func endOfLine() -> ReceivedEvent? {
        if line.isEmpty {
            lastID = nextID
            defer { (name, data) = ("", []) }
            guard !data.isEmpty else { return nil }
            let name = name.isEmpty ? "message" : name
            return ReceivedEvent(name: name, data: data.joined(separator: "\n"), lastID: lastID)
        }
        let parts = line.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
        var value = parts.count > 1 ? parts[1] : []
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        let text = String(decoding: value, as: UTF8.self)
        switch String(decoding: parts[0], as: UTF8.self) {
        case "event": name = text
        case "data": data.append(text)
        case "id": if !text.utf8.contains(0) { nextID = text }
        default: break
        }
        return nil
    }
}
