import Foundation
import TestSupport
import Testing

@Suite struct TopTests {
    @Test func `top lists requests by program, credential and route`() throws {
        let origin = try Origin { request in .json(#"{"id":1,"path":"\#(request.path)"}"#, Fresh.hour) }
        let larder = try Larder(config: Configs.blog(origin))
        for number in 1...3 {
            let fields: FieldLines = ["User-Agent": "PyGithub/Python", "Authorization": "Bearer ada"]
            _ = try larder.get("/users/\(number)", fields)
            // Nobody watches, so these are counted by samples.
            for _ in 1...100 { #expect(try larder.get("/users/\(number)", fields).isHit) }
        }
        _ = try larder.get("/posts/1", ["User-Agent": "gh/2.0 (linux)"])
        #expect(try larder.waitForQuiet())

        let text = try larder.command("top").output
        let lines = text.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
        let program = try #require(lines.first { $0.first == "PyGithub" })
        let counts = try program[1...3].map { try #require(Int($0)) }
        #expect((200...303).contains(counts[0]) && counts[0] == counts[1] + 3 && counts[2] == 3, "\(text)")
        #expect(lines.contains { $0.starts(with: ["gh", "1", "0", "1"]) }, "\(text)")
        #expect(lines.contains { $0.starts(with: ["posts/{id:#}", "1", "0", "1"]) }, "\(text)")
        #expect(lines.contains { $0.starts(with: ["/posts/1", "1"]) }, "\(text)")

        let json = try larder.command("top", "--by", "principal", "--period", "minute", "--json").output
        let shown = try larder.admin("GET", "/requests").text
        let label = try #require(shown.firstMatch(of: /"principal":"([^"]+)","program":"PyGithub"/)?.1)
        #expect(json.contains("\"name\":\"\(label)\"") && !json.contains("ada"), "\(json)")
        #expect(try larder.admin("GET", "/top?by=colour").status == 400)
        #expect(try larder.command("top", "--limit", "0").end == .exited(64))
        let unknown = try larder.command("top", "--by", "programs")
        #expect(unknown.end == .exited(64) && unknown.errors.contains("'principal'"), "\(unknown.errors)")
    }
}
