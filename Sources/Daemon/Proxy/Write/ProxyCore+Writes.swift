import CachePolicy
import HTTPServer
import Logging
import Settings
import Store
import Synchronization

/// Unsafe requests, and what they invalidate (law 10).
extension ProxyCore {
    /// Sends an unsafe request; its response's last byte is out only when what it invalidates and observes holds everywhere.
    func write(_ request: ProxyRequest, _ reply: Reply) async {
        guard modes.current == .online else { return refuse(.offline(request.message.method), reply) }
        if let problem = request.upstream.refusesWrite(request) {
            if request.conditions.matchesOwnTag { await expire(request) }
            return refuse(problem, reply)
        }
        // Each that could not be stored keeps its response until it is.
        guard !cache.unsettled.isFull else { return refuse(.storeFailed(.queueFull), reply) }
        let suspect: SuspectID
        do {
            let further = request.upstream.invalidated(by: request, status: nil)
            suspect = try await cache.store.markSuspect(
                upstream: request.upstream.storeKey,
                urls: request.suspects + further.paths,
                object: request.upstream.bound(request),
                patterns: further.patterns
            )
        } catch {
            // A write that could not be accounted for might be read over by an old response: better not to send it.
            log.log(
                level: error.logLevel,
                "a write could not be recorded",
                metadata: ["url": "\(request.key.url)", "error": "\(error)"]
            )
            return refuse(.storeFailed(error), reply)
        }
        count(.bypass, for: request)
        let (start, requestTime) = (cache.now, now)
        let write = fetches.write(request.asking(because: .method), reply)
        let outcome = await write.ended()
        let (responseTime, wall) = (now, wall)
        let isAlone = await settle(outcome, of: request, suspect: suspect, since: start)
        // Unless another write invalidated the target meanwhile, which may have been the later one.
        if isAlone,
            let posted = outcome.representation(
                ofTargetOf: request,
                requestTime: requestTime,
                responseTime: responseTime,
                wall: wall
            )
        {
            fetches.keep(posted, of: request)
        }
        write.settled()
    }

    /// Commits what a write invalidates and contains.
    ///
    /// - Returns: whether nothing else invalidated its target meanwhile.
    private func settle(_ outcome: WriteOutcome, of request: ProxyRequest, suspect: SuspectID, since start: Int64) async
        -> Bool
    {
        guard let effect = outcome.effect(of: request) else {
            try? await cache.store.settle(suspect)
            return false
        }
        let upstream = request.upstream
        let write = outcome.settled(as: effect, of: request, suspect: suspect, start: start, end: cache.now)
        var paths = write.targets.map(\.path)
        invalidate(Invalidation(paths, matching: write.patterns, of: upstream), at: write.time)
        let token = fetches.invalidations.token(for: request.digest)
        do {
            let settlement = try await cache.settle(write)
            paths += settlement.removed.filter { !paths.contains($0) }
        } catch {
            setAside(write, of: upstream, because: error)
        }
        let isAlone = fetches.invalidations.change(since: token, for: request) != .invalidated
        // Once more: what was read from disk before the commit may have come back meanwhile.
        invalidate(Invalidation(paths, matching: write.patterns, of: upstream), at: cache.now)
        liveDocuments.invalidationsCommitted()
        return isAlone
    }

    /// Forgets the target of a condition that names a tag of Larder's own, so that the next GET brings the upstream's.
    func expire(_ request: ProxyRequest) async {
        let path = request.upstream.keyPath(of: request.target)
        let invalidation = Invalidation([path], of: request.upstream)
        invalidate(invalidation, at: cache.now)
        do {
            try await cache.store.invalidate([InvalidationTarget(upstream: request.upstream.storeKey, path: path)])
        } catch {
            log.log(level: error.logLevel, "an invalidation could not be stored", metadata: ["error": "\(error)"])
        }
        invalidate(invalidation, at: cache.now)
        liveDocuments.invalidationsCommitted()
    }

    /// Makes everything outdated that an invalidation covers, wherever it is or comes from.
    ///
    /// - Parameter time: when the write was over, in µs of the store's clock.
    func invalidate(_ invalidation: Invalidation, at time: Int64) {
        let (upstream, patterns) = (invalidation.upstream.storeKey, invalidation.patterns)
        fetches.invalidate(invalidation, at: time)
        for path in invalidation.paths { cache.memory.remove(upstream: upstream, path: path) }
        if !patterns.isEmpty {
            cache.memory.remove(upstream: upstream) { path in patterns.contains { $0.matches(url: path) } }
        }
        liveDocuments.invalidate(invalidation)
    }
}

/// Writes that were answered, and which cannot be stored: the disk is full, or fails.
extension ProxyCore {
    /// Has nothing of an upstream believed that is older than a write, and tries again until the store has taken it in.
    ///
    /// Until then nobody knows what shows what the write has changed. On disk its mark stands, and does the rest when the store
    /// is opened next, should that come first.
    func setAside(_ write: SettledWrite, of upstream: ProxiedUpstream, because error: StoreError) {
        log.error(
            "what a write changed could not be stored: until it is, everything older is asked of its upstream again",
            metadata: ["error": "\(error)", "upstream": "\(upstream.name)", "path": "\(write.path)"]
        )
        unsettledCount += 1
        let number = unsettledCount
        cache.unsettled.begin(number, upstream: upstream.storeKey, time: write.time)
        cache.doubtUnread(of: upstream.storeKey, sentUntil: write.time)
        cache.memory.removeAll { $0.key.upstream == upstream.storeKey }
        fetches.invalidations.noteAll(of: upstream)
        // What its response contains is kept until then, within the bound of all bodies.
        _ = fetches.hold(write.observation?.body.count ?? 0)
        Task { await settleLater(write, number, of: upstream) }
    }

    private func settleLater(_ write: SettledWrite, _ number: Int, of upstream: ProxiedUpstream) async {
        var pause = Duration.seconds(1)
        while true {
            // Nothing cancels it; it ends with the store.
            try? await Task.sleep(for: pause)
            pause = min(pause * 2, .seconds(30))
            do {
                let settlement = try await cache.settle(write)
                let paths = write.targets.map(\.path) + settlement.removed
                // What was asked for since then, and is still on its way, is newer than what the store has.
                invalidate(Invalidation(paths, matching: write.patterns, of: upstream), at: cache.now)
                break
            } catch .closed {
                return
            } catch {
                log.debug("what a write changed still cannot be stored", metadata: ["error": "\(error)"])
            }
        }
        cache.unsettled.end(number)
        fetches.release(write.observation?.body.count ?? 0)
        liveDocuments.invalidationsCommitted()
        log.notice(
            "what a write changed is stored now",
            metadata: ["upstream": "\(upstream.name)", "path": "\(write.path)"]
        )
    }
}

/// Writes whose responses have come, and which could not be stored: the disk was full, or failed.
///
/// Until one is stored after all, nothing on disk says what it has changed. So whatever is known of its upstream from before
/// it counts as changed in unknown ways (law 10): it is asked for again, and served only where nobody can be asked.
///
/// Any thread.
final class UnsettledWrites: Sendable {
    /// By number, the upstream and when the write was over, on the store's clock.
    private let writes = Mutex<[Int: (upstream: String, time: Int64)]>([:])
    /// How many there are, so that who looks up need not ask for the lock where there is none.
    private let count = Atomic<Int>(0)
    /// How many there may be; past it writes are refused, for each is kept.
    static let limit = 64

    /// Whether there are so many that no further write may be sent.
    var isFull: Bool { count.load(ordering: .relaxed) >= Self.limit }

    /// Notes a write; before anything is taken out of memory for its sake.
    func begin(_ number: Int, upstream: String, time: Int64) {
        writes.withLock { writes in
            writes[number] = (upstream, time)
            count.store(writes.count, ordering: .sequentiallyConsistent)
        }
    }

    /// A write has been stored.
    func end(_ number: Int) {
        writes.withLock { writes in
            writes[number] = nil
            count.store(writes.count, ordering: .sequentiallyConsistent)
        }
    }

    /// Whether one of an upstream's writes may have changed what was known of it as of a time.
    func mayBeNewer(than start: Int64, of upstream: String) -> Bool {
        guard count.load(ordering: .sequentiallyConsistent) > 0 else { return false }
        return writes.withLock { $0.values.contains { $0.upstream == upstream && start <= $0.time } }
    }
}
