import Basics
import CachePolicy
import EventLoops
import HTTPSemantics
import HTTPServer
import Logging
import Mapping
import Settings
import Store
import Upstream

/// Backing off: when the upstream may be asked again (`Retry-After`, a rate limit that is used up), and whether requests for a document may share a fetch.
extension Fetches {
    /// Records a response's request to back off and its rate limits.
    ///
    /// - Parameter reservation: what the request has reserved.
    func recordRetryAfter(of head: UpstreamHead, to request: ProxyRequest, _ reservation: BackOffs.Reservation?) {
        let metrics = counters(of: request.upstream)
        if let limit = RateLimitFields.limit(head.fields, now: wall) { metrics.record { $0.recordLimit(limit) } }
        request.upstream.newestRateLimit?.record(head.fields, of: request.key.principal)
        let isFree = head.status == 304 && request.upstream.settings.budget.hasFreeNotModified
        if let reservation { backOffs.end(reservation, isCounted: !isFree) }
        let backOff = backOffs.record(head, for: request, reservation, now: loop.now, wall: wall)
        if !isFree, let place = backOffs.limitedPlace(of: request) { spent(request, scope: place.scope) }
        shareSpending(of: request)
        guard let backOff else { return }
        metrics.backOffs.add()
        if backOff.scope != .document {
            let end = wall + backOff.secondsLeft(at: loop.now)
            metrics.record { $0.recordBackOff(until: end * 1_000_000, isForLimit: backOff.isForLimit) }
        }
        let seconds = backOff.secondsLeft(at: loop.now)
        let url = request.upstream.url(of: request.key.url)
        repeated.log(
            .info,
            Self.message(for: backOff),
            about: subject(of: backOff, request),
            ["status": "\(head.status)", "seconds": "\(seconds)", "url": "\(url)"],
            for: .seconds(seconds),
            end: "no longer backing off"
        )
    }

    /// Decides once more about a request that has waited for its turn, by what the upstream has said since.
    ///
    /// - Parameter former: what the request has reserved until now, which this ends.
    func reserveAgain(for request: ProxyRequest, isRefresh: Bool, _ former: BackOffs.Reservation?)
        -> (isHeldBack: Bool, BackOffs.Reservation?)
    {
        defer { shareSpending(of: request) }
        if let former { backOffs.end(former, isCounted: false) }
        let backOff = backOffs.backOff(for: request, as: isRefresh ? .background : .needed, now: loop.now)
        if let backOff, Hold.backOff(backOff, at: loop.now).concerns(request) { return (true, nil) }
        return (false, backOffs.reserve(for: request))
    }

    private static func message(for backOff: BackOff) -> Logger.Message {
        backOff.isForLimit ? "backing off: the rate limit is used up" : "backing off: the upstream sent Retry-After"
    }

    /// Whom a back-off concerns; those of single URLs are one subject.
    private func subject(of backOff: BackOff, _ request: ProxyRequest) -> Logger.Metadata {
        [
            "upstream": "\(request.upstream.name)",
            "credential": "\(principals.label(of: request.key.principal) ?? "unknown")",
            "holds_for": "\(backOff.scope.description)",
        ]
    }

    /// Counts a request that is held back.
    func heldBack(by hold: Hold, _ request: ProxyRequest) {
        let metrics = counters(of: request.upstream)
        switch hold {
        case .backOff(let backOff, _):
            metrics.heldBack.add()
            repeated.heldBack(Self.message(for: backOff), about: subject(of: backOff, request))
        case .outage: metrics.countUnreachable()
        }
    }
}

/// A period in which Larder sends an upstream no requests: `Retry-After` in a refusal (RFC 9110 §10.2.3), or the rest of a
/// rate limit's period in which nothing is left.
package struct BackOff: Sendable, Equatable {
    /// The status of the refusal; 429 for a limit that is used up.
    let status: Int
    let scope: Scope
    /// Its end, in ns of the loop's clock.
    let until: UInt64
    /// Whether it follows from the upstream's rate limit alone: a request would be refused, and none was asked not to come.
    var isForLimit = false
    /// Whether something is left of that, for requests that need it more.
    var isForReserve = false

    /// Its cause and its scope, in words.
    var cause: String {
        if isForReserve { return "the upstream's rate limit is nearly used up for \(scope.description)" }
        return isForLimit
            ? "the upstream's rate limit is used up for \(scope.description)"
            : "the upstream responded with \(status) and Retry-After, which applies to \(scope.description)"
    }

    /// The requests that a refusal concerns.
    enum Scope: Hashable, Sendable {
        /// All retrievals of the credential.
        case credential
        /// The credential's retrievals of one limited resource, by the upstream's name for it.
        case resource(String)
        /// The credential's retrievals below the path's first segment.
        case segment(String)
        case document

        /// What is limited, as the upstream names it or else by its path; nil for everything.
        var name: String? {
            switch self {
            case .credential, .document: nil
            case .resource(let name): name
            case .segment(let segment): "/\(segment)"
            }
        }

        /// Whether a limit of this scope has a name, so that it is known which requests count against it.
        var isNamed: Bool {
            switch self {
            case .credential, .resource: true
            case .segment, .document: false
            }
        }

        /// The scope in words, after "holds for".
        var description: String {
            switch self {
            case .credential: "everything that this credential asks for"
            case .resource(let name): "the resource \"\(name)\""
            case .segment(let name): "paths below /\(name)"
            case .document: "this URL"
            }
        }
    }

    /// The remaining time in whole seconds, at least one.
    func secondsLeft(at now: UInt64) -> Int64 {
        until > now ? Int64((until - now + 999_999_999) / 1_000_000_000) : 1
    }
}

/// The periods in which upstreams get no requests.
///
/// A refusal by a rate limit (`RateLimitFields.isRefusal`) concerns all of the credential's retrievals of the limited resource,
/// and so does any response after which nothing is left of that. The upstream names the resource in its responses; until it has done so for a path, the path's first segment stands for it. Any
/// other failure concerns only the requested document. `Retry-After` holds back no write: the client decides whether to try it.
/// A value for one thread.
struct BackOffs {
    struct Credential: Hashable {
        let upstream: UpstreamKey
        let principal: PrincipalID
        /// A hash of the `Authorization` that does not count as a principal with `shared: true`; valid within this process.
        let authorization: Int

        init(_ request: ProxyRequest) {
            upstream = request.upstream.storeKey
            principal = request.key.principal
            authorization =
                request.upstream.settings.shared ? request.message.fields.all("authorization").hashValue : 0
        }
    }

    /// What is limited: a credential's requests, or those for one resource.
    struct Place: Hashable {
        let credential: Credential
        let scope: BackOff.Scope
    }

    private var places: [Place: BackOff] = [:]
    private var documents: [Digest128: BackOff] = [:]
    private var resources = LimitedResources()
    /// What is left of each limit; it is learned again if it is forgotten.
    private(set) var budgets: BoundedTable<Place, Budget> = BoundedTable(limit: BackOffs.maximumPlaces)
    /// How each limit is spent together with the other machines of a fleet.
    var together: BoundedTable<Place, SpendingTogether> = BoundedTable(limit: BackOffs.maximumPlaces)
    /// Whether other machines have to know what changes.
    private let isInFleet: Bool
    private var changes: [Place: SharedExpense] = [:]
    /// When each credential's next write may be sent, where there is a gap between writes.
    private var nextWrites: BoundedTable<Credential, UInt64> = BoundedTable(limit: BackOffs.maximumPlaces)

    init(isInFleet: Bool = false) { self.isInFleet = isInFleet }

    /// The limit for the back-offs by rate limits, and for those of documents.
    static let maximumPlaces: Int = 4_096

    /// Whether nothing holds any request back, or is known that might.
    var areNone: Bool { places.isEmpty && documents.isEmpty && budgets.isEmpty }

    /// The number of back-offs by rate limits.
    var count: Int { places.count }

    /// Records a response's head; returns the back-off that it asks for, if any.
    ///
    /// - Parameters:
    ///   - reservation: what its request has reserved.
    ///   - now: in ns of the loop's clock.
    ///   - wall: in seconds since 1970.
    @discardableResult
    mutating func record(
        _ head: UpstreamHead,
        for request: ProxyRequest,
        _ reservation: Reservation? = nil,
        now: UInt64,
        wall: Int64
    ) -> BackOff? {
        let isFailure = StatusFacts.isFailure(head.status, head.fields)
        if !isFailure, budgets.isEmpty, !RateLimitFields.areIn(head.fields) { return nil }
        let resource = RateLimitFields.resource(head.fields)
        if let resource { resources.record(resource, of: request) }
        let scope: BackOff.Scope =
            switch (request.upstream.settings.backOff, resource) {
            case (.credential, _): .credential
            case (_, let resource?): .resource(resource)
            case (_, nil): .segment(LimitedResources.segments(of: request).first)
            }
        let place = Place(credential: Credential(request), scope: scope)
        if let new = Budget(head.fields, now: now, wall: wall) { hear(new, at: place, after: reservation, now: now) }
        guard request.upstream.settings.backOff != .never else { return nil }
        guard isFailure, let wait = RetryAfter.seconds(head.fields, now: wall), wait > 0
        else { return usedUp(at: place, now: now) }
        let isLimited = RateLimitFields.isRefusal(status: head.status, head.fields)
        let until = now + UInt64(min(wait, Budget.longest)) * 1_000_000_000
        let backOff = BackOff(status: head.status, scope: isLimited ? scope : .document, until: until)
        if isLimited {
            Self.insert(backOff, at: place, into: &places, now: now)
        } else {
            guard MethodFacts.isCacheable(request.message.method) else { return nil }
            Self.insert(backOff, at: request.digest, into: &documents, now: now)
        }
        return backOff
    }

    /// Inserts a back-off; at the limit those that are over make room for it, or else the one that ends first.
    private static func insert<Key>(_ backOff: BackOff, at key: Key, into table: inout [Key: BackOff], now: UInt64) {
        if table.count >= maximumPlaces, table[key] == nil {
            table = table.filter { $0.value.until > now }
            if table.count >= maximumPlaces, let first = table.min(by: { $0.value.until < $1.value.until }) {
                table[first.key] = nil
            }
        }
        table[key] = backOff
    }

    /// Why a retrieval is not sent now; nil if it is.
    func backOff(for request: ProxyRequest, as urgency: Budget.Urgency = .needed, now: UInt64) -> BackOff? {
        if !documents.isEmpty, let backOff = documents[request.digest], backOff.until > now { return backOff }
        if places.isEmpty { return limit(on: request, as: urgency, now: now) }
        return self.places(of: request).lazy.compactMap { [places] in places[$0] }.first { $0.until > now }
            ?? limit(on: request, as: urgency, now: now)
    }

    /// The places that a request may belong to, the most certain one first.
    private func places(of request: ProxyRequest) -> [Place] {
        let credential = Credential(request)
        var scopes: [BackOff.Scope] = [.credential, .segment(LimitedResources.segments(of: request).first)]
        if let resource = resources.resource(of: request) { scopes.insert(.resource(resource), at: 1) }
        return scopes.map { Place(credential: credential, scope: $0) }
    }
}

/// What is left of the rate limits.
extension BackOffs {
    /// What a request that was sent has reserved.
    struct Reservation {
        fileprivate let place: Place
        fileprivate let inBudget: Budget.Reservation
    }

    /// What a request counts against; nil if no limit is known.
    func limitedPlace(of request: ProxyRequest) -> Place? {
        budgets.isEmpty ? nil : places(of: request).first { budgets[$0] != nil }
    }

    /// Reserves one request of the limit that it counts against; nil if nothing is known of that.
    mutating func reserve(for request: ProxyRequest) -> Reservation? {
        guard let place = limitedPlace(of: request), var budget = budgets[place] else { return nil }
        defer { budgets[place] = budget }
        note(place) { $0.requests += 1 }
        return Reservation(place: place, inBudget: budget.reserve())
    }

    /// Ends a reservation: the response has begun, or never will.
    mutating func end(_ reservation: Reservation, isCounted: Bool) {
        if !isCounted { note(reservation.place) { $0.requests -= 1 } }
        change(reservation.place) { $0.end(reservation.inBudget, isCounted: isCounted) }
    }

    private mutating func hear(_ new: Budget, at place: Place, after reservation: Reservation?, now: UInt64) {
        note(place) { $0.stated = new.common(at: now) }
        var new = new
        // The upstream says what is left for all machines.
        if let one = together[place], one.isAlone { new.divide(among: one.machines) }
        guard budgets[place] != nil else {
            budgets[place] = new
            return
        }
        change(place) { $0.hear(new, after: reservation?.place == place ? reservation?.inBudget : nil) }
    }

    mutating func change(_ place: Place, _ change: (inout Budget) -> Void) {
        guard var budget = budgets[place] else { return }
        change(&budget)
        budgets[place] = budget
    }

    private mutating func note(_ place: Place, _ change: (inout SharedExpense) -> Void) {
        if isInFleet { change(&changes[place, default: SharedExpense()]) }
    }

    /// What has changed since the last call; of one request's limits, as it is called after each.
    mutating func takeChanges() -> [Place: SharedExpense] {
        if changes.isEmpty { return changes }
        defer { changes = [:] }
        return changes
    }

    /// Books the next turn of a credential's writes; returns how long the write waits for it.
    mutating func turn(of write: ProxyRequest, now: UInt64) -> Duration {
        let gap = write.upstream.settings.budget.writeGap
        // Most GraphQL requests only read.
        guard gap > .zero, !write.route.hasSuffix("/graphql") else { return .zero }
        let credential = Credential(write)
        let start = max(now, nextWrites[credential] ?? 0)
        nextWrites[credential] = start + gap.nanoseconds
        return .nanoseconds(Int64(start - now))
    }

    private func usedUp(at place: Place, now: UInt64) -> BackOff? {
        guard let budget = budgets[place], budget.isUsedUp(at: now), let end = budget.end else { return nil }
        return BackOff(status: 429, scope: place.scope, until: end, isForLimit: true)
    }

    /// Why a request of this urgency would be refused for a limit, or is not worth what is left; nil if it is sent.
    func limit(on request: ProxyRequest, as urgency: Budget.Urgency, now: UInt64) -> BackOff? {
        let settings = request.upstream.settings
        if budgets.isEmpty || settings.backOff == .never { return nil }
        for place in places(of: request) {
            guard let budget = budgets[place], let end = budget.end,
                !budget.admits(urgency, reserve: settings.budget.reserve, at: now)
            else { continue }
            let isForReserve = budget.remaining > 0
            return BackOff(status: 429, scope: place.scope, until: end, isForLimit: true, isForReserve: isForReserve)
        }
        return nil
    }
}

/// The limited resource that each path belongs to, learned from responses that named one.
///
/// A path is looked up by its first two segments, such as `search/code`. If nothing was learned for them, the first one decides,
/// provided that several paths below it had the same resource and none another. GitHub counts `/search/code` and `/search/issues`
/// separately, but all of `/repos` together.
struct LimitedResources {
    private struct Key: Hashable {
        let upstream: UpstreamKey
        let path: String
    }

    private struct Common {
        /// Nil if there are several.
        var resource: String?
        let path: String
        var isShared = false
    }

    // Forgotten resources are learned again.
    private var exact = BoundedTable<Key, String>(limit: 4_096)
    private var byFirst = BoundedTable<Key, Common>(limit: 4_096)

    mutating func record(_ resource: String, of request: ProxyRequest) {
        let (first, both) = Self.segments(of: request)
        exact[Key(upstream: request.upstream.storeKey, path: both)] = resource
        let key = Key(upstream: request.upstream.storeKey, path: first)
        var common = byFirst[key] ?? Common(resource: resource, path: both)
        if common.resource != resource { common.resource = nil }
        if common.path != both { common.isShared = true }
        byFirst[key] = common
    }

    func resource(of request: ProxyRequest) -> String? {
        let (first, both) = Self.segments(of: request)
        if let resource = exact[Key(upstream: request.upstream.storeKey, path: both)] { return resource }
        guard let common = byFirst[Key(upstream: request.upstream.storeKey, path: first)], common.isShared
        else { return nil }
        return common.resource
    }

    /// The first segment of a request's path below the base path, and the first two.
    static func segments(of request: ProxyRequest) -> (first: String, both: String) {
        let segments = request.route.utf8.split(separator: UInt8(ascii: "/"), maxSplits: 2)
        let first = segments.first.map { String(Substring($0)) } ?? ""
        return (first, segments.count > 1 ? first + "/" + String(Substring(segments[1])) : first)
    }
}
