import Foundation
import TestSupport
import Testing

/// Where what is known comes from, asked of the running daemon.
@Suite(.scripts) struct WhyTests {
    /// A blog whose user was seen in a list, in a post and by itself, and was written to.
    private func blog() throws -> (origin: Origin, larder: Larder) {
        let name = Monitor("Ada")
        let origin = try Origin { request in
            switch (request.method, request.target) {
            case ("PATCH", _):
                name.withLock { $0 = "Ada L." }
                return .json(#"{"id":1,"login":"ada","name":"Ada L."}"#)
            case (_, "/users"):
                return .json(
                    #"[{"id":1,"login":"ada","name":"\#(name.current)","score":1,"html_url":"u"}]"#,
                    Fresh.hour
                )
            case (_, "/posts/7"):
                return .json(#"{"id":7,"author":{"id":1,"name":"\#(name.current)"}}"#, Fresh.hour)
            default:
                return .json(#"{"id":1,"login":"ada","name":"\#(name.current)"}"#, Fresh.hour)
            }
        }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users")
        _ = try larder.get("/posts/7")
        #expect(try larder.waitForDocuments(2))
        _ = try larder.request("PATCH", "/users/1", body: #"{"name":"Ada L."}"#)
        return (origin, larder)
    }

    private func objects(_ response: Response) throws -> [[String: Any]] {
        try #require(response.object["objects"] as? [[String: Any]])
    }

    @Test func `why names for a member the write that set it, and the value that it replaced`() throws {
        let (origin, larder) = try blog()
        _ = origin
        let response = try larder.admin("GET", "/objects/User/1/why")
        #expect(response.status == 200, "\(response.text)")
        let object = try #require(try objects(response).first)
        let members = try #require(object["members"] as? [[String: Any]])
        let name = try #require(members.first { $0["pointer"] as? String == "/name" })
        #expect(name["value"] as? String == "Ada L.")
        #expect(name["standing"] as? String == "known")
        let from = try #require(name["from"] as? [String: Any])
        #expect(from["method"] as? String == "PATCH")
        #expect(from["url"] as? String == "/users/1")
        let replaced = try #require(name["replaced"] as? [String: Any])
        #expect(replaced["value"] as? String == "Ada")
        #expect(replaced["rule"] as? String == "C2")
        #expect(replaced["reason"] as? String == "it was observed later")
        let standings = Dictionary(
            uniqueKeysWithValues: members.map { ($0["pointer"] as? String ?? "", $0["standing"] as? String ?? "") }
        )
        #expect(standings["/score"] == "local")
        #expect(standings["/html_url"] == "undeclared")
        let documents = try #require(object["documents"] as? [[String: Any]])
        #expect(documents.compactMap { $0["url"] as? String } == ["/posts/7", "/users"])
        #expect(documents.allSatisfy { $0["shows"] as? String == "composed" })
    }

    @Test func `an object's documents can be listed in pages`() throws {
        let (origin, larder) = try blog()
        _ = origin
        let first = try larder.admin("GET", "/objects/User/ada/documents?limit=1")
        let urls = try #require(first.object["documents"] as? [[String: Any]]).compactMap { $0["url"] as? String }
        #expect(urls == ["/posts/7"])
        let next = try #require(first.object["next"] as? String)
        let second = try larder.admin("GET", "/objects/User/ada/documents?limit=5&after=\(next)")
        let rest = try #require(second.object["documents"] as? [[String: Any]]).compactMap { $0["url"] as? String }
        #expect(rest == ["/users"])
        #expect(second.object["next"] == nil)
        let wrong = try larder.admin("GET", "/objects/User/1/documents?after=x")
        #expect(wrong.status == 400 && wrong.text.contains("its `next`, or what follows"))
        let table = try larder.command("documents", "--shows", "User/1")
        #expect(table.end == .exited(0), "\(table.errors)")
        #expect(table.output.contains("/posts/7"))
        #expect(table.output.contains("the newest, composed"))
        #expect(try larder.command("documents", "--shows", "User").end == .exited(64))
    }

    @Test func `larder why is a table for people and JSON for programs`() throws {
        let (origin, larder) = try blog()
        _ = origin
        let text = try larder.command("why", "User", "ada")
        #expect(text.end == .exited(0), "\(text.errors)")
        #expect(text.output.contains("PATCH /users/1"), "\(text.output)")
        #expect(text.output.contains("replaced: it was observed later"), "\(text.output)")
        #expect(text.output.contains("html_url"))
        #expect(text.output.contains("Shown by:"))
        let one = try larder.command("why", "User", "1", "--member", "name", "--documents", "0", "--json")
        let json = try #require(try JSONSerialization.jsonObject(with: Data(one.output.utf8)) as? [String: Any])
        let object = try #require((json["objects"] as? [[String: Any]])?.first)
        #expect((object["members"] as? [[String: Any]])?.count == 1)
        #expect((object["documents"] as? [Any])?.isEmpty == true)
    }

    @Test func `an unknown object or model gets an error with suggestions`() throws {
        let (origin, larder) = try blog()
        _ = origin
        func refusal(_ path: String) throws -> String {
            let response = try larder.admin("GET", path)
            #expect(response.status == 404, "\(path)")
            return response.text
        }
        #expect(try refusal("/objects/Usr/1/why").contains("did you mean User?"))
        #expect(try refusal("/objects/User/adda/why").contains("did you mean ada?"))
        #expect(try refusal("/objects/User/7/why").contains("a Post of blog is"))
        #expect(try refusal("/objects/User/1/why?member=nme").contains("did you mean name?"))
        #expect(try refusal("/objects/User/99/documents").contains("there is no User with the identity or key 99"))
        #expect(try larder.admin("GET", "/objects/User/1/why?documents=x").status == 400)
        let command = try larder.command("why", "Usr", "1")
        #expect(command.end == .exited(1))
        #expect(command.errors.contains("did you mean User?"))
    }

    @Test func `an object that two principals know has an account for each`() throws {
        let origin = try Origin { request in
            .json(#"{"id":1,"login":"ada","name":"\#(request["Authorization"] ?? "nobody")"}"#, Fresh.hour)
        }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users/1", ["Authorization": "Bearer one"])
        _ = try larder.get("/users/1", ["Authorization": "Bearer two"])
        #expect(try larder.waitForDocuments(2))
        let found = try objects(try larder.admin("GET", "/objects/User/1/why"))
        #expect(found.count == 2)
        let label = try #require(found.first?["principal"] as? String)
        let one = try objects(try larder.admin("GET", "/objects/User/1/why?principal=\(label)"))
        #expect(one.count == 1)
        #expect((one.first?["documents"] as? [Any])?.count == 1)
    }

    @Test func `clients that ask at once for a changed document all get the newest`() throws {
        let users = (1...400).map { #"{"id":\#($0),"login":"user\#($0)","name":"n"}"# }.joined(separator: ",")
        let name = Monitor("n")
        let origin = try Origin { request in
            request.target == "/users"
                ? .json("[\(users)]", Fresh.hour)
                : .json(#"{"id":1,"login":"user1","name":"\#(name.current)"}"#, Fresh.never)
        }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users")
        #expect(try larder.waitForDocuments(1))
        for round in 1...5 {
            name.withLock { $0 = "round \(round)" }
            _ = try larder.get("/users/1")
            let wanted = "round \(round)"
            #expect(try eventually { try larder.get("/users/1").text.contains(wanted) })
            #expect(try eventually { try larder.get("/users").text.contains(wanted) })
            let answers = try together(12) { _ in try larder.get("/users").text }
            #expect(answers.allSatisfy { $0.contains(wanted) })
        }
        #expect(origin.count("/users") == 1)
    }

    @Test func `the mapped view follows each change, and is the same each time in between`() throws {
        let name = Monitor("Ada")
        let origin = try Origin { request in
            request.target == "/users"
                ? .json(#"[{"id":1,"login":"ada","name":"Ada"}]"#, Fresh.hour)
                : .json(#"{"id":1,"login":"ada","name":"\#(name.current)"}"#, Fresh.never)
        }
        let larder = try Larder(config: Configs.blog(origin))
        _ = try larder.get("/users")
        #expect(try larder.waitForDocuments(1))
        let mapped: FieldLines = ["Larder-View": "mapped"]
        for wanted in ["Ada", "Bela", "Cleo"] {
            name.withLock { $0 = wanted }
            _ = try larder.get("/users/1")
            #expect(try eventually { try larder.get("/users", mapped).text.contains(wanted) })
            let first = try larder.get("/users", mapped)
            let second = try larder.get("/users", mapped)
            #expect(first.text == second.text)
            #expect(first["ETag"] == second["ETag"])
            #expect(first.isHit && second.isHit)
            #expect(try larder.get("/users", mapped + ["If-None-Match": first["ETag"] ?? ""]).status == 304)
            #expect(try larder.get("/users").text.contains(wanted))
        }
    }
}
