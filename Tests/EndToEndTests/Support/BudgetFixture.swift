import TestSupport

/// GitHub's origin and a daemon before it, with a budget.
enum BudgetFixture {
    static let token: FieldLines = [
        "Authorization": "Bearer ghs_ann_0123456789abcdef", "Accept": "application/vnd.github+json",
    ]

    static func github(_ pages: Int = 60) throws -> GitHubOrigin {
        let github = try GitHubOrigin(lifetime: 0)
        for number in 0..<pages { github.set("/repos/o/r\(number)", .repository(number)) }
        return github
    }

    static func daemon(_ origin: Origin, _ budget: String = "{}", _ upstream: String = "", top: String = "")
        throws -> Larder
    {
        try Larder(
            origin,
            config: """
                include: \(Repository.root)/config/github.yaml
                upstreams: { github: { url: "\(origin.url)", budget: \(budget)\(upstream) } }
                store: { withhold: 20s }
                \(top)
                """
        )
    }

    @discardableResult
    static func get(_ larder: Larder, _ number: Int, _ fields: FieldLines = token) throws -> Response {
        try larder.get("/repos/o/r\(number)", fields)
    }
}
