import Store

/// An upstream's wish not to be asked for a while: `Retry-After` on a refusal (RFC 9110 §10.2.3).
struct UpstreamPause: Sendable, Equatable {
    /// The refusal that brought it.
    let status: Int
    /// When it is over, in ns of the loop's clock.
    let until: UInt64

    /// The whole seconds that are left of it, at least one.
    func secondsLeft(at now: UInt64) -> Int64 {
        until > now ? Int64((until - now + 999_999_999) / 1_000_000_000) : 1
    }
}

/// What upstreams have asked to be spared, and until when.
///
/// A rate limit (429, and a 403 that says so) is the credential's: it spares the upstream all retrievals of that principal. Any
/// other failure speaks of the one document that was asked for, and spares the upstream requests for that one only. Writes are
/// never held back: whether they are worth trying is for the client to say.
///
/// A value for one thread.
struct UpstreamPauses {
    private struct Credential: Hashable {
        let upstream: Int
        let principal: PrincipalID
        /// A number for the `Authorization` that the shared reading takes no principal from; good within this process.
        let authorization: Int

        init(_ demand: Demand) {
            upstream = demand.upstream.index
            principal = demand.key.principal
            authorization =
                demand.upstream.settings.shared ? demand.request.fields.all("authorization").hashValue : 0
        }
    }

    private var credentials: [Credential: UpstreamPause] = [:]
    private var documents: [Digest128: UpstreamPause] = [:]

    /// A longer pause than this, in seconds, is cut: what an upstream meant for one client's bad hour must not last for days.
    static let longest: Int64 = 3_600
    private static let limit = 4_096

    /// Takes note of an answer's head; the seconds that it asks for, if it does.
    ///
    /// - Parameters:
    ///   - now: in ns of the loop's clock.
    ///   - wall: in seconds since 1970.
    @discardableResult
    mutating func note(_ head: UpstreamHead, for demand: Demand, now: UInt64, wall: Int64) -> Int64? {
        guard demand.upstream.isFailure(status: head.status, fields: head.fields),
            let asked = RetryAfter.seconds(head.fields, now: wall), asked > 0
        else { return nil }
        let seconds = min(asked, Self.longest)
        let pause = UpstreamPause(status: head.status, until: now + UInt64(seconds) * 1_000_000_000)
        if StatusFacts.isRateLimited(head.status, head.fields) {
            Self.makeRoom(in: &credentials, now: now)
            credentials[Credential(demand)] = pause
        } else if MethodFacts.isAnswerable(demand.request.method) {
            Self.makeRoom(in: &documents, now: now)
            documents[demand.digest] = pause
        }
        return seconds
    }

    /// The pause that holds back a retrieval; nil when it may go.
    mutating func pause(for demand: Demand, now: UInt64) -> UpstreamPause? {
        guard !credentials.isEmpty || !documents.isEmpty else { return nil }
        let credential = Credential(demand)
        if let pause = credentials[credential] {
            if pause.until > now { return pause }
            credentials[credential] = nil
        }
        guard let pause = documents[demand.digest] else { return nil }
        if pause.until > now { return pause }
        documents[demand.digest] = nil
        return nil
    }

    private static func makeRoom<Key>(in pauses: inout [Key: UpstreamPause], now: UInt64) {
        guard pauses.count >= limit else { return }
        pauses = pauses.filter { $0.value.until > now }
        // So many at once are no pauses but an attack; the upstream will say it again.
        if pauses.count >= limit { pauses = [:] }
    }
}
