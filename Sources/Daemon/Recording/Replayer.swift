import Foundation
import HTTPSemantics
import HTTPServer
package import Proxy
import Settings
import Store
import Synchronization

/// Finds the recorded response to a request, by its sequence, never by freshness.
///
/// May be used on any thread. A request that was recorded several times gets its responses in order, per run of a session;
/// the last one repeats. A session first gets the exchanges that were recorded with its name.
package final class Replayer: Sendable {
    package let recording: RecordingContents
    private let isStrict: Bool
    private let isDelayed: Bool
    /// The seconds added to dates; nil if the clock stays at the time of the recording.
    private let shift: Int64?
    private let start: Int64
    private let index: ReplayIndex
    /// The data for finding similar requests, made at the first missing request.
    private let requests = Mutex<[ComparedRequest]?>(nil)
    private let upstreams: [String: ProxiedUpstream]
    private let state: Mutex<State>
    private let memory: Int

    typealias Series = ReplayIndex.Series

    private struct State {
        /// By `IncomingRequest.run`, which is empty for requests that name no session.
        var runs: [String: Run] = [:]
        var isUsed: [Bool]
        /// The responses that repeat in the session without a name, by the digest of a cache key: served at once.
        var ready: [Digest128: ReadyResponse] = [:]
        var readyBytes = 0
        var missing: [Miss] = []

        /// How many other credentials a run has sent before.
        mutating func position(of credentials: [UInt8], in run: String) -> Int {
            let known = runs[run]?.credentials ?? [:]
            if let position = known[credentials] { return position }
            runs[run, default: Run()].credentials[credentials] = known.count
            return known.count
        }

        /// The index, among the exchanges of a key, of the next one to serve; nil if all have been served.
        ///
        /// - Parameter isUsedUp: Whether the next request gets the one after it.
        mutating func next(of series: Series, in run: String, isStrict: Bool, isUsedUp: Bool) -> Int? {
            let position = runs[run, default: Run()].positions[series.key, default: 0]
            if position >= series.numbers.count, isStrict { return nil }
            if isUsedUp { runs[run, default: Run()].positions[series.key] = position + 1 }
            let found = min(position, series.numbers.count - 1)
            isUsed[series.numbers[found]] = true
            return found
        }
    }

    private struct Run {
        var positions: [String: Int] = [:]
        /// Each credential with the number of those that came before it.
        var credentials: [[UInt8]: Int] = [:]
    }

    package struct Miss: Sendable, Equatable {
        package var request: String
        /// Empty if it was recorded, but less often than it was made.
        package var nearest: [NearestRequest]
        /// The number of times it was recorded; 0 for never.
        package var recorded: Int
    }

    enum Match: Sendable {
        case exchange(RecordedExchange, Series)
        case missing(Miss)
    }

    /// Indexes all exchanges; blocks.
    ///
    /// - Parameters:
    ///   - isStrict: Whether no response repeats.
    ///   - isDelayed: Whether recorded delays are kept.
    ///   - now: The time to which dates are shifted, in Unix seconds; nil leaves them unchanged.
    ///   - memory: The room for ready responses in bytes.
    package init(
        _ recording: RecordingContents,
        upstreams: [ProxiedUpstream],
        isStrict: Bool,
        isDelayed: Bool = true,
        clock now: Int64?,
        memory: Int
    ) throws(RecordingError) {
        (self.recording, self.isStrict, self.isDelayed, self.memory) = (recording, isStrict, isDelayed, memory)
        self.upstreams = Dictionary(upstreams.map { ($0.name, $0) }) { first, _ in first }
        start =
            recording.exchanges.lazy.compactMap(\.seconds).first
            ?? recording.manifest.recorded.flatMap { RecordingTime.seconds($0) } ?? Int64(time(nil))
        shift = now.map { [start] in $0 - start }
        index = try ReplayIndex(recording.exchanges) { [upstreams = self.upstreams] text throws(RecordingError) in
            try Self.keys(recording, upstreams, text)
        }
        state = Mutex(State(isUsed: [Bool](repeating: false, count: recording.exchanges.count)))
    }

    /// Maps each exchange and its key, on all processors.
    private static func keys<Value: Sendable>(
        _ recording: RecordingContents,
        _ upstreams: [String: ProxiedUpstream],
        _ make: @Sendable (RecordedExchange, RequestKey) -> Value
    ) throws(RecordingError) -> [Value] {
        let folder = recording.folder
        return try recording.exchanges.indices.mapOnAllProcessors { number throws(RecordingError) in
            let (exchange, place) = (recording.exchanges[number], "exchange \(number + 1)")
            guard let upstream = upstreams[exchange.upstream] else {
                let lack = "\"\(exchange.upstream)\" that \(RecordingFolder.manifestName) does not name"
                throw RecordingError(folder.exchanges, "\(place) is of an upstream \(lack)")
            }
            let fields = Fields(recorded: exchange.request.fields ?? [])
            let (method, target) = (exchange.request.method, exchange.request.target)
            guard let incoming = IncomingRequest(recorded: method, target, fields: fields, upstream) else {
                throw RecordingError(folder.exchanges, "\(place): \(target) is not below \(upstream.settings.url)")
            }
            return make(exchange, RequestKey(incoming, body: try folder.body(exchange.request.body)))
        }
    }

    /// Finds the response to a request, and counts it as served.
    func find(_ incoming: IncomingRequest, body: [UInt8]) -> Match {
        let key = RequestKey(incoming, body: body)
        let session = incoming.session
        let credential = index.distinguishesCredentials ? credential(of: incoming) : nil
        let own = index.series(key, credential: credential, of: session)
        // Without a HEAD of its own, it is that of the response which a GET would get now.
        let get = own == nil ? incoming.asGet.map { RequestKey($0, body: []) } : nil
        let series = own ?? get.flatMap { index.series($0, credential: credential, of: session) }
        let found = state.withLock { state -> (series: Series?, recorded: Int) in
            guard var series else { return (nil, 0) }
            let next = state.next(of: series, in: incoming.run, isStrict: isStrict, isUsedUp: own != nil)
            guard let next else { return (nil, series.numbers.count) }
            series.found = next
            return (series, series.numbers.count)
        }
        if let series = found.series { return .exchange(recording.exchanges[series.numbers[series.found]], series) }
        let method = incoming.message.method
        let redacted = incoming.upstream.principal.redacted(url: "\(method) \(incoming.target)")
        let (url, upstream) = (incoming.url, incoming.upstream.name)
        let wanted = ComparedRequest(method, url, of: upstream, key, session: session, credential: credential)
        let nearest = found.recorded > 0 ? [] : NearestRequest.find(wanted, in: allRequests)
        let miss = Miss(request: redacted, nearest: nearest, recorded: found.recorded)
        state.withLock { if $0.missing.count < 10_000 { $0.missing.append(miss) } }
        return .missing(miss)
    }

    /// The number of a request's credential; 0 for none.
    ///
    /// The n-th new one in a run of a session stands for the n-th that the session has in the recording.
    private func credential(of incoming: IncomingRequest) -> Int {
        guard let credentials = incoming.clientCredentials else { return 0 }
        let position = state.withLock { $0.position(of: credentials, in: incoming.run) }
        return index.credential(position, of: incoming.session)
    }

    private var allRequests: [ComparedRequest] {
        requests.withLock { requests in
            // The bodies were readable before; if the folder has changed since, there is nothing to compare with.
            let all = requests ?? (try? Self.keys(recording, upstreams) { ComparedRequest($0, $1) }) ?? []
            requests = all
            return all
        }
    }

    // MARK: Ready responses

    /// The response to all further requests with this digest, if it is ready.
    func ready(at digest: Digest128) -> ReadyResponse? { state.withLock { $0.ready[digest] } }

    private static let readyLimit = 100_000

    /// Admits a response to memory for later requests with this digest, if they all get it, and if there is room.
    ///
    /// - Parameter digest: The digest of the request's cache key, as of an anonymous request.
    func admit(_ response: ReadyResponse, at digest: Digest128, of series: Series, for incoming: IncomingRequest) {
        // If the match depends on more than the cache key, each request is looked up.
        guard !isStrict, !index.distinguishesCredentials, RequestKey.isWithinCacheKey(incoming) else { return }
        state.withLock { state in
            // Less after a reset, which may have come since the response was found.
            guard state.runs[""]?.positions[series.key] ?? 0 >= series.numbers.count,
                series.found == series.numbers.count - 1
            else { return }
            let bytes = state.readyBytes - (state.ready[digest]?.byteCount ?? 0) + response.byteCount
            guard bytes <= memory, state.ready.count < Self.readyLimit else { return }
            state.ready[digest] = response
            state.readyBytes = bytes
        }
    }

    func delay(before exchange: RecordedExchange) -> Duration? {
        guard isDelayed, let delay = exchange.response.delay, delay > 0 else { return nil }
        return .milliseconds(delay)
    }

    /// A response to serve: its fields, shifted to the clock of the replay, its body and its time.
    func response(_ exchange: RecordedExchange)
        throws(RecordingError) -> (fields: Fields, body: [UInt8], moment: Int64)
    {
        let body = try recording.folder.body(exchange.response.body)
        var fields = Fields(recorded: exchange.response.fields)
        let moment = exchange.seconds ?? start
        if exchange.request.method != "HEAD" { fields.remove("content-length") }
        fields = fields.withoutHopByHop()
        guard let shift else { return (fields, body, moment) }
        ReplayClock.shift(&fields, by: shift, now: moment)
        return (fields, body, moment + shift)
    }

    package func reset() { state.withLock { ($0.runs, $0.ready, $0.readyBytes) = ([:], [:], 0) } }

    /// The requests that were not recorded, in order, and the recorded exchanges that were never requested.
    package var report: (missing: [Miss], unused: [String]) {
        let (missing, isUsed) = state.withLock { ($0.missing, $0.isUsed) }
        return (missing, zip(recording.exchanges, isUsed).filter { !$1 }.map(\.0.title))
    }
}

/// Shifts the dates of a response to the clock of a replay.
enum ReplayClock {
    private static let dates = ["date", "expires", "sunset", "retry-after"]
    /// Fields that contain Unix seconds.
    private static let moments = ["x-ratelimit-reset", "x-rate-limit-reset", "ratelimit-reset"]

    /// Smaller numbers are seconds from now, and larger ones no seconds.
    private static let possible: ClosedRange<Int64> = 1_000_000_001...1_000_000_000_000

    static func shift(_ fields: inout Fields, by seconds: Int64, now: Int64) {
        for index in fields.lines.indices {
            let line = fields.lines[index]
            let name = line.lowercasedName
            if dates.contains(name), let date = HTTPDate.parse(line.value, now: now) {
                fields.lines[index].value = HTTPDate.format(date + seconds)
            } else if moments.contains(name), let moment = Int64(line.text), Self.possible.contains(moment) {
                fields.lines[index].value = Array(String(moment + seconds).utf8)
            }
        }
    }
}

extension IncomingRequest {
    /// The GET whose head a HEAD asks for; nil for other methods.
    fileprivate var asGet: IncomingRequest? {
        guard message.method == "HEAD" else { return nil }
        var get = self
        get.message.method = "GET"
        return get
    }
}
