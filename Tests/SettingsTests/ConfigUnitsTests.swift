import Testing

@testable import HTTPSemantics
@testable import Settings

struct ConfigUnitsTests {
    @Test(arguments: [
        ("500ms", Duration.milliseconds(500)), ("30s", .seconds(30)), ("5m", .seconds(300)), ("1h30m", .seconds(5400)),
        ("1d", .seconds(86_400)), ("2w", .seconds(1_209_600)), ("0", .zero), ("0s", .zero), ("forever", .forever),
    ])
    func `durations are read with their units`(_ text: String, _ duration: Duration) throws {
        #expect(try Units.duration(text) == duration)
    }

    @Test(arguments: [
        "", "s", "5", "5 s", "-5s", "1.5s", "5S", "5s5", "99999999999999999999s", "9999999999999999w", "٣s",
    ])
    func `an invalid duration is refused`(_ text: String) {
        #expect(throws: InvalidValue.self) { try Units.duration(text) }
    }

    @Test func `an invalid duration gets examples of durations, and an invalid size examples of sizes`() {
        #expect(throws: InvalidValue("\"sixty\" is not a duration such as 500ms, 30s, 5m or 1d")) {
            try Units.duration("sixty")
        }
        #expect(throws: InvalidValue("\"much\" is not a size such as 4096, 512KiB, 64MiB or 1GiB")) {
            try Units.size("much")
        }
    }

    @Test(arguments: [("500ms", "500ms"), ("90s", "1m30s"), ("24h", "1d"), ("0", "0s"), ("forever", "forever")])
    func `durations are written so that they can be read again`(_ text: String, _ written: String) throws {
        #expect(Units.text(try Units.duration(text)) == written)
        #expect(try Units.duration(written) == Units.duration(text))
    }

    @Test(arguments: [(192_900, "3m12s"), (1_000, "1s"), (999, "999ms"), (0, "0s")])
    func `a rounded duration has no fractions of seconds`(_ milliseconds: Int, _ text: String) {
        #expect(Units.roundedText(.milliseconds(milliseconds)) == text)
    }

    @Test(arguments: [
        ("0", 0), ("4096", 4096), ("512KiB", 524_288), ("64MiB", 67_108_864), ("1GB", 1_000_000_000), ("7B", 7),
    ])
    func `sizes are read with their units`(_ text: String, _ bytes: Int) throws {
        #expect(try Units.size(text) == bytes)
    }

    @Test(arguments: ["", "MiB", "5mb", "5 MiB", "5MiB5", "-1", "1.5GiB", "99999999999TiB", "64", "1023"])
    func `an invalid size is refused`(_ text: String) {
        #expect(throws: InvalidValue.self) { try Units.size(text) }
    }

    @Test(arguments: [0, 1, 1000, 1024, 16 << 20, 1 << 30, (1 << 30) + 1])
    func `sizes are written so that they can be read again`(_ bytes: Int) throws {
        #expect(try Units.size(Units.text(size: bytes)) == bytes)
    }

    @Test func `the nearest word is suggested if it is close enough`() {
        let words = ["connect", "first_byte", "stall"]
        #expect(Suggestion.nearest(to: "conect", among: words) == "connect")
        #expect(Suggestion.nearest(to: "cnonect", among: words) == "connect")
        #expect(Suggestion.nearest(to: "firstByte", among: words) == "first_byte")
        #expect(Suggestion.nearest(to: "colour", among: words) == nil)
    }

    @Test(arguments: ["127.0.0.1:8787", "[::1]:80", "localhost:0", "unix:/run/larder.sock"])
    func `addresses are written as they are read`(_ text: String) throws {
        #expect(try Address(text).description == text)
    }

    @Test func `a socket's path that is longer than the system allows is refused`() throws {
        _ = try Address("unix:/" + String(repeating: "x", count: 106))
        #expect(throws: InvalidValue("the socket path is 108 bytes long; Linux takes 107 at most")) {
            try Address("unix:/" + String(repeating: "x", count: 107))
        }
    }

    @Test func `an upstream's URL is kept in its plainest spelling`() throws {
        let url = try UpstreamURL("HTTPS://API.Example.com:8443/v4/")
        #expect(url.description == "https://api.example.com:8443/v4")
        #expect(url.basePath == "/v4")
        #expect(url.authority == "api.example.com:8443")
        #expect(try UpstreamURL("http://[::1]:80/").authority == "[::1]:80")
    }
}
