import HTTPSemantics
import Proxy
import Settings
import Store

/// `GET /budget`.
package struct BudgetResponse: AdminBody {
    static let sentences = [
        "budgets": "What is left of each rate limit, for each credential; the smallest share first.",
        "spent": "The requests of the last hour that counted, by minute; the latest first.",
    ]
    package var budgets: [Budget]
    package var spent: [Expense]

    package struct Budget: AdminBody {
        static let sentences = [
            "principal": "The label of the credential, as `larder objects` shows it.",
            "resource": "What is limited: the upstream's name for it, or the path's first segment.",
            "limit": "Requests of a period.",
            "remaining": "Those that are left, by what the upstream said and Larder sent since.",
            "reset": "When the period ends (RFC 3339).",
            "usedUp": "When nothing is left at the pace of the last ten minutes, if that is before (RFC 3339).",
        ]
        package var upstream: String
        package var principal: String?
        package var resource: String?
        package var limit: Int64?
        package var remaining: Int64
        package var reset: String
        package var usedUp: String?
    }

    package struct Expense: AdminBody {
        static let sentences = [
            "minute": "When it began (RFC 3339).",
            "principal":
                "The label of the credential; `\(TopLists.othersName)` beyond the number that are counted one by one.",
            "program": "The client's program: the first product in its `User-Agent`.",
        ]
        package var minute: String
        package var upstream: String
        package var principal: String?
        package var resource: String?
        package var program: String?
        package var requests: Int
    }

    package static let limits = 1...1_000

    static let parameters = AdminRoute.Parameter.documented([
        "How many entries of each list, 1 to 1000; 100 by default.": .init("limit", .integer)
    ])

    init(_ request: AdminRequest, _ report: BudgetReport) throws {
        let limit = try request.integer("limit", in: Self.limits) ?? 100
        budgets = report.limits.prefix(limit).map(Budget.init)
        spent = report.expenses.prefix(limit).map(Expense.init)
    }
}

extension BudgetResponse.Budget {
    fileprivate init(_ one: BudgetReport.Limit) {
        (upstream, principal, resource) = (one.upstream, one.principal, one.resource?.printable)
        (limit, remaining) = (one.limit, one.remaining)
        reset = StoreTime.text(one.reset * 1_000_000)
        usedUp = one.usedUp.map { StoreTime.text($0 * 1_000_000) }
    }
}

extension BudgetResponse.Expense {
    fileprivate init(_ one: BudgetReport.Expense) {
        minute = StoreTime.text(one.minute * 1_000_000)
        (upstream, principal) = (one.spender.upstream, one.spender.principal)
        (resource, program) = (one.spender.resource?.printable, one.spender.program?.printable)
        requests = one.requests
    }
}
