/// What the upstream is to do with one request.
struct Plan: Hashable, Sendable {
    enum Ending: Hashable, Sendable {
        case whole
        /// An error answer. For a write: whether it was done nevertheless.
        case error(isDone: Bool)
        /// The answer breaks off within its body.
        case cut
        /// The connection is reset after the request was read, and done.
        case lost
        /// Writes only: an answer that says nothing.
        case empty
    }

    var ending = Ending.whole
    /// The answer waits for its step to be finished.
    var isHeld = false
    /// A held answer is made when it is let go, not when it was asked for.
    var isMadeLate = false
    /// A list shows what there was so many changes ago.
    var behind = 0
    var isFresh = true
    /// Seconds.
    var age = 0
    var style = 0
    /// 0: none, 1: strong, 2: weak.
    var tag = 1
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
