import FoundationEssentials
import HTTPSemantics

/// What is known of a URL and what a request for it would get now, in the form that programs read.
///
/// The daemon writes it, `larder explain` reads it; `Explanation+Schema` describes it. No credential is in it.
package struct Explanation: Codable, Sendable, Equatable {
    package var request: Asked
    package var overrides: Overrides?
    /// Every variant stored under the key, the one that answers first.
    package var variants: [Variant]
    /// What is stored of the URL for other requests, and how those differ.
    package var others: [Other] = []
    /// The latest response to the URL that was not stored, as far as it is remembered.
    package var unstored: NotStored?
    /// The arithmetic of RFC 9111 §4.2 for the variant that answers; absent where none does.
    package var freshness: Freshness?
    /// The mode that the daemon is in.
    package var mode: String
    package var online: Outcome
    package var offline: Outcome
    /// What becomes of the upstream's answer, if it is asked now.
    package var upstream: Expectations?

    /// The request as the cache sees it.
    package struct Asked: Codable, Sendable, Equatable {
        package var method: String
        package var upstream: String
        /// What is sent upstream: as spelled by the client, credentials replaced.
        package var sent: String
        /// The URL that the answer is known by.
        package var key: String
        /// The route that speaks of its caching.
        package var route: Route?
        package var principal: Principal
        /// What of the request chooses the representation, besides `Vary`: `accept-language=de`.
        package var context: [String]
        var view: String
    }

    package struct Route: Codable, Sendable, Equatable {
        package var path: String
        package var method: String?
        package var model: String?
    }

    package struct Principal: Codable, Sendable, Equatable {
        /// `anonymous`, or `p-` and eight digits.
        package var label: String
        /// Whether anything was ever asked for on its behalf.
        package var isKnown: Bool
        /// The fields and query parameters of this request that make it: names only.
        package var fields: [String]
    }

    /// What the route says in place of the upstream.
    package struct Overrides: Codable, Sendable, Equatable {
        package var cache: String?
        package var fresh: String?
        package var stale: String?
        package var negative: String?
        package var varyIgnore: [String]
        package var keySort: Bool
        package var keyIgnore: [String]
    }

    /// One stored answer.
    package struct Variant: Codable, Sendable, Equatable {
        /// Whether it is the one for this request.
        package var isSelected: Bool
        package var status: Int
        /// What it was selected by, from `Vary`: `accept-encoding=` and the value, or the name alone where it was absent.
        package var selection: [String]
        package var inMemory: Bool
        /// The document in the store; absent until it is committed.
        package var document: Int64?
        /// `received`, `composed`, or `outdated`: newer values are known that cannot be shown.
        package var form: String
        /// Whether an object that it shows is known at a newer value than it shows.
        package var isDirty: Bool
        package var objects: Int
        package var bytes: Int
        package var age: Int64
        /// Negative once stale.
        package var timeToLive: Int64
        package var entityTag: String?
        package var lastModified: String?
    }

    /// A stored answer that requests with other fields get.
    package struct Other: Codable, Sendable, Equatable {
        var principal: String
        var context: [String]
        /// In what such a request differs from this one, a sentence each.
        package var differences: [String]
        package var status: Int
        var selection: [String]
        package var age: Int64
        /// Negative once stale.
        package var timeToLive: Int64
    }

    /// A response that was not stored.
    package struct NotStored: Codable, Sendable, Equatable {
        package var status: Int
        package var secondsAgo: Int64
        /// The rule in a word, such as `no-store` or `too-large`.
        package var rule: String
        /// Who decided it: `upstream`, `config`, `request`, `standard` or `larder`.
        package var decidedBy: String
        package var reason: String
        /// In what its request differed from this one.
        package var differences: [String]
    }

    /// Numbers with their sources.
    package struct Freshness: Codable, Sendable, Equatable {
        package var isFresh: Bool
        package var terms: [Term]
        /// What else bears on reuse, such as `no-cache`.
        package var rules: [String]
    }

    /// A number of seconds, and where it comes from.
    package struct Term: Codable, Sendable, Equatable {
        package var name: String
        package var seconds: Int64
        package var source: String
    }

    /// What a request would get in one mode.
    package struct Outcome: Codable, Sendable, Equatable {
        /// `answer`, `answer-and-refresh`, `ask`, `events`, `pass` (neither looked up nor stored), `write` or `refuse`.
        package var action: String
        /// The status that the client would see; absent where the upstream decides.
        package var status: Int?
        /// `Cache-Status` as far as it is known before the upstream has answered.
        package var cacheStatus: String
        package var reason: String
    }

    /// What becomes of the upstream's answer.
    package struct Expectations: Codable, Sendable, Equatable {
        /// The conditions that would be sent along.
        package var conditions: [String]
        package var notModified: String?
        /// Why nothing that it sends will be stored; absent where it decides.
        package var storing: String?
        package var failure: String
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
