/// What Larder may have stored, by what was asked for.
///
/// Where nobody knows which response has stayed, several may have.
struct StoredDocuments {
    /// A stored response, and how it may be reused.
    struct Document: Equatable {
        let received: Received
        /// The program that it is kept for; nil where it serves all.
        private(set) fileprivate var client: String?
        /// The program whose request it came for, where what came for the others stays beside it.
        private(set) fileprivate var division: String?
        private(set) var isServedStale: Bool
        private var saysFresh: Bool
        /// When it has certainly become stale; nil if the history is over by then.
        private var expiry: ContinuousClock.Instant?

        /// Whether it may be reused without asking.
        var isFresh: Bool { saysFresh && expiry.map { ContinuousClock.now < $0 } ?? true }

        init(_ received: Received, client: String) {
            self.received = received
            self.client = received.control == .private ? client : nil
            division = received.isDivided ? client : nil
            (saysFresh, isServedStale) = (received.isFresh, received.isServedStale)
            expiry = received.expiry
        }

        /// What it may be after a 304 to a program.
        fileprivate func renewed(by later: Received, for client: String) -> [Document] {
            var document = self
            (document.saysFresh, document.isServedStale) = (later.isFresh, later.isServedStale)
            document.expiry = later.expiry
            guard division != client else { return [document] }
            // It serves that program from now on. What came for another program's fields may stay as it was.
            var other = document
            other.client = later.control == .private ? client : nil
            other.division = later.isDivided ? client : nil
            return division == nil ? [document, other] : [document, self, other]
        }

        func serves(_ client: String) -> Bool { self.client.map { $0 == client } ?? true }
    }

    private var documents: [Key: [Document]] = [:]
    /// What was replaced and comes back if the process crashes before what replaced it is stored.
    private var former: [Key: [Document]] = [:]
    /// The numbers of the responses that came since everything was on disk.
    private var recent: Set<Int> = []

    subscript(key: Key) -> [Document] { documents[key] ?? [] }

    /// What may be served to one program.
    subscript(key: Key, client: String) -> [Document] { self[key].filter { $0.serves(client) } }

    /// Whether a response may be served stale while it is asked for again.
    func isServedStale(_ key: Key) -> Bool { self[key].contains(where: \.isServedStale) }

    /// Notes a response.
    ///
    /// - Parameter isCertain: whether it takes the place of those before it; if not, it may.
    mutating func store(_ received: Received, _ key: Key, client: String, isCertain: Bool) {
        recent.insert(received.number)
        let document = Document(received, client: client)
        let others = self[key].filter { !isCertain || $0.division != document.division }
        replace(key, by: others + [document])
    }

    /// Notes that a response was found to hold.
    ///
    /// - Parameter isCertain: whether the stored one is meant; if not, it may be.
    mutating func renew(
        _ key: Key,
        by later: Received,
        for client: String,
        isCertain: Bool,
        where isMeant: (Document) -> Bool
    ) {
        let renewed = self[key].flatMap { document in
            guard isMeant(document) else { return [document] }
            return (isCertain ? [] : [document]) + document.renewed(by: later, for: client)
        }
        replace(key, by: renewed)
    }

    private mutating func replace(_ key: Key, by new: [Document]) {
        former[key, default: []] += self[key]
        documents[key] = new.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    /// Notes that what was stored of some targets counts for nothing any more.
    mutating func remove(where isMeant: (Key) -> Bool) {
        documents = documents.filter { !isMeant($0.key) }
        former = former.filter { !isMeant($0.key) }
    }

    /// The only response that may be stored of a target, if it is on disk.
    func certain(_ key: Key) -> Received? {
        guard let only = self[key].first, self[key].count == 1, !isRecent(only.received) else { return nil }
        return only.received
    }

    /// Notes that everything is on disk.
    mutating func settle() { (former, recent) = ([:], []) }

    /// Whether what a response shows may not have been taken in yet.
    func isRecent(_ received: Received) -> Bool { recent.contains(received.number) }

    /// Notes that what was not on disk yet may be lost.
    mutating func crash() {
        for (key, old) in former where !old.isEmpty { replace(key, by: self[key] + old) }
        former = [:]
    }
}

extension Received {
    /// When it has certainly become stale, if it was received now.
    fileprivate var expiry: ContinuousClock.Instant? { control.lifetime.map { ContinuousClock.now + $0 } }
}
