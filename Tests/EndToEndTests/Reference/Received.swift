/// What one response shows of one member: what it means and how it is spelled.
struct Shown: Hashable, Sendable {
    let datum: Datum
    let spelling: String
}

/// A response as the upstream gave it.
final class Received: Sendable {
    /// Its number among all responses of the history.
    let number: Int
    let page: Page
    let scope: Scope
    let style: Style
    let isDated: Bool
    let listed: [Int]
    /// Every member of every object as it shows it.
    let shown: [Ref: [String: Shown]]
    /// The members on which it disagrees with itself: no observations (law 6).
    let slips: Slips
    let body: String
    let etag: String?
    /// Whether its `Cache-Control` gives it a lifetime, whatever its age.
    let hasLifetime: Bool
    let control: ResponsePlan.Control
    /// The seconds that its `Age` says.
    let age: Int
    /// Whether it may be served stale, while it is asked for again.
    let isServedStale: Bool
    /// Whether it tells of objects at all.
    let hasObjects: Bool

    init(
        number: Int,
        page: Page,
        scope: Scope,
        style: Style,
        isDated: Bool,
        listed: [Int],
        shown: [Ref: [String: Shown]],
        slips: Slips = [:],
        body: String,
        etag: String?,
        hasLifetime: Bool,
        control: ResponsePlan.Control = .plain,
        age: Int = 0,
        isServedStale: Bool = false,
        hasObjects: Bool = true
    ) {
        (self.number, self.page, self.scope, self.style, self.isDated) = (number, page, scope, style, isDated)
        (self.listed, self.shown, self.slips, self.body, self.etag) = (listed, shown, slips, body, etag)
        (self.hasLifetime, self.isServedStale, self.hasObjects) = (hasLifetime, isServedStale, hasObjects)
        (self.control, self.age) = (control, age)
    }
}

extension Received: Equatable {
    static func == (left: Received, right: Received) -> Bool { left === right }
}

extension Received {
    /// Whether it may be used without asking for as long as `control` says.
    var isFresh: Bool { hasLifetime && age < 3600 }

    /// Whether what came for the requests of other programs stays beside it.
    var isDivided: Bool { control == .private || !hasLifetime }

    /// What it shows of a member in one place, as it came.
    func shown(_ member: String, of ref: Ref, at place: String) -> Shown? {
        let slip = slips.first { $0.key.ref == ref && $0.key.member == member }
        return slip?.value[place] ?? shown[ref]?[member]
    }

    /// Whether it disagrees with itself on a member.
    func isContradictory(_ member: String, of ref: Ref) -> Bool {
        slips.keys.contains { $0.ref == ref && $0.member == member }
    }
}

/// One thing that Larder may know: a page, for one principal, in one representation.
struct Key: Hashable, Sendable, CustomStringConvertible {
    let page: Page
    let scope: Scope

    var description: String { "\(page.target) of \(scope)" }
}
