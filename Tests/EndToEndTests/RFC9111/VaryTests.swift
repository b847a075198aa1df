import TestSupport
import Testing

/// RFC 9111 §4.1: the responses of one URL that `Vary` tells apart.
@Suite(.scripts) struct RFC9111VaryTests {
    /// One row: what the response varies by, what the first and the second request say, and whether the second is a hit.
    typealias Row = (vary: [String], first: FieldLines, second: FieldLines, isHit: Bool)

    private static let rows: [Row] = [
        (["X-A"], ["X-A": "1"], ["X-A": "1"], true),
        (["x-a"], ["X-A": "1"], ["x-A": "1"], true),
        (["X-A"], ["X-A": "1"], ["X-A": "2"], false),
        (["X-A"], ["X-A": "1"], [:], false),
        (["X-A"], [:], ["X-A": "1"], false),
        (["X-A"], [:], [:], true),
        // An empty field is a field.
        (["X-A"], ["X-A": ""], [:], false),
        (["X-A"], [:], ["X-A": ""], false),
        (["X-A"], ["X-A": ""], ["X-A": ""], true),
        (["X-A"], ["X-A": "a"], ["X-A": "A"], false),
        // What is not named does not select.
        (["X-A"], ["X-A": "1", "X-B": "1"], ["X-A": "1", "X-B": "2"], true),
        ([], ["X-A": "1"], ["X-A": "2"], true),
        ([""], ["X-A": "1"], ["X-A": "2"], true),
        // Several names, in one line and in several.
        (["X-A, X-B"], ["X-A": "1", "X-B": "2"], ["X-B": "2", "X-A": "1"], true),
        (["X-A, X-B"], ["X-A": "1", "X-B": "2"], ["X-A": "1", "X-B": "3"], false),
        (["X-A", "X-B"], ["X-A": "1", "X-B": "2"], ["X-A": "1", "X-B": "3"], false),
        (["X-A", "X-B"], ["X-A": "1", "X-B": "2"], ["X-A": "1", "X-B": "2"], true),
        (["X-A,, X-A ,"], ["X-A": "1"], ["X-A": "1"], true),
        // Several lines of one field are one list, and white space between its members means nothing.
        (["X-A"], ["X-A": "1", "x-a": "2"], ["X-A": "1, 2"], true),
        (["X-A"], ["X-A": "1,2"], ["X-A": "1 ,  2"], true),
        (["X-A"], ["X-A": "1, 2"], ["X-A": "2, 1"], false),
        (["X-A"], ["X-A": "\"1,2\""], ["X-A": "\"1, 2\""], false),
        // Where the field's syntax says that it means the same.
        (["Accept-Language"], ["Accept-Language": "en, DE;q=0.5"], ["Accept-Language": "de;q=0.50,EN"], true),
        (["Accept-Language"], ["Accept-Language": "en"], ["Accept-Language": "de"], false),
        (["Accept-Encoding"], ["Accept-Encoding": "gzip"], ["Accept-Encoding": "br"], true),
        // A field that `Connection` names does not go upstream (RFC 9110 §7.6.1), so it does not select either.
        (["X-A"], ["X-A": "1"], ["X-A": "1", "Connection": "X-A"], false),
        (["X-A"], ["X-A": "1", "Connection": "X-A"], ["X-A": "2", "Connection": "X-A"], true),
        // Nothing can be known to match a star, wherever it stands.
        (["*"], [:], [:], false),
        (["X-A, *"], [:], [:], false),
        (["*, X-A"], [:], [:], false),
        (["X-A", "*"], [:], [:], false),
        (["", "*"], [:], [:], false),
        (["*, *"], [:], [:], false),
        (["X A"], [:], [:], false),
    ]

    @Test func `§4.1: a stored response is used if the fields that Vary names mean the same`() throws {
        let rows = Self.rows
        let origin = try Origin { request in
            let row = rows[Int(request.path.dropFirst()) ?? 0]
            return .text(
                "\(request.number)",
                Fresh.hour + FieldLines(row.vary.map { .init(name: "Vary", value: $0) })
            )
        }
        let larder = try Larder(origin)
        for (index, row) in rows.enumerated() {
            let first = try larder.get("/\(index)", row.first)
            let second = try larder.get("/\(index)", row.second)
            #expect(second.isHit == row.isHit, "row \(index): Vary \(row.vary)")
            #expect((second.body == first.body) == row.isHit, "row \(index): Vary \(row.vary)")
        }
    }

    @Test func `§4.1: variants are stored side by side, and an unknown one is a vary-miss`() throws {
        let origin = try Origin { request in
            .text("\(request["X-A"] ?? "-")", Fresh.hour + ["Vary": "X-A"])
        }
        let larder = try Larder(origin)
        #expect(try larder.get("/x", ["X-A": "0"]).cacheStatus.contains("fwd=uri-miss"))
        for number in 1...3 {
            let answer = try larder.get("/x", ["X-A": "\(number)"])
            #expect(answer.cacheStatus.contains("fwd=vary-miss") && answer.text == "\(number)")
        }
        for number in 0...3 {
            let answer = try larder.get("/x", ["X-A": "\(number)"])
            #expect(answer.isHit && answer.text == "\(number)")
        }
        // Also out of the store, where memory knows nothing.
        #expect(try larder.waitForDocuments(4))
        try larder.restart()
        #expect(try larder.get("/x", ["X-A": "9"]).cacheStatus.contains("fwd=vary-miss"))
        #expect(try larder.get("/x", ["X-A": "2"]).isHit)
        #expect(try larder.get("/x", ["X-A": "8", "Cache-Control": "only-if-cached"]).status == 504)
    }

    @Test func `§4.1: each response is selected by its own Vary, and of several the most recent is used`() throws {
        let origin = try Origin { request in
            let step = request["X-Step"] ?? ""
            let date = CacheTests.date(in: step == "old" ? -20 : 0)
            let vary = ["old": "X-A", "new": "X-B"][step].map { ["Vary": $0] as FieldLines } ?? [:]
            return .text(step, ["Date": date] + Fresh.hour + vary)
        }
        let larder = try Larder(origin)
        // The newer by Date comes first, so that the order of arrival says the opposite.
        _ = try larder.get("/x", ["X-Step": "new", "X-A": "1", "X-B": "1"])
        _ = try larder.get("/x", ["X-Step": "old", "X-A": "1", "X-B": "2"])
        #expect(try larder.get("/x", ["X-A": "1", "X-B": "1"]).text == "new")
        #expect(try larder.get("/x", ["X-A": "1", "X-B": "3"]).text == "old")
        #expect(try larder.get("/x", ["X-A": "2", "X-B": "1"]).text == "new")
        #expect(origin.count() == 2)
        #expect(try larder.get("/x", ["X-A": "2", "X-B": "2"]).cacheStatus.contains("fwd=vary-miss"))
        #expect(try larder.waitForDocuments(3))
        try larder.restart()
        #expect(try larder.get("/x", ["X-A": "1", "X-B": "1"]).text == "new")
    }

    @Test func `§4.1: a response without Vary does not displace those that have it`() throws {
        let origin = try Origin { request in
            .text(request["X-A"] ?? "default", Fresh.hour + (request["X-A"] == nil ? [:] : ["Vary": "X-A"]))
        }
        let larder = try Larder(origin)
        _ = try larder.get("/x", ["X-A": "1"])
        _ = try larder.get("/x")
        #expect(try larder.get("/x", ["X-A": "1"]).text == "1")
        #expect(try larder.get("/x").text == "default")
    }

    @Test func `a server that varies by an ever-changing field fills neither memory nor store`() throws {
        let origin = try Origin { request in
            .text(request["X-A"] ?? "", Fresh.tagged(request["X-A"] ?? "") + ["Vary": "X-A"])
        }
        let larder = try Larder(origin)
        let client = try larder.client()
        for number in 0..<100 { #expect(try client.get("/x", ["X-A": "\(number)"]).text == "\(number)") }
        #expect(try larder.waitForDocuments(64))
        #expect(try client.get("/x", ["X-A": "99"]).isHit)
        #expect(try client.get("/x", ["X-A": "40"]).isHit)
        #expect(try !client.get("/x", ["X-A": "0"]).isHit)
        #expect((origin.requests.last?["If-None-Match"] ?? "").split(separator: ",").count <= 80)
    }

    @Test func `a field that Connection names selects no variant and no context`() throws {
        let origin = try Origin { request in
            .text("\(request["X-A"] ?? "-") \(request["Accept-Language"] ?? "-")", Fresh.hour + ["Vary": "X-A"])
        }
        let larder = try Larder(origin)
        let fields: FieldLines = ["X-A": "1", "Accept-Language": "de"]
        #expect(try larder.get("/x", fields + ["Connection": "x-a, accept-language"]).text == "- -")
        #expect(try larder.get("/x", fields).text == "1 de")
        #expect(try larder.get("/x").isHit)
    }
}
