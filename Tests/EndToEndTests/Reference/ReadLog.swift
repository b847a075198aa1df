/// What each principal has seen of each member: the state of the upstream before which no later response from the cache
/// may be (law 3).
///
/// There are two such floors. What was served from the cache is never followed by something older from the cache. What was
/// passed on may be, but only where the response says that it is in doubt.
struct ReadLog {
    /// One member of one object, as it is shown in one representation.
    struct Fact: Hashable {
        let scope: Scope
        let ref: Ref
        let member: String

        init(_ scope: Scope, _ ref: Ref, _ member: String) {
            (self.scope, self.ref, self.member) = (scope, ref, member)
        }

        /// Whether there is such an object.
        static func existence(_ scope: Scope, _ ref: Ref) -> Fact { Fact(scope, ref, "") }
    }

    /// One document that went back itself on a fact, and when.
    struct Return {
        let event: Int
        let fact: Fact
        let state: Int
    }

    private var shown: [Fact: Int] = [:]
    /// By which request, for people.
    private var source: [Fact: Int] = [:]
    private var written: [Fact: Int] = [:]
    private var passedOn: [Fact: Int] = [:]
    /// What was passed on and may not be stored yet.
    private var pending: [Fact: Int] = [:]
    /// The last value that Larder received, of members by which objects are found.
    private var received: [Fact: Datum] = [:]

    /// The state before which a fact may not be shown.
    ///
    /// - Parameters:
    ///   - isKept: whether its object is gone, and documents go on showing it as it was last known: of writes to it that
    ///     were never observed nobody can be told any more.
    ///   - isInDoubt: whether the response says that it may be older than one that was passed on.
    ///   - isWithheld: whether what was shown is known from responses for another program.
    func floor(of fact: Fact, isKept: Bool = false, isInDoubt: Bool = true, isWithheld: Bool = false) -> Int {
        max(
            isWithheld ? 0 : shown[fact] ?? 0,
            isKept ? 0 : written[fact] ?? 0,
            isKept || isInDoubt ? 0 : passedOn[fact] ?? 0
        )
    }

    /// Whether a principal has written to an object, or was told that it is gone: how it is now may not be known.
    func isWritten(_ ref: Ref, in scope: Scope) -> Bool {
        written.keys.contains { $0.ref == ref && $0.scope == scope }
    }

    /// Notes what was shown, as it was in these states, or later.
    mutating func note(shown facts: [Fact: Int], by number: Int) {
        for (fact, state) in facts where state > shown[fact] ?? -1 { (shown[fact], source[fact]) = (state, number) }
    }

    /// Notes what was passed on, which counts once it is stored.
    mutating func note(passedOn facts: [Fact: Int]) { pending.merge(facts) { max($0, $1) } }

    /// Notes that what was passed on is stored.
    mutating func settle() {
        passedOn.merge(pending) { max($0, $1) }
        pending = [:]
    }

    /// Notes that the document which settled a fact has gone back itself.
    mutating func note(_ back: Return) {
        for floors in [\Self.shown, \.passedOn, \.pending] {
            if let floor = self[keyPath: floors][back.fact] {
                self[keyPath: floors][back.fact] = min(floor, back.state)
            }
        }
    }

    /// Where a floor comes from, for people.
    func origin(of fact: Fact) -> String {
        let (write, hit, relay) = (written[fact] ?? -1, shown[fact] ?? -1, passedOn[fact] ?? -1)
        if write > max(hit, relay) { return "a write" }
        return relay > hit ? "a response that was passed on" : source[fact].map { "#\($0)" } ?? "nothing"
    }

    /// Notes what the principal has changed itself, or was told by an error.
    mutating func note(written facts: [Fact: Int]) { written.merge(facts) { max($0, $1) } }

    /// Notes what Larder received of members by which objects are found.
    mutating func note(received values: [Fact: Datum]) { received.merge(values) { $1 } }

    /// Whether a value of a member is the last that Larder received.
    func isReceived(_ value: Datum?, of fact: Fact) -> Bool { value != nil && received[fact] == value }
}
