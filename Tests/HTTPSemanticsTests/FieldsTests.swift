import Testing

@testable import HTTPSemantics

@Suite struct FieldsTests {
    private let fields: Fields = ["ETag": "W/\"a: b\"", "X-Empty": "", "x-empty": "2", "Cache-Control": "no-store"]

    @Test func `encoded fields are read back byte for byte and in order`() {
        var fields = fields
        fields.append(Field(name: Array("X-Latin".utf8), value: [0xE9, 0x20, 0xFF]))
        #expect(Fields(encoded: fields.encoded) == fields)
        #expect(Fields(encoded: fields.encoded).encoded == fields.encoded)
        #expect(fields.encoded.starts(with: "ETag: W/\"a: b\"\r\nX-Empty: \r\nx-empty: 2\r\n".utf8))
        #expect(Fields(encoded: []) == Fields())
    }

    @Test(arguments: ["no colon\r\n", "HTTP/1.1 200 OK\r\nA: 1\r\n", "A:1\r\n", "A: 1\n", "A\n", ":\n", "A:\n", "A: 1"])
    func `text that is no encoded field is read without a trap, and is different once encoded`(text: String) {
        #expect(Fields(encoded: Array(text.utf8)).encoded != Array(text.utf8))
    }

    @Test func `fields are found in any case, known names and others`() {
        #expect(fields[.etag].map(Array.init) == Array("W/\"a: b\"".utf8))
        #expect(fields.text("etag") == "W/\"a: b\"" && fields.text("ETAG") == "W/\"a: b\"")
        #expect(fields.all("x-EMPTY") == [[], Array("2".utf8)])
        #expect(fields.combined("x-empty") == ", 2")
        #expect(fields.contains("cache-control") && fields.contains(.cacheControl))
        #expect(!fields.contains("x-empt") && !fields.contains("x-empty2") && !fields.contains(""))
        #expect(!fields.contains(.date) && fields[.date] == nil && fields.text("date") == nil)
    }

    @Test func `a name with a control character is no known name`() {
        #expect(!Fields([Field("cache\rcontrol", "no-store")]).contains(.cacheControl))
    }

    @Test func `lines that are removed, replaced and added keep the order of the others`() {
        var changed = fields
        changed.remove("X-Empty")
        changed.append("Date", "now")
        changed.replaceValue(at: 0, by: Array("\"longer than before\"".utf8))
        #expect(changed == ["ETag": "\"longer than before\"", "Cache-Control": "no-store", "Date": "now"])
        #expect(
            changed.encoded == Array("ETag: \"longer than before\"\r\nCache-Control: no-store\r\nDate: now\r\n".utf8)
        )
        #expect(changed.compact == changed && changed.compact.encoded == changed.encoded)
        #expect(changed.compact.byteCount < changed.byteCount)
        // A copy from before has not changed.
        #expect(fields.count == 4 && fields.text("etag") == "W/\"a: b\"")
        changed.set("date", "later")
        changed.append(member: Array("max-age=1".utf8), to: "Cache-Control")
        #expect(changed.text("cache-control") == "no-store, max-age=1" && changed.text("date") == "later")
        changed.append(contentsOf: fields)
        #expect(changed.all("etag").count == 2)
    }

    @Test func `hop-by-hop fields and those that Connection names are removed`() {
        let fields: Fields = [
            "Connection": "X-One, close", "x-one": "1", "Keep-Alive": "2", "Host": "h", "Trailer": "t", "X-Two": "2",
        ]
        #expect(fields.withoutHopByHop() == ["Host": "h", "X-Two": "2"])
        #expect((["Connection": "host, Cache-Control", "Host": "h"] as Fields).withoutHopByHop() == ["Host": "h"])
    }

    @Test func `only a plain number is a content length`() {
        for (value, length) in [
            ("12", 12), ("0", 0), ("+1", nil), ("", nil), ("1 ", nil), ("9999999999999999999", nil),
        ] {
            #expect((["Content-Length": value] as Fields).contentLength == length)
        }
        #expect(Fields().contentLength == nil)
    }
}
