import Foundation
import TestSupport
import Testing

/// What the presets say of writes, through the daemon.
@Suite(.scripts) struct PresetTests {
    private func daemon(_ preset: String, _ origin: Origin) throws -> Larder {
        try Larder(
            origin,
            config: """
                include: \(Repository.root)/config/\(preset).yaml
                upstreams: { \(preset): { url: "\(origin.url)" } }
                """
        )
    }

    @Test func `GitHub's preset serves programs that reach it under GitHub's own name`() throws {
        let origin = try Origin { _ in .json("{}", Fresh.hour) }
        let larder = try daemon("github", origin)
        #expect(try larder.get("/users/ada", ["Host": "api.github.com"]).status == 200)
        #expect(try larder.get("/users/ada", ["Host": "api.github.com"]).isHit)
        #expect(try larder.get("/users/ada", ["Host": "github.com"]).status == 421)
    }

    @Test func `an issue that is closed leaves the lists and searches of open ones`() throws {
        let isOpen = Monitor(true)
        let origin = try Origin { request in
            let issue = #"{"id":10,"number":7,"state":"\#(isOpen.current ? "open" : "closed")","title":"t"}"#
            if request.method == "PATCH" {
                isOpen.withLock { $0 = false }
                return .json(#"{"id":10,"number":7,"state":"closed","title":"t"}"#)
            }
            switch request.path {
            case "/repos/a/b/issues", "/issues", "/repositories/5/issues":
                return .json(isOpen.current ? "[\(issue)]" : "[]", Fresh.hour)
            case "/search/issues":
                return .json(
                    isOpen.current ? #"{"total_count":1,"items":[\#(issue)]}"# : #"{"total_count":0,"items":[]}"#,
                    Fresh.hour
                )
            default: return .json("[\(issue)]", Fresh.hour)
            }
        }
        let larder = try daemon("github", origin)
        let lists = [
            "/repos/a/b/issues?state=open", "/issues?filter=all", "/search/issues?q=is:open",
            "/repositories/5/issues?page=2",
        ]
        for path in lists + ["/repos/c/d/issues"] { _ = try larder.get(path) }
        #expect(try larder.waitForDocuments(5))
        #expect(try larder.request("PATCH", "/repos/a/b/issues/7", body: #"{"state":"closed"}"#).status == 200)
        for path in lists { #expect(try !larder.get(path).text.contains(#""number":7"#), "\(path)") }
        let elsewhere = try larder.get("/repos/c/d/issues")
        #expect(elsewhere.isHit && elsewhere.text.contains(#""state":"closed""#))
    }

    @Test func `taking somebody from an issue deletes no issue`() throws {
        let origin = try Origin { request in
            let people = request.method == "DELETE" ? "[]" : #"[{"id":1,"login":"ann"}]"#
            let issue = #"{"id":10,"number":7,"title":"t","assignees":\#(people)}"#
            return .json(
                request.path == "/search/issues" ? #"{"total_count":1,"items":[\#(issue)]}"# : issue,
                Fresh.hour
            )
        }
        let larder = try daemon("github", origin)
        _ = try larder.get("/repos/a/b/issues/7")
        #expect(try larder.waitForObjects(1, of: "Issue"))
        #expect(try larder.request("DELETE", "/repos/a/b/issues/7/assignees", body: "{}").status == 200)
        let issue = try larder.admin("GET", "/objects/Issue/10")
        #expect(issue.status == 200, "\(issue.text)")
        #expect(issue.text.contains(#""assignees":[]"#), "\(issue.text)")
    }

    @Test
    func `a DELETE keeps a canceled Stripe subscription, and removes a customer from lists`()
        throws
    {
        let customers =
            #"{"object":"list","data":[{"id":"cus_1","object":"customer"},{"id":"cus_2","object":"customer"}]}"#
        let origin = try Origin { request in
            switch (request.method, request.path) {
            case ("DELETE", "/v1/customers/cus_1"):
                .json(#"{"id":"cus_1","object":"customer","deleted":true}"#)
            case ("DELETE", _): .json(#"{"id":"sub_1","object":"subscription","status":"canceled"}"#)
            case (_, "/v1/customers"): .json(customers, Fresh.hour)
            default: .json(#"{"id":"sub_1","object":"subscription","status":"active"}"#, Fresh.hour)
            }
        }
        let larder = try daemon("stripe", origin)
        _ = try larder.get("/v1/subscriptions/sub_1")
        _ = try larder.get("/v1/customers")
        #expect(try larder.waitForObjects(1, of: "Subscription"))
        #expect(try larder.waitForObjects(2, of: "Customer"))
        #expect(try larder.request("DELETE", "/v1/subscriptions/sub_1").status == 200)
        let subscription = try larder.admin("GET", "/objects/Subscription/sub_1")
        #expect(subscription.status == 200, "\(subscription.text)")
        #expect(subscription.text.contains("canceled"))
        _ = try larder.get("/v1/customers")
        #expect(try larder.request("DELETE", "/v1/customers/cus_1").status == 200)
        let left = try larder.get("/v1/customers")
        #expect(left.text == #"{"object":"list","data":[{"id":"cus_2","object":"customer"}]}"#)
        #expect(left.isHit)
    }

    @Test func `a deleted Mastodon status leaves the timelines, and a favoured one is fetched again there`() throws {
        let isFavoured = Monitor(false)
        let origin = try Origin { request in
            func status(_ id: Int) -> String {
                #"{"id":"\#(id)","content":"x","favourited":\#(id == 6 && isFavoured.current)}"#
            }
            if request.method == "POST" {
                isFavoured.withLock { $0 = true }
                return .json(status(6))
            }
            if request.method == "DELETE" { return .json(status(5)) }
            return .json("[\(status(5)),\(status(6))]", Fresh.hour)
        }
        let larder = try daemon("mastodon", origin)
        _ = try larder.get("/api/v1/timelines/home")
        #expect(try larder.waitForObjects(2, of: "Status"))
        #expect(try larder.request("DELETE", "/api/v1/statuses/5").status == 200)
        let home = try larder.get("/api/v1/timelines/home")
        #expect(home.text == #"[{"id":"6","content":"x","favourited":false}]"#)
        #expect(home.isHit)
        #expect(try larder.request("POST", "/api/v1/statuses/6/favourite").status == 200)
        let again = try larder.get("/api/v1/timelines/home")
        #expect(!again.isHit && again.text.contains(#""id":"6","content":"x","favourited":true"#))
    }
}
