import Foundation
import TestSupport
import Testing

/// JSON that is not UTF-8, and labels that name another charset (law 7).
@Suite(.scripts) struct CharsetTests {
    private static let labels = ["; charset=ISO-8859-1", "; charset=windows-1252", "; charset=us-ascii", ""]

    @Test(arguments: labels)
    func `a body that is not UTF-8 is passed on as received in every view, and changes no other document`(
        _ label: String
    ) throws {
        let type = "application/json\(label)"
        let latin = Array(#"{"id":7,"name":"Gro"#.utf8) + [0xDF] + Array(#""}"#.utf8)
        let list = #"[{"id":7,"name":"Groß"},{"id":8,"name":"Bo"}]"#
        let origin = try Origin { request in
            request.path == "/users"
                ? .json(list, Fresh.hour) : .body(latin, Fresh.hour + ["Content-Type": type])
        }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users")
        for view in ["wire", "mapped", "raw", "mapped"] {
            let detail = try larder.get("/users/7", ["Larder-View": view])
            #expect(detail.body == latin && detail["Content-Type"] == type, "\(view)")
        }
        #expect(origin.count("/users/7") == 1)
        #expect(try larder.waitForDocuments(2))
        for _ in 1...2 { #expect(try larder.get("/users").text == list) }
        try larder.restart()
        #expect(try larder.get("/users/7").body == latin)
        #expect(try larder.get("/users").text == list)
        let known = try larder.command("objects", "User", "7").output
        #expect(known.contains("Groß"), "\(known)")
        #expect(eventually { (try? larder.command("warnings").output.contains("not UTF-8")) == true })
    }

    @Test(arguments: [
        ("application/json; charset=ISO-8859-1", "application/json;charset=utf-8"),
        ("application/json;profile=\"a;b\"; Charset=\"us-ascii\"", "application/json;profile=\"a;b\";charset=utf-8"),
        ("application/json", "application/json"),
        ("application/json; charset=utf-8", "application/json; charset=utf-8"),
    ])
    func `composed text that is not ASCII is not labelled with another charset than UTF-8`(
        _ label: String,
        _ composed: String
    ) throws {
        let name = Monitor("Gross")
        let origin = try Origin { request in
            request.path == "/users"
                ? .json("[{\"id\":7,\"name\":\"\(name.current)\"}]", Fresh.hour)
                : .json(#"{"id":7,"name":"Gross","score":1}"#, Fresh.hour + ["Content-Type": label])
        }
        let larder = try Larder(config: Configs.blog(origin))
        #expect(try larder.get("/users/7")["Content-Type"] == label)
        name.withLock { $0 = "Klein" }
        _ = try larder.get("/users")
        let ascii = try larder.get("/users/7")
        #expect(ascii.isHit && ascii.text == #"{"id":7,"name":"Klein","score":1}"# && ascii["Content-Type"] == label)
        name.withLock { $0 = "Groß" }
        _ = try larder.get("/users", ["Cache-Control": "no-cache"])
        let other = try larder.get("/users/7")
        #expect(other.isHit && other.text == #"{"id":7,"name":"Groß","score":1}"#)
        #expect(other["Content-Type"] == composed)
    }
}
