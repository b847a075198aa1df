import Mapping

/// Responses in the manner of GitHub's, made up, the same at every run: pages of issues and each issue by itself.
///
/// Proportions follow recorded responses: an issue is 4 to 6 kB, a third of it addresses; users and labels come back again
/// and again; lists and details show the same objects.
enum IssuePages {
    /// Pages of thirty issues, then the issues of every `detailsEvery`th page by themselves.
    static func make(pages: Int, detailsEvery: Int) -> [Sample] {
        var random = SplitMix(state: 2187)
        var samples: [Sample] = []
        for page in 0..<pages {
            let issues = (0..<30).map { issue(page * 30 + $0, &random) }
            samples.append(
                Sample(
                    body: Array("[\(issues.joined(separator: ","))]".utf8),
                    model: "Issue",
                    isList: true,
                    path: "/repos/octo/larder/issues?page=\(page)"
                )
            )
            guard page % detailsEvery == 0 else { continue }
            for (index, text) in issues.enumerated() {
                let detail = text.dropLast() + #","closed_by":null,"pinned":false}"#
                let path = "/repos/octo/larder/issues/\(page * 30 + index)"
                samples.append(Sample(body: Array(detail.utf8), model: "Issue", isList: false, path: path))
            }
        }
        return samples
    }

    /// What the made-up responses hold, as a config would declare it.
    static func models() throws -> Models {
        func property(_ name: String, _ from: String) -> PropertyDeclaration {
            PropertyDeclaration(name: name, from: from)
        }
        return try Models([
            ModelDeclaration(
                name: "User",
                identity: ["id"],
                keys: ["login"],
                properties: [property("login", "login"), property("avatarURL", "avatar_url"), property("type", "type")]
            ),
            ModelDeclaration(name: "Label", identity: ["id"], sharesAll: true),
            ModelDeclaration(
                name: "Milestone",
                identity: ["id"],
                properties: [property("title", "title"), property("state", "state")]
            ),
            ModelDeclaration(
                name: "Issue",
                identity: ["id"],
                properties: [
                    property("number", "number"), property("title", "title"), property("state", "state"),
                    property("body", "body"), property("comments", "comments"), property("updatedAt", "updated_at"),
                    PropertyDeclaration(name: "user", from: "user", relation: .one("User")),
                    PropertyDeclaration(name: "assignees", from: "assignees", relation: .many("User")),
                    PropertyDeclaration(name: "labels", from: "labels", relation: .many("Label")),
                    PropertyDeclaration(name: "milestone", from: "milestone", relation: .one("Milestone")),
                ],
                modified: "updated_at"
            ),
            ModelDeclaration(
                name: "Repository",
                identity: ["id"],
                properties: [
                    property("name", "name"), property("fullName", "full_name"), property("stars", "stargazers_count"),
                    PropertyDeclaration(name: "owner", from: "owner", relation: .one("User")),
                ]
            ),
            ModelDeclaration(
                name: "Commit",
                identity: ["sha"],
                properties: [
                    PropertyDeclaration(name: "author", from: "author", relation: .one("User")),
                    PropertyDeclaration(name: "committer", from: "committer", relation: .one("User")),
                ]
            ),
        ])
    }

    // MARK: The parts of an issue

    private static let words = [
        "cache", "response", "upstream", "header", "list", "detail", "socket", "timer", "buffer", "route", "model",
        "stale",
        "the", "a", "of", "when", "after", "without", "fails", "returns", "twice", "never", "should",
        "r\\u00e9sum\\u00e9", "\\\"quoted\\\"",
    ]

    private static func text(_ count: Int, _ random: inout SplitMix) -> String {
        (0..<count).map { _ in words[random.below(words.count)] }.joined(separator: " ")
    }

    private static func user(_ id: Int) -> String {
        let api = "https://api.github.com/users/user\(id)"
        return """
            {"login":"user\(id)","id":\(1_000_000 + id),"node_id":"MDQ6VXNlcj\(id)","avatar_url":"https://avatars.githubusercontent.com/u/\(id)?v=4","gravatar_id":"","url":"\(api)","html_url":"https://github.com/user\(id)","followers_url":"\(api)/followers","following_url":"\(api)/following{/other_user}","gists_url":"\(api)/gists{/gist_id}","starred_url":"\(api)/starred{/owner}{/repo}","subscriptions_url":"\(api)/subscriptions","organizations_url":"\(api)/orgs","repos_url":"\(api)/repos","events_url":"\(api)/events{/privacy}","received_events_url":"\(api)/received_events","type":"User","site_admin":false}
            """
    }

    private static func label(_ id: Int) -> String {
        """
        {"id":\(208_045_946 + id),"node_id":"MDU6TGFiZWw\(id)","url":"https://api.github.com/repos/octo/larder/labels/area-\(id)","name":"area-\(id)","description":"Everything about area \(id)","color":"f2951\(id % 10)","default":false}
        """
    }

    private static func issue(_ number: Int, _ random: inout SplitMix) -> String {
        let api = "https://api.github.com/repos/octo/larder/issues/\(number)"
        let day = 10 + random.below(18)
        let labels = (0..<random.below(4)).map { _ in label(random.below(40)) }.joined(separator: ",")
        let assignees = (0..<random.below(3)).map { _ in user(random.below(300)) }.joined(separator: ",")
        let milestone =
            random.below(3) == 0
            ? "null"
            : #"{"url":"https://api.github.com/repos/octo/larder/milestones/1","id":\#(1000 + number % 7),"number":\#(number % 7),"title":"v\#(number % 7).0","state":"open","due_on":null}"#
        return """
            {"url":"\(api)","repository_url":"https://api.github.com/repos/octo/larder","labels_url":"\(api)/labels{/name}","comments_url":"\(api)/comments","events_url":"\(api)/events","html_url":"https://github.com/octo/larder/issues/\(number)","id":\(5_000_000 + number),"node_id":"MDU6SXNzdWU\(number)","number":\(number),"title":"\(text(8, &random))","user":\(user(random.below(300))),"labels":[\(labels)],"state":"open","locked":false,"assignees":[\(assignees)],"milestone":\(milestone),"comments":\(random.below(40)),"created_at":"2024-05-\(day)T08:00:00Z","updated_at":"2024-06-\(day)T09:30:00Z","closed_at":null,"author_association":"CONTRIBUTOR","active_lock_reason":null,"body":"\(text(60 + random.below(200), &random))","reactions":{"url":"\(api)/reactions","total_count":0,"+1":0,"-1":0,"laugh":0,"hooray":0,"confused":0,"heart":0,"rocket":0,"eyes":0},"timeline_url":"\(api)/timeline","performed_via_github_app":null,"state_reason":null}
            """
    }
}

/// A small generator of repeatable numbers.
struct SplitMix {
    var state: UInt64

    mutating func below(_ bound: Int) -> Int {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return Int((mixed ^ (mixed >> 31)) % UInt64(bound))
    }
}
