/// An answer as the upstream gave it.
final class Received: Sendable {
    /// Its number among all answers of the history.
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
    /// Whether it may be used without asking for as long as the history takes.
    let isFresh: Bool
    /// Whether it may be served stale, while it is asked for again.
    let isServedStale: Bool
    /// How long before it was asked for it was made, in microseconds.
    let age: Int
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
        isFresh: Bool,
        isServedStale: Bool = false,
        age: Int,
        hasObjects: Bool = true
    ) {
        (self.number, self.page, self.scope, self.style, self.isDated) = (number, page, scope, style, isDated)
        (self.listed, self.shown, self.slips, self.body, self.etag) = (listed, shown, slips, body, etag)
        (self.isFresh, self.isServedStale, self.age, self.hasObjects) = (isFresh, isServedStale, age, hasObjects)
    }
}

extension Received: Equatable {
    static func == (left: Received, right: Received) -> Bool { left === right }
}

extension Received {
    /// What it tells of each object.
    var told: [Ref: [String: Shown]] {
        var told = shown
        for slip in slips.keys { told[slip.ref]?[slip.member] = nil }
        return told
    }

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

/// A stored answer and what has become of it.
struct Document: Equatable {
    let received: Received
    var isFresh: Bool
    var isServedStale: Bool
    /// When it was observed, or last found to hold.
    var moment: Moment
    /// Answers to the same question that were on their way together with this one: none is newer, any may have stayed.
    var rivals: [Document] = []

    init(_ received: Received, at moment: Moment) {
        (self.received, self.moment) = (received, moment)
        (isFresh, isServedStale) = (received.isFresh, received.isServedStale)
    }

    var candidates: [Document] { [self] + rivals }

    /// This one in the place of another, which it may have overlapped with.
    func replacing(_ other: Document?, overlaps: Bool) -> Document {
        var document = self
        if overlaps, let other { document.rivals = other.candidates }
        return document
    }

    /// This one, found to hold at a later moment.
    func renewed(at later: Moment, by answer: Received) -> Document {
        var document = self
        (document.isFresh, document.isServedStale) = (answer.isFresh, answer.isServedStale)
        document.moment.start = max(moment.start, later.start)
        document.moment.end = max(moment.end, later.end)
        return document
    }

    /// One of several, any of which may be what was found to hold.
    func perhapsRenewed(at later: Moment, by answer: Received) -> Document {
        var document = renewed(at: later, by: answer)
        document.isFresh = document.isFresh || isFresh
        return document
    }
}
