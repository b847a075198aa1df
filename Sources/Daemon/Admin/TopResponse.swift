import HTTPSemantics
import Proxy
import Settings

/// `GET /top`.
package struct TopResponse: AdminBody {
    static let sentences = [
        "period": "`minute`, `hour` or `day`, up to now.", "order": "What the rows are in the order of.",
        "lists": "One for each subject asked for.",
    ]
    package var period: String
    var order: String
    package var lists: [List]

    package struct List: AdminBody {
        static let sentences = [
            "by": "`program`, `principal`, `upstream`, `route` or `url`.", "rows": "Those with the most first.",
        ]
        package var by: String
        package var rows: [Row]
    }

    package struct Row: AdminBody {
        static let sentences = [
            "name": "`\(TopLists.othersName)`: all beyond the number of names that are counted one by one.",
            "hits": "Those served from the cache.", "upstreamRequests": "Those for which the upstream was asked.",
            "bytes": "Bytes of the responses' bodies.", "seconds": "The sum of their durations.",
        ]
        package var name: String
        package var requests: Int
        package var hits: Int
        package var upstreamRequests: Int
        package var bytes: Int
        package var seconds: Double
    }

    package static let limits = 1...100

    static let parameters = AdminRoute.Parameter.documented([
        "What to count by: program, principal, upstream, route or url; all five by default.": .init("by"),
        "minute, hour or day; hour by default.": .init("period"),
        "requests, upstream_requests, bytes or seconds; requests by default.": .init("order"),
        "How many rows of each, 1 to 100; 10 by default.": .init("limit", .integer),
    ])

    init(_ request: AdminRequest, _ top: TopLists) throws {
        let subject = try request.choice("by", of: TopLists.Subject.self)
        let period = try request.choice("period", of: TopLists.Period.self) ?? .hour
        let order = try request.choice("order", of: TopLists.Order.self) ?? .requests
        let limit = try request.integer("limit", in: Self.limits) ?? 10
        (self.period, self.order) = (period.rawValue, order.rawValue)
        lists = (subject.map { [$0] } ?? TopLists.Subject.allCases).map { subject in
            let rows = top.list(by: subject, of: period, order: order, limit: limit)
            return List(by: subject.rawValue, rows: rows.map(Row.init))
        }
    }
}

extension TopResponse.Row {
    fileprivate init(name: String, counts: TopLists.Counts) {
        (self.name, requests, hits) = (name.printable, counts.requests, counts.hits)
        (upstreamRequests, bytes) = (counts.upstreamRequests, counts.bytes)
        seconds = (counts.seconds * 1_000).rounded() / 1_000
    }
}
