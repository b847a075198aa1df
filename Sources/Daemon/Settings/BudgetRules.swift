import HTTPSemantics

/// How Larder spends what an upstream's rate limits allow (`budget:`).
package struct BudgetRules: ConfigSection, Equatable {
    /// In percent of the limit.
    package var reserve = 10
    package var wait: Duration = .seconds(5)
    package var hasFreeNotModified = false
    /// The maximum number of requests of a credential under way; 0 for no limit.
    var atOnce = 0
    package var writeGap: Duration = .zero
    package var fields: ShownFields = .stored

    package init() {}

    /// The rate-limit fields in a response from the cache.
    package enum ShownFields: String, Sendable, CaseIterable {
        case stored, newest
    }

    static let keys: [ConfigKey<BudgetRules>] = documented([
        """
        The share of a rate limit that is kept for requests which need it. Below it, background refreshes, questions about doubts \
        and streams stop; below half of it, so do requests for what may be served stale. First requests and writes go on.
        """: .percentage("reserve", \.reserve),
        """
        How long a request waits at most for a used-up limit that is about to be reset, if nothing stored may be served. If it \
        is reset later, the client gets 429 with Retry-After at once.
        """: .duration("wait", \.wait, in: .zero ... .seconds(60)),
        "Whether the upstream does not count requests to which it responds with 304.":
            .boolean("free_not_modified", \.hasFreeNotModified),
        "The maximum number of requests of one credential at a time; further ones wait for their turn. 0 is no limit.":
            .integer("at_once", \.atOnce, in: 0...1000),
        "The time between two writes of one credential; a write waits for its turn. Requests to a path that ends in /graphql do not.":
            .duration("write_gap", \.writeGap, in: .zero ... .seconds(60)),
        """
        The rate-limit fields in what is served from the cache: those that it was stored with, or the newest ones of the same \
        credential and resource, for programs that take them as current. With "newest", it has X-From-Cache: 1.
        """: .choice("fields", \.fields),
    ])
}

extension ConfigKey {
    /// A whole number of hundredths: `10%`.
    fileprivate static func percentage(_ name: String, _ path: Path<Int>) -> ConfigKey where Section: ConfigSection {
        .parsed(
            name,
            wanted: "a percentage such as 10%",
            fallback: "\(Section()[keyPath: path])%",
            comparing: { former, new in
                let (old, value) = (former[keyPath: path], new[keyPath: path])
                return old == value ? [] : [ConfigChange(key: "", former: "\(old)%", new: "\(value)%")]
            }
        ) { text, section in
            guard text.hasSuffix("%"), let number = Int(text.dropLast()), (0...100).contains(number)
            else { throw InvalidValue("\"\(text)\" is not a percentage from 0% to 100%") }
            section[keyPath: path] = number
        }
    }
}
