import Glibc
import HTTPSemantics
import TestSupport
import Testing

@testable import Settings

/// `fleet:`.
struct FleetConfigTests {
    private let folder = TemporaryFolder()
    private let key: String

    init() throws { key = try folder.write(String(repeating: "0f", count: 32) + "\n", to: "key") }

    private func config(_ fleet: String) -> String {
        "upstreams: { alpha: { url: \"https://a.example\" } }\nfleet: { \(fleet) }"
    }

    private func found(_ yaml: String) -> [String] {
        ConfigFile.parse(yaml, file: "x", environment: [:]).diagnostics.map(\.description)
    }

    @Test func `a fleet has a server, a key, a password and upstreams`() throws {
        let password = try folder.write("s3cret\n", to: "password")
        let fleet = try #require(
            try settings(
                config(
                    "url: \"redis://ada@cache.internal:6380/3\", password: { from: \(password) }, key_file: \(key), upstreams: [alpha], "
                        + "coalesce: 2s"
                )
            ).fleet
        )
        #expect(fleet.server.address == .tcp(host: "cache.internal", port: 6380))
        #expect(fleet.server.user == "ada" && fleet.server.database == 3)
        #expect("\(fleet.server)" == "redis://ada@cache.internal:6380/3")
        #expect(fleet.password?.bytes == Array("s3cret".utf8) && fleet.key.bytes == [UInt8](repeating: 15, count: 32))
        #expect(fleet.coalesce == .seconds(2))
        #expect(fleet.shares(upstreamNamed: "alpha") && !fleet.shares(upstreamNamed: "beta"))
        #expect(!"\(fleet)".contains("115") && !"\(fleet)".contains("15, 15"))
    }

    @Test func `a fleet needs only a URL and a key file, and the rest has defaults`() throws {
        let fleet = try #require(try settings(config("url: \"redis://127.0.0.1\", key_file: \(key)")).fleet)
        #expect(fleet.server.address == .tcp(host: "127.0.0.1", port: 6379) && fleet.server.database == 0)
        #expect(fleet.password == nil && fleet.coalesce == .seconds(5) && fleet.shares(upstreamNamed: "any"))
        let socket = try #require(try settings(config("url: \"unix:/run/redis.sock\", key_file: \(key)")).fleet)
        #expect(socket.server.address == .unix(path: "/run/redis.sock") && "\(socket.server)" == "unix:/run/redis.sock")
        let six = try #require(try settings(config("url: \"redis://[::1]\", key_file: \(key)")).fleet)
        #expect(six.server.address == .tcp(host: "::1", port: 6379))
        #expect(try settings("upstreams: { alpha: { url: \"https://a.example\" } }").fleet == nil)
    }

    @Test(
        arguments: [
            ("key_file: KEY", "\"url\" is missing"),
            ("url: \"redis://127.0.0.1\"", "\"key_file\" is missing"),
            ("url: \"rediss://h\", key_file: KEY", "let a tunnel on this machine do it"),
            ("url: \"http://h\", key_file: KEY", "write redis://HOST:6379/0 or unix:PATH"),
            ("url: \"redis://:pw@h\", key_file: KEY", "must not contain a password"),
            ("url: \"redis://127.0.0.1/x\", key_file: KEY", "\"x\" is not the number of a database"),
            ("url: \"redis://127.0.0.1:x\", key_file: KEY", "\"x\" is not a port"),
            ("url: \"redis://127.0.0.1:0/1\", key_file: KEY", "\"0\" is not a port; a port is a number from 1 to"),
            ("url: \"redis://127.0.0.1:\", key_file: KEY", "\"\" is not a port; a port is a number from 1 to"),
            ("url: \"redis://127.0.0.1?x\", key_file: KEY", "leave out the rest"),
            ("url: \"redis://127.0.0.1\", key_file: KEY.none", "the fleet's key cannot be read"),
            ("url: \"redis://127.0.0.1\", key_file: KEY.short", "must contain 64 hexadecimal digits"),
            ("url: \"redis://127.0.0.1\", key_file: KEY.open", "every user of this machine may read"),
            ("url: \"redis://127.0.0.1\", key_file: KEY, password: { from: KEY.empty }", "is empty; put the password"),
            ("url: \"redis://127.0.0.1\", key_file: KEY, password: pw", "\"pw\" was found here; write keys"),
            (
                "url: \"redis://127.0.0.1\", key_file: KEY, upstreams: [alpa]",
                "there is no upstream \"alpa\"; did you mean \"alpha\"?"
            ),
            ("url: \"redis://127.0.0.1\", key_file: KEY, upstream: [alpha]", "did you mean \"upstreams\"?"),
            ("url: \"redis://cache.internal\", key_file: KEY", "is reached without a password"),
        ]
    )
    func `a mistake is reported once, with what to write instead`(fleet: String, part: String) throws {
        try folder.write("abc", to: "key.short")
        try folder.write("\n", to: "key.empty")
        #expect(chmod(try folder.write(String(repeating: "0f", count: 32), to: "key.open"), 0o644) == 0)
        let found = found(config(fleet.replacing("KEY", with: key)))
        #expect(found.count == 1 && found.first?.contains(part) == true, "\(found)")
    }

    @Test func `a change of the fleet's settings or of its key takes effect only at a restart`() throws {
        let former = try settings(config("url: \"redis://127.0.0.1\", key_file: \(key)"))
        for other in [
            config("url: \"redis://127.0.0.2\", key_file: \(key)"),
            "upstreams: { alpha: { url: \"https://a.example\" } }",
        ] {
            let (changes, inForce) = try settings(other).changes(since: former)
            #expect(
                changes.count == 1 && changes.allSatisfy { $0.needsRestart && $0.key.hasPrefix("fleet") },
                "\(changes)"
            )
            #expect(inForce.fleet == former.fleet)
        }
        try folder.write(String(repeating: "0e", count: 32), to: "key")
        let (changes, _) = try settings(config("url: \"redis://127.0.0.1\", key_file: \(key)")).changes(since: former)
        #expect(changes.map(\.key) == ["fleet.key_file"] && changes[0].new == nil)
    }

    @Test func `a recording has no fleet`() throws {
        #expect(try settings(config("url: \"redis://127.0.0.1\", key_file: \(key)")).asksAlways.fleet == nil)
    }
}
