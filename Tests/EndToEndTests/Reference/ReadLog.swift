/// What each principal has seen of each member: the state of the upstream before which no later response from the cache
/// may be (law 3).
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

    private var shown: [Fact: Int] = [:]
    /// By which request, for people.
    private var source: [Fact: Int] = [:]
    private var written: [Fact: Int] = [:]

    /// The state before which a fact may not be shown.
    ///
    /// - Parameter isKept: whether its object is gone, and documents go on showing it as it was last known: of writes to
    ///   it that were never observed nobody can be told any more.
    func floor(of fact: Fact, isKept: Bool = false) -> Int {
        max(shown[fact] ?? 0, isKept ? 0 : written[fact] ?? 0)
    }

    /// Notes what was shown, as it was in these states, or later.
    mutating func note(shown facts: [Fact: Int], by number: Int) {
        for (fact, state) in facts where state > shown[fact] ?? -1 { (shown[fact], source[fact]) = (state, number) }
    }

    /// Where a floor comes from, for people.
    func origin(of fact: Fact) -> String {
        (written[fact] ?? -1) > (shown[fact] ?? -1) ? "a write" : source[fact].map { "#\($0)" } ?? "nothing"
    }

    /// Notes what the principal has changed itself, or was told by an error.
    mutating func note(written facts: [Fact: Int]) { written.merge(facts) { max($0, $1) } }
}
