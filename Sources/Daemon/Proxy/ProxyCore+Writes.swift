import CachePolicy
import HTTPServer
import Logging
import Settings
import Store

/// Unsafe requests, and what they make worthless (law 10).
extension ProxyCore {
    /// Sends an unsafe request; its answer's last byte is out only when what it invalidates and observes holds everywhere.
    func write(_ demand: Demand, _ reply: Reply) async {
        guard modes.current == .online else { return refuse(.offline(demand.request.method), reply) }
        if let problem = demand.upstream.refusesWrite(demand) {
            if demand.conditions.matchesOwnTag { await expire(demand) }
            return refuse(problem, reply)
        }
        // Each that could not be taken in keeps its answer until it is.
        guard !cache.unsettled.isFull else { return refuse(.storeFailed(.queueFull), reply) }
        let suspect: SuspectID
        do {
            let further = demand.upstream.invalidated(by: demand, status: nil)
            suspect = try await cache.store.markSuspect(
                upstream: demand.upstream.storeKey,
                urls: demand.suspects + further.paths,
                object: demand.upstream.bound(demand),
                patterns: further.patterns
            )
        } catch {
            // A write that could not be accounted for might be read over by an old answer: better not to send it.
            log.log(
                level: error.logLevel,
                "a write could not be recorded",
                metadata: ["url": "\(demand.key.url)", "error": "\(error)"]
            )
            return refuse(.storeFailed(error), reply)
        }
        outcomes.count(.bypass)
        let (start, requestTime) = (cache.now, now)
        let flight = runningFlights.write(demand.asking(because: .method), reply)
        let outcome = await withCheckedContinuation { flight.complete($0) }
        let (responseTime, wall) = (now, wall)
        writeCount += 1
        let number = writeCount
        settlingWrites[number] = SettlingWrite(demand)
        await settle(outcome, of: demand, suspect: suspect, since: start)
        // Unless another write invalidated the target meanwhile, which may have been the later one.
        if settlingWrites.removeValue(forKey: number)?.isAlone == true,
            let posted = PostedResponse(
                outcome,
                of: demand,
                requestTime: requestTime,
                responseTime: responseTime,
                wall: wall
            )
        {
            runningFlights.keep(posted, of: demand)
        }
        outcome.release(to: reply, for: demand.asking(because: .method))
        flight.releaseCharge()
    }

    func settle(_ outcome: WriteOutcome, of demand: Demand, suspect: SuspectID, since start: Int64) async {
        guard let effect = outcome.effect(of: demand) else {
            try? await cache.store.settle(suspect)
            return
        }
        let upstream = demand.upstream
        let write = outcome.settled(as: effect, of: demand, suspect: suspect, start: start, end: cache.now)
        var paths = write.targets.map(\.path)
        forget(Invalidation(paths, matching: write.patterns, of: upstream), at: write.time)
        do {
            let settlement = try await cache.settle(write)
            paths += settlement.removed.filter { !paths.contains($0) }
        } catch {
            setAside(write, of: upstream, because: error)
        }
        // Once more: what was read from disk before the commit may have come back meanwhile.
        forget(Invalidation(paths, matching: write.patterns, of: upstream), at: cache.now)
        liveDocuments.settled()
    }

    /// Forgets the target of a condition that names a tag of Larder's own, so that the next GET brings the upstream's.
    func expire(_ demand: Demand) async {
        let path = demand.upstream.keyPath(of: demand.target)
        let invalidation = Invalidation([path], of: demand.upstream)
        forget(invalidation, at: cache.now)
        do {
            try await cache.store.invalidate([InvalidationTarget(upstream: demand.upstream.storeKey, path: path)])
        } catch {
            log.log(level: error.logLevel, "an invalidation could not be stored", metadata: ["error": "\(error)"])
        }
        forget(invalidation, at: cache.now)
        liveDocuments.settled()
    }

    /// Has nothing believed any more that was invalidated at a time, wherever it is or comes from.
    func forget(_ invalidation: Invalidation, at time: Int64) {
        let (upstream, patterns) = (invalidation.upstream.storeKey, invalidation.patterns)
        invalidations += 1
        for number in settlingWrites.keys { settlingWrites[number]?.noteForgotten(invalidation) }
        for path in invalidation.paths { cache.memory.remove(upstream: upstream, path: path) }
        if !patterns.isEmpty {
            cache.memory.remove(upstream: upstream) { path in patterns.contains { $0.matches(url: path) } }
        }
        runningFlights.writeAnswered(invalidation, at: time)
        liveDocuments.forget(invalidation)
    }
}
