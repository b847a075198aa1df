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

    /// What a service sends with its responses, and what its programs send.
    struct Service: Sendable, CustomTestStringConvertible {
        let preset: String
        let fields: FieldLines
        let credential: String
        let programs: [FieldLines]
        let bodies: [String: String]

        var testDescription: String { preset }
    }

    static let services = [
        Service(
            preset: "github",
            fields: [
                "Cache-Control": "private, max-age=60, s-maxage=60",
                "Vary": "Accept, Authorization, Cookie, X-GitHub-OTP,Accept-Encoding, Accept, X-Requested-With",
                "X-GitHub-Media-Type": "github.v3; format=json", "X-RateLimit-Limit": "5000",
                "X-RateLimit-Remaining": "4990", "X-RateLimit-Resource": "core",
            ],
            credential: "Authorization",
            programs: [
                ["User-Agent": "PyGithub/Python", "Accept": "application/vnd.github+json"],
                [
                    "User-Agent": "octokit.js/3", "Accept": "application/vnd.github+json",
                    "X-GitHub-Api-Version": "2022-11-28",
                ],
            ],
            bodies: [
                "/user": #"{"login":"ann","id":1,"type":"User"}"#,
                "/repos/o/r": #"{"id":5,"name":"r","full_name":"o/r","owner":{"login":"ann","id":1}}"#,
                "/user/repos": #"[{"id":5,"name":"r","full_name":"o/r","owner":{"login":"ann","id":1}}]"#,
                "/repos/o/r/issues": #"[{"id":9,"number":2,"state":"open","title":"t","user":{"login":"ann","id":1}}]"#,
            ]
        ),
        Service(
            preset: "gitlab",
            fields: [
                "Cache-Control": "max-age=0, private, must-revalidate", "Vary": "Origin, Accept-Encoding",
                "RateLimit-Limit": "2000", "RateLimit-Remaining": "1990", "X-Content-Type-Options": "nosniff",
            ],
            credential: "Private-Token",
            programs: [["User-Agent": "python-gitlab/4.4.0"], ["User-Agent": "glab/1.36"]],
            bodies: [
                "/api/v4/user": #"{"id":1,"username":"ann","name":"Ann"}"#,
                "/api/v4/projects/5": #"{"id":5,"name":"p","path_with_namespace":"o/p"}"#,
                "/api/v4/projects": #"[{"id":5,"name":"p","path_with_namespace":"o/p"}]"#,
                "/api/v4/projects/5/issues": #"[{"id":9,"iid":2,"project_id":5,"state":"opened","title":"t"}]"#,
            ]
        ),
        Service(
            preset: "mastodon",
            fields: [
                "Cache-Control": "private, no-store", "Vary": "Authorization, Origin", "X-RateLimit-Limit": "300",
                "X-RateLimit-Remaining": "290",
            ],
            credential: "Authorization",
            programs: [["User-Agent": "mastodonpy"], ["User-Agent": "Tusky/24"]],
            bodies: [
                "/api/v1/accounts/1": #"{"id":"1","username":"ann","acct":"ann","display_name":"Ann"}"#,
                "/api/v1/statuses/7": #"{"id":"7","content":"hi","account":{"id":"1","username":"ann","acct":"ann"}}"#,
                "/api/v1/timelines/home":
                    #"[{"id":"7","content":"hi","account":{"id":"1","username":"ann","acct":"ann"}}]"#,
            ]
        ),
        Service(
            preset: "stripe",
            fields: [
                "Cache-Control": "no-cache, no-store", "Vary": "Origin", "Stripe-Version": "2024-06-20",
                "Request-Id": "req_1",
            ],
            credential: "Authorization",
            programs: [
                ["User-Agent": "Stripe/v1 PythonBindings/9", "X-Stripe-Client-User-Agent": #"{"lang":"python"}"#],
                ["User-Agent": "Stripe/v1 NodeBindings/15", "X-Stripe-Client-User-Agent": #"{"lang":"node"}"#],
            ],
            bodies: [
                "/v1/customers/cus_1": #"{"id":"cus_1","object":"customer","email":"a@b.c"}"#,
                "/v1/customers":
                    #"{"object":"list","data":[{"id":"cus_1","object":"customer","email":"a@b.c"}],"has_more":false}"#,
                "/v1/charges/ch_1": #"{"id":"ch_1","object":"charge","amount":5,"customer":"cus_1"}"#,
            ]
        ),
    ]

    @Test(arguments: services)
    func `a preset costs no more upstream requests than no preset, with the fields that its service really sends`(
        service: Service
    ) throws {
        func cost(isPreset: Bool) throws -> Int {
            let origin = try Origin { request in
                guard let body = service.bodies[request.path] else { return .json("{}", status: 404) }
                let tag = "W/\"\(request.path.utf8.reduce(0) { ($0 &* 31 &+ Int($1)) & 0xffff_ffff })\""
                let fields = service.fields + ["ETag": tag]
                return request["If-None-Match"]?.contains(tag) == true
                    ? .notModified(fields) : .json(body, fields)
            }
            let larder = try isPreset ? daemon(service.preset, origin) : Larder(origin)
            var random = SeededGenerator(seed: 7)
            let paths = service.bodies.keys.sorted()
            for step in 0..<120 {
                let path = random.pick(paths)
                let token = "Bearer sk_test_0123456789abcdef\(random.below(2))"
                let response = try larder.get(path, random.pick(service.programs) + [service.credential: token])
                #expect(response.text == service.bodies[path], "step \(step): \(response)")
            }
            return origin.requests.count
        }
        let (with, without) = (try cost(isPreset: true), try cost(isPreset: false))
        #expect(with <= without, "\(with) with the preset, \(without) without")
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

    @Test func `removing assignees from an issue does not delete the issue`() throws {
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
