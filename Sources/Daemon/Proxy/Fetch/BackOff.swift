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
    func recordRetryAfter(of head: UpstreamHead, to request: ProxyRequest) {
        let metrics = metrics.upstream(request.upstream.name)
        if let limit = RateLimitFields.limit(head.fields, now: wall) { metrics.record { $0.limited(limit) } }
        guard let backOff = backOffs.record(head, for: request, now: loop.now, wall: wall) else { return }
        metrics.backOffs.add()
        if backOff.scope != .document {
            let end = wall + backOff.secondsLeft(at: loop.now)
            metrics.record { $0.backsOff(until: end * 1_000_000) }
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

    /// Counts a request that a back-off holds back.
    func heldBack(by backOff: BackOff, _ request: ProxyRequest) {
        metrics.upstream(request.upstream.name).backedOff.add()
        repeated.heldBack(Self.message(for: backOff), about: subject(of: backOff, request))
    }

    func recordSharing(of head: UpstreamHead, in fetch: RunningFetch, isStored: Bool) {
        let request = fetch.request
        guard !fetch.isInvalidated, let place = place(of: request) else { return }
        if isStored {
            hitForMiss.forget(place)
        } else if !request.upstream.isFailure(status: head.status, fields: head.fields) {
            // Failures are temporary, and separate requests would only add load to a failing upstream.
            hitForMiss.record(place, of: request.key, now: loop.now)
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

    /// Its cause and its scope, in words.
    var cause: String {
        isForLimit
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

        /// The scope in words, after "holds for".
        package var description: String {
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
/// other failure concerns only the requested document. Writes are never held back: the client decides whether to try them.
/// A value for one thread.
struct BackOffs {
    private struct Credential: Hashable {
        let upstream: String
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

    private struct Place: Hashable {
        let credential: Credential
        let scope: BackOff.Scope
    }

    private var places: [Place: BackOff] = [:]
    private var documents: [Digest128: BackOff] = [:]
    private var resources = LimitedResources()

    /// The limit for the back-offs by rate limits, and for those of documents.
    static let limit = 4_096

    /// The number of back-offs by rate limits.
    var count: Int { places.count }

    /// The longest pause in seconds: a long ban of one client must not last for days.
    static let longest: Int64 = 3_600

    /// Records a response's head; returns the back-off that it asks for, if any.
    ///
    /// - Parameters:
    ///   - now: in ns of the loop's clock.
    ///   - wall: in seconds since 1970.
    @discardableResult
    mutating func record(_ head: UpstreamHead, for request: ProxyRequest, now: UInt64, wall: Int64) -> BackOff? {
        let mode = request.upstream.settings.backOff
        guard mode != .never else { return nil }
        let resource = RateLimitFields.resource(head.fields)
        if let resource { resources.record(resource, of: request) }
        let isFailure = request.upstream.isFailure(status: head.status, fields: head.fields)
        let asked = isFailure ? RetryAfter.seconds(head.fields, now: wall) : nil
        guard let wait = asked ?? RateLimitFields.secondsUntilReset(head.fields, now: wall), wait > 0 else {
            return nil
        }
        let isLimited = asked == nil || RateLimitFields.isRefusal(status: head.status, head.fields)
        let scope: BackOff.Scope =
            switch (isLimited, mode, resource) {
            case (false, _, _): .document
            case (true, .credential, _): .credential
            case (true, _, let resource?): .resource(resource)
            case (true, _, nil): .segment(LimitedResources.segments(of: request).first)
            }
        let until = now + UInt64(min(wait, Self.longest)) * 1_000_000_000
        let backOff = BackOff(
            status: isFailure ? head.status : 429,
            scope: scope,
            until: until,
            isForLimit: asked == nil
        )
        if scope == .document {
            guard MethodFacts.isCacheable(request.message.method) else { return nil }
            Self.insert(backOff, at: request.digest, into: &documents, now: now)
        } else {
            Self.insert(backOff, at: Place(credential: Credential(request), scope: scope), into: &places, now: now)
        }
        return backOff
    }

    /// Inserts a back-off; at the limit those that are over make room for it, or else the one that ends first.
    private static func insert<Key>(_ backOff: BackOff, at key: Key, into table: inout [Key: BackOff], now: UInt64) {
        if table.count >= limit, table[key] == nil {
            table = table.filter { $0.value.until > now }
            if table.count >= limit, let first = table.min(by: { $0.value.until < $1.value.until }) {
                table[first.key] = nil
            }
        }
        table[key] = backOff
    }

    func backOff(for request: ProxyRequest, now: UInt64) -> BackOff? {
        if places.isEmpty, documents.isEmpty { return nil }
        if let backOff = documents[request.digest], backOff.until > now { return backOff }
        if places.isEmpty { return nil }
        let credential = Credential(request)
        var scopes: [BackOff.Scope] = [.credential, .segment(LimitedResources.segments(of: request).first)]
        if let resource = resources.resource(of: request) { scopes.insert(.resource(resource), at: 1) }
        return scopes.lazy.compactMap { [places] in places[Place(credential: credential, scope: $0)] }
            .first { $0.until > now }
    }
}

/// The limited resource that each path belongs to, learned from responses that named one.
///
/// A path is looked up by its first two segments, such as `search/code`. If nothing was learned for them, the first one decides,
/// provided that several paths below it had the same resource and none another. GitHub counts `/search/code` and `/search/issues`
/// separately, but all of `/repos` together.
struct LimitedResources {
    private struct Key: Hashable {
        let upstream: String
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
