/// What the upstream is to do with one request.
struct ResponsePlan: Hashable, Sendable {
    enum Ending: Hashable, Sendable {
        case whole
        /// An error answer. For a write: whether it was done nevertheless.
        case error(isDone: Bool)
        /// The response breaks off within its body.
        case cut
        /// The connection is reset after the request was read, and done.
        case lost
        /// Writes only: a response that shows the object without what was written.
        case partial
        /// Writes only: a response that says nothing.
        case empty
    }

    /// What the `Cache-Control` of a fresh response says.
    enum Control: String, Hashable, Sendable {
        case plain = "max-age=3600"
        case `private` = "private, max-age=3600"
        case mustRevalidate = "max-age=3600, must-revalidate"
        case brief = "max-age=1"

        /// How long a response may be a hit, with something to spare; nil for longer than the history takes.
        var lifetime: Duration? { self == .brief ? .seconds(4) : nil }
    }

    var ending = Ending.whole
    /// The response waits for its step to be finished.
    var isHeld = false
    /// A held response is made when it is let go, not when it was asked for.
    var isMadeLate = false
    /// The response shows what there was so many changes ago, as far as lag and age allow it.
    var behind = 0
    var isFresh = true
    /// What the `Cache-Control` of a fresh response says besides.
    var control = Control.plain
    /// Stale as it is, it may be served while it is asked for again.
    var isServedStale = false
    /// Seconds.
    var age = 0
    var style = 0
    /// On what the response disagrees with itself, if it shows it twice.
    var slip: Slip?
    /// 0: none, 1: strong, 2: weak.
    var tag = 1
}

/// A mistake of the upstream: some of the places where one response shows an object show another value of a member.
struct Slip: Hashable, Sendable {
    let ref: Ref
    let number: Int

    /// What answers show several times.
    static let candidates = (1...3).flatMap { [Ref(kind: .user, id: $0), Ref(kind: .label, id: $0)] }

    var member: String { ref.kind == .user ? "login" : "name" }

    func applies(to member: String, of ref: Ref, at place: String) -> Bool {
        ref == self.ref && member == self.member && place.utf8.reduce(number) { $0 &* 31 &+ Int($1) } % 2 == 0
    }
}

/// What a write does.
enum Edit: Hashable, Sendable {
    case change(Ref, member: String, number: Int)
    case create(Ref, number: Int)
    case delete(Ref)

    var ref: Ref {
        switch self {
        case .change(let ref, _, _), .create(let ref, _), .delete(let ref): ref
        }
    }

    func apply(to holdings: inout Holdings) {
        switch self {
        case .change(let ref, let member, let number): holdings.change(ref, member, to: number)
        case .create(let ref, let number): holdings.create(ref, number: number)
        case .delete(let ref): holdings.delete(ref)
        }
    }
}
