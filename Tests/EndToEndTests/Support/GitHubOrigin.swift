import CCrypto
import Foundation
import TestSupport

/// An origin that behaves as GitHub does where it matters to whose a response is, and to what it costs.
///
/// Entity tags are the SHA-256 of the request's `Accept`, `Authorization` and `Cookie`, each followed by a colon, and of the
/// body; weak where the body is compressed, and strong in a 304. The body is indented for browsers and curl, which its tag does
/// not show. A 304 costs nothing. Private pages do not exist for tokens that may not read them. A token has so many requests for
/// each resource in a period; it may have so many at a time, and must not write too fast.
final class GitHubOrigin: Sendable {
    /// One resource of the origin.
    struct Page: Sendable {
        /// JSON without white space between its tokens.
        var body: String
        /// The tokens that may read it; nil for everybody.
        var readers: Set<String>?
        var fields: FieldLines = [:]
        /// The fields of its 200s only.
        var ownFields: FieldLines = [:]
    }

    /// How it treats conditions.
    enum Manner: Sendable {
        case honest
        /// A 304 to everything, with the tag that was asked for.
        case unchanged
        /// Tags that follow no recipe.
        case otherTags
        /// 304s without a tag.
        case untagged
    }

    /// What a token may do.
    struct Limits: Sendable {
        /// The requests of a period, by resource.
        var requests = ["core": 5_000, "search": 30]
        /// In seconds.
        var period = 3_600
        var atOnce = 100
        /// The least time between two writes, in seconds.
        var writeGap = 0.0
    }

    fileprivate struct Usage: Sendable {
        /// The end of the period, in seconds since 1970.
        var reset = 0
        var used: [String: Int] = [:]
        var underWay = 0
        var lastWrite = 0.0
    }

    fileprivate struct State: Sendable {
        var limits = Limits()
        var usage: [String: Usage] = [:]
        /// The requests that were refused for a limit.
        var refusals = 0
        var mostAtOnce = 0
        /// How long each response takes.
        var delay = Duration.zero
        var pages: [String: Page] = [:]
        var manner = Manner.honest
        /// The responses that were counted, by token and resource.
        var costs: [String: [String: Int]] = [:]
        var fulls = 0
        var notModified = 0
        /// The `Cache-Control` of its responses.
        var directives: String
        /// The fields of a request on which its tags depend.
        var tagFields: [String]
    }

    let origin: Origin
    private let state: Monitor<State>

    /// - Parameters:
    ///   - lifetime: of its responses, in seconds.
    ///   - tagFields: the fields of a request on which its tags depend.
    init(
        lifetime: Int = 3600,
        tagOf tagFields: [String] = ["Accept", "Authorization", "Cookie"],
        _ pages: [String: Page] = [:]
    ) throws {
        let state = Monitor(
            State(pages: pages, directives: "private, max-age=\(lifetime)", tagFields: tagFields)
        )
        self.state = state
        origin = try Origin { request in
            let token = Self.token(of: request) ?? ""
            var (response, delay) = state.withLock { ($0.begin(token) ?? Self.respond(to: request, &$0), $0.delay) }
            if delay > .zero { response.steps.insert(.pause(delay), at: 0) }
            response.steps.append(.run { state.withLock { $0.usage[token]?.underWay -= 1 } })
            return response
        }
    }

    private static func token(of request: Origin.Request) -> String? {
        // The second is GitLab's.
        request["Authorization"].map { String($0.drop { $0 != " " }.dropFirst()) } ?? request["Private-Token"]
    }

    // MARK: What it is

    subscript(path: String) -> Page? {
        get { state.current.pages[path] }
        set { state.withLock { $0.pages[path] = newValue } }
    }

    func set(_ path: String, _ page: Page) { state.withLock { $0.pages[path] = page } }

    func limit(_ change: @Sendable (inout Limits) -> Void) { state.withLock { change(&$0.limits) } }

    /// Begins a new period for every token.
    func renewLimits() {
        state.withLock { state in for token in state.usage.keys { state.usage[token]?.reset = 0 } }
    }

    func delay(_ delay: Duration) { state.withLock { $0.delay = delay } }

    func direct(_ directives: String) { state.withLock { $0.directives = directives } }

    func behave(_ manner: Manner) { state.withLock { $0.manner = manner } }

    // MARK: What happened

    /// How many whole responses it sent, and how many 304s.
    var fulls: Int { state.current.fulls }
    var notModified: Int { state.current.notModified }

    /// How many requests it refused because of a limit.
    var refusals: Int { state.current.refusals }

    /// The most requests of one token at a time.
    var mostAtOnce: Int { state.current.mostAtOnce }

    /// What a token was charged for one of its resources.
    func cost(_ token: String, _ resource: String = "core") -> Int { state.current.costs[token]?[resource] ?? 0 }

    /// The body that it would send a token now; nil if the page does not exist for it.
    func truth(_ path: String, for token: String) -> String? { Self.page(path, for: token, state.current)?.body }

    /// The field of a token's own that is in every response to it; a token itself in a response would keep that from the disk.
    static func scopes(of token: String) -> String { "scope-\(token.prefix(12).hashValue)" }

    var requests: [Origin.Request] { origin.requests }

    // MARK: Serving

    private static func page(_ path: String, for token: String?, _ state: State) -> Page? {
        guard let page = state.pages[path] else { return nil }
        guard let readers = page.readers else { return page }
        return token.map { readers.contains($0) } == true ? page : nil
    }

    private static func respond(to request: Origin.Request, _ state: inout State) -> OriginResponse {
        let token = token(of: request)
        let resource = request.path.hasPrefix("/search/") ? "search" : "core"
        if let refusal = state.refusal(of: request, token ?? "", resource) { return refusal }
        let page = page(request.target, for: token, state)
        let isCompressed = request["Accept-Encoding"]?.contains("gzip") == true
        let body = Array((page?.body ?? #"{"message":"Not Found"}"#).utf8)
        let opaque = state.manner == .otherTags ? "v\(request.number)" : tag(of: body, to: request, state.tagFields)
        let asked = (request["If-None-Match"] ?? "").split(separator: ",").map { member in
            let tag = member.trimmingPrefix { $0 == " " }
            return String((tag.hasPrefix("W/") ? tag.dropFirst(2) : tag).dropFirst().dropLast())
        }
        let isUnchanged = state.manner == .unchanged
        let isNotModified = isUnchanged || page != nil && asked.contains(opaque)
        if isNotModified {
            state.notModified += 1
        } else {
            state.fulls += 1
            state.costs[token ?? "", default: [:]][resource, default: 0] += 1
            state.usage[token ?? ""]?.used[resource, default: 0] += 1
        }
        var fields: FieldLines = [
            "Cache-Control": state.directives,
            "Vary": "Accept, Authorization, Cookie, X-GitHub-OTP, Accept-Encoding, X-Requested-With",
            "X-OAuth-Scopes": scopes(of: token ?? "nobody"),
        ]
        fields = fields + state.limitFields(token ?? "", resource) + (page?.fields ?? [:])
        if isNotModified {
            let tag = isUnchanged ? asked.first ?? "unchanged" : opaque
            return .notModified(state.manner == .untagged ? fields : fields + ["ETag": "\"\(tag)\""])
        }
        let isForPeople = ["curl/", "Mozilla/"].contains { request["User-Agent"]?.hasPrefix($0) == true }
        let sent = isForPeople ? indented(body) : body
        fields = fields + (page?.ownFields ?? [:])
        if page != nil { fields.append("ETag", isCompressed ? "W/\"\(opaque)\"" : "\"\(opaque)\"") }
        if isCompressed { fields.append("Content-Encoding", "gzip") }
        fields.append("Content-Type", "application/json; charset=utf-8")
        return .body(isCompressed ? gzipStored(sent) : sent, fields, status: page == nil ? 404 : 200)
    }

    /// The tag of a body in response to a request, without its quotes.
    private static func tag(of body: [UInt8], to request: Origin.Request, _ fields: [String]) -> String {
        let prefix = fields.compactMap { request[$0] }.map { $0 + ":" }.joined()
        let content = Array(prefix.utf8) + body
        var (digest, count) = ([UInt8](repeating: 0, count: 32), UInt32(0))
        EVP_Digest(content, content.count, &digest, &count, EVP_sha256(), nil)
        return digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// JSON with each member on a line of its own.
    private static func indented(_ body: [UInt8]) -> [UInt8] {
        var (result, depth, isInString, isEscaped) = ([UInt8](), 0, false, false)
        func line() -> [UInt8] { [10] + [UInt8](repeating: 32, count: 2 * depth) }
        for byte in body {
            if isInString {
                isInString = byte != 0x22 || isEscaped
                isEscaped = byte == 0x5C && !isEscaped
                result.append(byte)
                continue
            }
            switch byte {
            case 0x22:
                isInString = true
                result.append(byte)
            case 0x7B, 0x5B:
                depth += 1
                result += [byte] + line()
            case 0x7D, 0x5D:
                depth -= 1
                result += line() + [byte]
            case 0x2C: result += [byte] + line()
            case 0x3A: result += [byte, 32]
            default: result.append(byte)
            }
        }
        return result + [10]
    }
}

/// The limits.
extension GitHubOrigin.State {
    /// Begins a request; returns a refusal if the token has too many under way.
    fileprivate mutating func begin(_ token: String) -> OriginResponse? {
        var usage = usage[token] ?? .init()
        defer { self.usage[token] = usage }
        usage.underWay += 1
        mostAtOnce = max(mostAtOnce, usage.underWay)
        let now = Int(Date().timeIntervalSince1970)
        if usage.reset <= now { (usage.reset, usage.used) = (now + limits.period, [:]) }
        return usage.underWay > limits.atOnce ? secondaryRefusal(token, "core") : nil
    }

    fileprivate mutating func refusal(of request: Origin.Request, _ token: String, _ resource: String)
        -> OriginResponse?
    {
        if request.method != "GET" {
            let now = Date().timeIntervalSince1970
            let last = usage[token]?.lastWrite ?? 0
            usage[token]?.lastWrite = now
            if now - last < limits.writeGap { return secondaryRefusal(token, resource) }
        }
        guard usage[token]?.used[resource] ?? 0 >= limits.requests[resource] ?? 0 else { return nil }
        refusals += 1
        let body = #"{"message":"API rate limit exceeded"}"#
        return .json(body, limitFields(token, resource), status: 403)
    }

    private mutating func secondaryRefusal(_ token: String, _ resource: String) -> OriginResponse {
        refusals += 1
        let body = #"{"message":"You have exceeded a secondary rate limit"}"#
        return .json(body, limitFields(token, resource) + ["Retry-After": "60"], status: 403)
    }

    fileprivate func limitFields(_ token: String, _ resource: String) -> FieldLines {
        let (limit, usage) = (limits.requests[resource] ?? 0, usage[token] ?? .init())
        let used = usage.used[resource] ?? 0
        return [
            "X-RateLimit-Resource": resource, "X-RateLimit-Limit": "\(limit)",
            "X-RateLimit-Remaining": "\(max(0, limit - used))", "X-RateLimit-Reset": "\(usage.reset)",
            "X-RateLimit-Used": "\(used)",
        ]
    }
}

extension GitHubOrigin.Page {
    /// A repository with the number of one of its pages, at a state that counts up.
    static func repository(_ id: Int, state: Int = 0, readers: Set<String>? = nil) -> Self {
        let minute = state % 60 < 10 ? "0\(state % 60)" : "\(state % 60)"
        let body =
            #"{"id":\#(id),"name":"r\#(id)","full_name":"o/r\#(id)","description":"state \#(state), \"quoted\"","#
            + #""owner":{"login":"o\#(id)","id":\#(id + 1000)},"updated_at":"2026-01-01T0\#(state / 60):\#(minute):00Z"}"#
        return Self(body: body, readers: readers)
    }
}
