import Foundation
package import HTTPSemantics
package import Proxy
import Settings
import Synchronization

/// Finds the recorded response to a request: the sequence decides, never freshness.
///
/// Any thread. A request that was recorded several times is answered in order, in each session by itself; the last response
/// repeats.
package final class Replayer: Sendable {
    package let recording: Recording
    private let isStrict: Bool
    /// What is added to dates; nil: the clock stands where the recording was made.
    private let shift: Int64?
    private let start: Int64
    /// The exchanges of each key, in their order.
    private let index: [String: [Int]]
    private let titles: [RecordedTitle]
    /// Whether requests of several principals were recorded, so that it matters whose one is.
    private let tellsCredentials: Bool
    private let state: Mutex<State>

    private struct State {
        var sessions: [String: Session] = [:]
        var isUsed: [Bool]
        var missing: [Miss] = []

        /// The number of a credential: the session's n-th new one stands for the n-th of the recording.
        mutating func number(of credentials: [UInt8]?, in session: String) -> Int {
            guard let credentials else { return 0 }
            let known = sessions[session]?.credentials ?? [:]
            if let number = known[credentials] { return number }
            sessions[session, default: Session()].credentials[credentials] = known.count + 1
            return known.count + 1
        }
    }

    private struct Session {
        var positions: [String: Int] = [:]
        var credentials: [[UInt8]: Int] = [:]
    }

    /// A request that was not recorded.
    package struct Miss: Sendable, Equatable {
        package var request: String
        package var nearest: [NearestRequest]
        /// How often it was recorded; 0 for not at all.
        package var recorded: Int
    }

    package enum Outcome: Sendable {
        case exchange(RecordedExchange)
        case missing(Miss)
    }

    /// Reads what the index needs of each exchange; blocks.
    ///
    /// - Parameters:
    ///   - isStrict: whether no response repeats.
    ///   - now: Unix seconds, to which dates are shifted; nil leaves them.
    package init(_ recording: Recording, upstreams: [ProxiedUpstream], isStrict: Bool, clock now: Int64?)
        throws(RecordingError)
    {
        self.recording = recording
        self.isStrict = isStrict
        start =
            recording.exchanges.lazy.compactMap(\.seconds).first
            ?? recording.manifest.recorded.flatMap { RecordingTime.seconds($0) } ?? Int64(time(nil))
        shift = now.map { [start] in $0 - start }
        let principals = Set(recording.exchanges.map { $0.credential ?? 0 })
        tellsCredentials = principals.count > 1
        var index: [String: [Int]] = [:]
        var titles: [RecordedTitle] = []
        let known = Dictionary(upstreams.map { ($0.name, $0) }) { first, _ in first }
        for (number, exchange) in recording.exchanges.enumerated() {
            let place = recording.folder.exchanges
            guard let upstream = known[exchange.upstream] else {
                throw RecordingError(
                    place,
                    "exchange \(number + 1) is of an upstream \"\(exchange.upstream)\" that \(RecordingFolder.manifestName) does not name"
                )
            }
            let fields = Fields(recorded: exchange.request.fields ?? [])
            guard
                let incoming = IncomingRequest(
                    recorded: exchange.request.target,
                    fields: fields,
                    credentials: nil,
                    upstream
                )
            else {
                throw RecordingError(
                    place,
                    "exchange \(number + 1): \(exchange.request.target) is not below \(upstream.settings.url)"
                )
            }
            let body = try recording.folder.body(exchange.request.body)
            let key = RequestKey(incoming, method: exchange.request.method, fields: fields, body: body)
            let text = key.text(
                credential: tellsCredentials ? exchange.credential ?? 0 : nil,
                anyRepresentation: exchange.request.fields == nil,
                withConditions: RequestKey.isConditional(status: exchange.response.status)
            )
            index[text, default: []].append(number)
            titles.append(RecordedTitle(exchange, key))
        }
        self.index = index
        self.titles = titles
        state = Mutex(State(isUsed: [Bool](repeating: false, count: recording.exchanges.count)))
    }

    /// The response to a request, which counts as given.
    package func find(_ incoming: IncomingRequest, method: String, fields: Fields, body: [UInt8]) -> Outcome {
        let key = RequestKey(incoming, method: method, fields: fields, body: body)
        let session = fields.text("larder-session") ?? ""
        let credentials = incoming.clientCredentials
        let found = state.withLock { state -> (index: Int?, recorded: Int, credential: Int?) in
            let credential = tellsCredentials ? state.number(of: credentials, in: session) : nil
            for text in Self.texts(key, credential) {
                guard let numbers = index[text] else { continue }
                let position = state.sessions[session, default: Session()].positions[text, default: 0]
                if position >= numbers.count, isStrict { return (nil, numbers.count, credential) }
                state.sessions[session, default: Session()].positions[text] = position + 1
                let number = numbers[min(position, numbers.count - 1)]
                state.isUsed[number] = true
                return (number, numbers.count, credential)
            }
            return (nil, 0, credential)
        }
        if let number = found.index { return .exchange(recording.exchanges[number]) }
        let title = "\(method) \(incoming.target)"
        let redacted = incoming.upstream.principal.redacted(url: title)
        let nearest =
            found.recorded > 0
            ? [] : NearestRequest.find(RecordedTitle(key, credential: found.credential, incoming, method), in: titles)
        let miss = Miss(request: redacted, nearest: nearest, recorded: found.recorded)
        state.withLock { if $0.missing.count < 10_000 { $0.missing.append(miss) } }
        return .missing(miss)
    }

    /// The keys under which a request's response may be, the closest first.
    private static func texts(_ key: RequestKey, _ credential: Int?) -> [String] {
        var texts: [String] = []
        for isAny in [false, true] {
            if !key.conditions.isEmpty {
                texts.append(key.text(credential: credential, anyRepresentation: isAny, withConditions: true))
            }
            texts.append(key.text(credential: credential, anyRepresentation: isAny, withConditions: false))
        }
        return texts
    }

    /// A response as it is served: its fields, by the clock of the replay, and the moment that it is.
    package func response(_ exchange: RecordedExchange) throws(RecordingError) -> (
        fields: Fields, body: [UInt8], moment: Int64
    ) {
        let body = try recording.folder.body(exchange.response.body)
        var fields = Fields(recorded: exchange.response.fields)
        let moment = exchange.seconds ?? start
        if exchange.request.method != "HEAD" { fields.remove("content-length") }
        fields = fields.withoutHopByHop()
        guard let shift else { return (fields, body, moment) }
        ReplayClock.shift(&fields, by: shift, now: moment)
        return (fields, body, moment + shift)
    }

    /// Begins all sequences anew.
    package func reset() { state.withLock { $0.sessions = [:] } }

    /// What was asked for and not recorded, in order, and what was recorded and never asked for.
    package var report: (missing: [Miss], unused: [String]) {
        state.withLock { state in
            (state.missing, zip(recording.exchanges, state.isUsed).filter { !$1 }.map(\.0.title))
        }
    }
}

/// The dates of a response, moved with the clock of a replay.
enum ReplayClock {
    private static let dates = ["date", "expires", "sunset", "retry-after"]
    /// Fields with Unix seconds in them.
    private static let moments = ["x-ratelimit-reset", "x-rate-limit-reset", "ratelimit-reset"]

    static func shift(_ fields: inout Fields, by seconds: Int64, now: Int64) {
        for index in fields.lines.indices {
            let line = fields.lines[index]
            let name = line.lowercasedName
            if dates.contains(name), let date = HTTPDate.parse(line.value, now: now) {
                fields.lines[index].value = HTTPDate.format(date + seconds)
            } else if moments.contains(name), let moment = Int64(line.text), moment > 1_000_000_000 {
                fields.lines[index].value = Array(String(moment + seconds).utf8)
            }
        }
    }
}
