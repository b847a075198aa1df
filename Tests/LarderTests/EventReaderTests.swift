import Testing

@testable import Larder

/// Server-sent events as the command line reads them (HTML standard §9.2.6).
struct EventReaderTests {
    @Test func `events are read with any line ends, however their bytes are split`() {
        let text =
            "retry: 5\n\nid: 7\n\n: hello\nid: 8\nevent: a\ndata: x\ndata:y\r\n\r\n"
            + "event: b\rdata:  z\r\rdata\n\nid:9\n\n"
        let expected = [
            ReceivedEvent(name: "a", data: "x\ny", lastID: "8"), ReceivedEvent(name: "b", data: " z", lastID: "8"),
            ReceivedEvent(name: "message", data: "", lastID: "8"),
        ]
        for size in [1, 2, 3, 5, 1000] {
            var reader = EventReader()
            var (rest, found): (ArraySlice<UInt8>, [ReceivedEvent]) = (Array(text.utf8)[...], [])
            while !rest.isEmpty {
                found += reader.take(rest.prefix(size))
                rest = rest.dropFirst(size)
            }
            #expect(found == expected)
            #expect(reader.lastID == "9")
        }
    }

    @Test func `a truncated event is dropped, and its number ignored`() {
        var reader = EventReader(lastID: "3")
        #expect(reader.take(Array("id: 4\nevent: a\ndata: x\n".utf8)).isEmpty)
        #expect(reader.lastID == "3")
    }
}
