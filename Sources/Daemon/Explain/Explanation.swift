import FoundationEssentials

/// What is known of a URL and what a request for it would get now, in the form that programs read.
///
/// The daemon writes it, `larder explain` reads it; `Explanation+Schema` describes it. No credential is in it.
struct Explanation: Codable, Sendable, Equatable {
    var request: Asked
    var overrides: Overrides?
    /// Every variant stored under the key, the one that answers first.
    var variants: [Variant]
    /// What is stored of the URL for other requests, and how those differ.
    var others: [Other] = []
    /// The latest response to the URL that was not stored, as far as it is remembered.
    var unstored: NotStored?
    /// The arithmetic of RFC 9111 §4.2 for the variant that answers; absent where none does.
    var freshness: Freshness?
    /// The mode that the daemon is in.
    var mode: String
    var online: Outcome
    var offline: Outcome
    /// What becomes of the upstream's answer, if it is asked now.
    var upstream: Expectations?

    /// The request as the cache sees it.
    struct Asked: Codable, Sendable, Equatable {
        var method: String
        var upstream: String
        /// What is sent upstream: as spelled by the client, credentials replaced.
        var sent: String
        /// The URL that the answer is known by.
        var key: String
        /// The route that speaks of its caching.
        var route: Route?
        var principal: Principal
        /// What of the request chooses the representation, besides `Vary`: `accept-language=de`.
        var context: [String]
        var view: String
    }

    struct Route: Codable, Sendable, Equatable {
        var path: String
        var method: String?
        var model: String?
    }

    struct Principal: Codable, Sendable, Equatable {
        /// `anonymous`, or `p-` and eight digits.
        var label: String
        /// Whether anything was ever asked for on its behalf.
        var isKnown: Bool
        /// The fields and query parameters of this request that make it: names only.
        var fields: [String]
    }

    /// What the route says in place of the upstream.
    struct Overrides: Codable, Sendable, Equatable {
        var cache: String?
        var fresh: String?
        var stale: String?
        var negative: String?
        var varyIgnore: [String]
        var keySort: Bool
        var keyIgnore: [String]
    }

    /// One stored answer.
    struct Variant: Codable, Sendable, Equatable {
        /// Whether it is the one for this request.
        var isSelected: Bool
        var status: Int
        /// What it was selected by, from `Vary`: `accept-encoding=` and the value, or the name alone where it was absent.
        var selection: [String]
        var inMemory: Bool
        /// The document in the store; absent until it is committed.
        var document: Int64?
        /// `received`, `composed`, or `outdated`: newer values are known that cannot be shown.
        var form: String
        /// Whether an object that it shows is known at a newer value than it shows.
        var isDirty: Bool
        var objects: Int
        var bytes: Int
        var age: Int64
        /// Negative once stale.
        var timeToLive: Int64
        var entityTag: String?
        var lastModified: String?
    }

    /// A stored answer that requests with other fields get.
    struct Other: Codable, Sendable, Equatable {
        var principal: String
        var context: [String]
        /// In what such a request differs from this one, a sentence each.
        var differences: [String]
        var status: Int
        var selection: [String]
        var age: Int64
        /// Negative once stale.
        var timeToLive: Int64
    }

    /// A response that was not stored.
    struct NotStored: Codable, Sendable, Equatable {
        var status: Int
        var secondsAgo: Int64
        /// The rule in a word, such as `no-store` or `too-large`.
        var rule: String
        /// Who decided it: `upstream`, `config`, `request`, `standard` or `larder`.
        var decidedBy: String
        var reason: String
        /// In what its request differed from this one.
        var differences: [String]
    }

    /// Numbers with their sources.
    struct Freshness: Codable, Sendable, Equatable {
        var isFresh: Bool
        var terms: [Term]
        /// What else bears on reuse, such as `no-cache`.
        var rules: [String]
    }

    /// A number of seconds, and where it comes from.
    struct Term: Codable, Sendable, Equatable {
        var name: String
        var seconds: Int64
        var source: String
    }

    /// What a request would get in one mode.
    struct Outcome: Codable, Sendable, Equatable {
        /// `answer`, `answer-and-refresh`, `ask`, `events`, `pass` (neither looked up nor stored), `write` or `refuse`.
        var action: String
        /// The status that the client would see; absent where the upstream decides.
        var status: Int?
        /// `Cache-Status` as far as it is known before the upstream has answered.
        var cacheStatus: String
        var reason: String
    }

    /// What becomes of the upstream's answer.
    struct Expectations: Codable, Sendable, Equatable {
        /// The conditions that would be sent along.
        var conditions: [String]
        var notModified: String?
        /// Why nothing that it sends will be stored; absent where it decides.
        var storing: String?
        var failure: String
    }
}

extension Explanation {
    /// As the admin side sends it, members in alphabetical order.
    var document: JSONText {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Texts, numbers and flags are all that is in it, so that nothing can be refused.
        guard let data = try? encoder.encode(self) else { preconditionFailure("an explanation is always JSON") }
        return .raw([UInt8](data))
    }
}
