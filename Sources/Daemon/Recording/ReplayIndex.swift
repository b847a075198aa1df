import HTTPSemantics
import Proxy

/// The exchanges of a recording by what requests ask for, in the order in which each session gets them.
///
/// A session is what requests name in `Larder-Session`, such as a test; requests that name none have the session "".
struct ReplayIndex: Sendable {
    /// The exchanges of one key, of which a session's requests get one after the other.
    struct Series: Sendable {
        let key: String
        let numbers: [Int]
        /// The exchange found, as an index of `numbers`.
        var found = 0
    }

    /// The exchanges of each session by the texts of their keys.
    private let sessions: [String: [String: [Int]]]
    private let all: [String: [Int]]
    /// The numbers of the recorded credentials, in their order.
    private let credentials: [Int]
    /// The same, for each session with exchanges of its own: first those that it used, in the order of their use.
    private let ownCredentials: [String: [Int]]
    /// Whether requests of several principals were recorded, so that the credential counts.
    let distinguishesCredentials: Bool

    /// The number of a credential that a session has beyond the recorded ones.
    static let unknownCredential = Int.max

    /// - Parameter texts: Maps each exchange and its key to a text, in their order.
    init(
        _ exchanges: [RecordedExchange],
        texts: (_ text: @escaping @Sendable (RecordedExchange, RequestKey) -> String) throws(RecordingError) -> [String]
    ) throws(RecordingError) {
        let numbers = Set(exchanges.map { $0.credential ?? 0 })
        let distinguishesCredentials = numbers.count > 1
        self.distinguishesCredentials = distinguishesCredentials
        let texts = try texts { exchange, key in
            key.text(
                credential: distinguishesCredentials ? exchange.credential ?? 0 : nil,
                anyRepresentation: exchange.request.fields == nil,
                withConditions: RequestKey.isConditional(status: exchange.response.status)
            )
        }
        credentials = numbers.subtracting([0]).sorted()
        let hasSessions = exchanges.contains { $0.session != nil }
        var (all, used): ([String: [Int]], [String: [Int]]) = ([:], [:])
        var sessions: [String: [String: [Int]]] = [:]
        all.reserveCapacity(exchanges.count)
        for (number, exchange) in exchanges.enumerated() {
            let text = texts[number]
            all[text, default: []].append(number)
            guard hasSessions else { continue }
            sessions[exchange.session ?? "", default: [:]][text, default: []].append(number)
            guard let session = exchange.session, let credential = exchange.credential else { continue }
            if used[session]?.contains(credential) != true { used[session, default: []].append(credential) }
        }
        self.all = all
        self.sessions = hasSessions ? sessions : ["": all]
        ownCredentials = used.mapValues { [credentials] own in own + credentials.filter { !own.contains($0) } }
    }

    /// The number of the credential that is a session's n-th, counted from 0.
    func credential(_ position: Int, of session: String) -> Int {
        let numbers = ownCredentials[session] ?? credentials
        return position < numbers.count ? numbers[position] : Self.unknownCredential
    }

    /// The exchanges that a session's requests of a key get: its own, then those of no session; nil if there are none.
    ///
    /// - Parameter credential: 0 for a request without one, which also gets what only one credential has.
    func series(_ key: RequestKey, credential: Int?, of session: String) -> Series? {
        if let series = exactSeries(key, credential, session) { return series }
        guard credential == 0 else { return nil }
        var only: Series?
        for credential in credentials {
            guard let series = exactSeries(key, credential, session) else { continue }
            guard only == nil else { return nil }
            only = series
        }
        return only
    }

    private func exactSeries(_ key: RequestKey, _ credential: Int?, _ session: String) -> Series? {
        for text in Self.texts(key, credential) {
            let shared = sessions[""]?[text] ?? []
            let own = session.isEmpty ? [] : sessions[session]?[text] ?? []
            // Who names no session gets those of all if there are no others.
            let numbers = session.isEmpty && shared.isEmpty ? all[text] ?? [] : own + shared
            if !numbers.isEmpty { return Series(key: text, numbers: numbers) }
        }
        return nil
    }

    /// The possible keys of a request's response, the most specific first.
    private static func texts(_ key: RequestKey, _ credential: Int?) -> [String] {
        let withConditions = key.conditions.isEmpty ? [false] : [true, false]
        return [false, true].flatMap { isAny in
            withConditions.map { key.text(credential: credential, anyRepresentation: isAny, withConditions: $0) }
        }
    }
}

extension IncomingRequest {
    /// The value of `Larder-Session`; empty for none.
    var session: String { message.fields.text("larder-session") ?? "" }

    /// The session as one process goes through it: several may, each from the beginning (`Larder-Process`).
    var run: String {
        let session = session
        guard !session.isEmpty, let process = message.fields.text("larder-process") else { return session }
        return "\(session)\n\(process)"
    }
}
