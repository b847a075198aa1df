import CachePolicy
import EventLoops
import HTTPSemantics
import HTTPServer
import Logging
import Settings
import Store

/// Unsafe requests, and their invalidations (law 10).
extension ProxyCore {
    /// Sends an unsafe request; the response's last byte is sent only when everything that it invalidates and shows is committed.
    func write(_ request: ProxyRequest, _ reply: Reply) async {
        // Each write that could not be stored keeps its response in memory until it is.
        guard !cache.uncommittedWrites.isFull else { return reply.refuse(.storeFailed(.queueFull)) }
        guard await waitsForTurn(request, reply) else { return }
        // While it waited, others may have spent what was left. Nothing is sent then, so nothing may have changed.
        if fetches.carryOutHold(of: fetches.withHold(.write(request)), Relay(request, reply, isLeader: true)) { return }
        let suspect: SuspectID
        do {
            let further = request.upstream.routeInvalidations(by: request, status: nil)
            suspect = try await cache.store.markSuspect(
                Invalidation(
                    of: request.upstream.storeKey,
                    paths: Set(request.suspects + further.paths),
                    patterns: further.patterns,
                    objects: request.upstream.written(request),
                    at: cache.now
                )
            )
        } catch {
            // After an unrecorded write an old response might still be served, so the request is not sent.
            log.storeFailed("a write could not be recorded", error, url: request.shownURL)
            return reply.refuse(.storeFailed(error))
        }
        let announced = await announceWrite(request)
        request.note?.recordOutcome(.bypass)
        let (start, requestTime) = (cache.now, now)
        let write = fetches.write(request, reply)
        let outcome = await write.ended()
        let times = ExchangeTimes(request: requestTime, response: now, wall: wall)
        let isUntouched = await complete(outcome, of: request, suspect: suspect, since: start, announced: announced)
        // Another write may have invalidated the target meanwhile, and may have been the later one.
        if isUntouched, let posted = outcome.representation(ofTargetOf: request, times) {
            fetches.admit(posted, of: request)
        }
        write.committed()
    }

    /// Waits until the gap after the credential's last write is over; returns false if the client has left meanwhile.
    private func waitsForTurn(_ request: ProxyRequest, _ reply: Reply) async -> Bool {
        let pause = fetches.backOffs.turn(of: request, now: loop.now)
        guard pause > .zero else { return true }
        let hasLeft = Locked(false)
        reply.onDisconnect { hasLeft.value = true }
        // Nothing cancels this task.
        try? await Task.sleep(for: pause)
        return !hasLeft.value
    }

    /// Commits what a write invalidates and contains.
    ///
    /// - Returns: whether nothing else invalidated its target meanwhile.
    private func complete(
        _ outcome: WriteOutcome,
        of request: ProxyRequest,
        suspect: SuspectID,
        since start: Int64,
        announced: AnnouncedWrite?
    ) async -> Bool {
        guard let effect = outcome.effect(of: request) else {
            await announced?.withdraw(since: start, at: cache.now)
            try? await cache.store.clear(suspect)
            return false
        }
        let upstream = request.upstream
        let write = outcome.completed(as: effect, of: request, suspect: suspect, start: start, end: cache.now)
        var invalidation = write.invalidation
        // What the store commits is visible at once.
        let announcement = announced?.begin()
        invalidate(invalidation)
        let token = fetches.invalidations.token
        var completion = WriteCompletion(objects: write.boundObjects)
        do {
            completion = try await cache.store.complete(write)
            invalidation.paths.formUnion(completion.removed)
        } catch { retryLater(write, of: upstream, because: error) }
        if let announced, let announcement {
            await announced.end(invalidation, completion, announcement, since: start, at: write.time)
        }
        let targetIsUntouched = fetches.invalidations.change(since: token, for: request) != .invalidated
        // Repeated, because responses read from disk before the commit may have returned to memory meanwhile.
        invalidation.time = cache.now
        invalidate(invalidation)
        liveDocuments.invalidationsCommitted()
        return targetIsUntouched
    }

    /// Drops the target of a condition that names one of Larder's own tags, so that the next GET brings the upstream's tag.
    func dropTarget(of request: ProxyRequest) async {
        let path = request.upstream.keyPath(of: request.target)
        var invalidation = Invalidation(of: request.upstream.storeKey, paths: [path], at: cache.now)
        invalidate(invalidation)
        do {
            try await cache.store.removePaths(of: invalidation)
        } catch { log.storeFailed("an invalidation could not be stored", error) }
        invalidation.time = cache.now
        invalidate(invalidation)
        liveDocuments.invalidationsCommitted()
    }

    /// Makes everything that an invalidation covers outdated, in memory, fetches and streams.
    func invalidate(_ invalidation: Invalidation) {
        fetches.invalidate(invalidation)
        cache.memory.remove(invalidation, principals.label(of:))
        liveDocuments.invalidate(invalidation)
    }
}

/// Writes whose response came but which cannot be stored, because the disk is full or fails.
extension ProxyCore {
    /// Distrusts everything of an upstream that is older than a write, and retries until the store has committed it.
    ///
    /// Until then it is unknown which documents show what the write has changed. On disk the write's suspect mark stands; if the
    /// daemon stops first, the next opening of the store drops the suspect documents.
    func retryLater(_ write: CompletedWrite, of upstream: ProxiedUpstream, because error: StoreError) {
        repeated.log(
            .error,
            "what a write changed could not be stored: until it is, everything older is asked of its upstream again",
            about: ["error": "\(error)", "upstream": "\(upstream.name)"],
            ["path": "\(write.path)"]
        )
        let number = distrust(Invalidation(of: upstream.storeKey, at: write.time))
        // The objects in its response are held until then, within the limit for all bodies.
        _ = fetches.reserve(write.observation?.body.count ?? 0)
        Task { await completeLater(write, number, of: upstream) }
    }

    /// Distrusts what an invalidation covers until the write with the returned number ends.
    func distrust(_ everything: Invalidation) -> Int {
        let number = cache.uncommittedWrites.begin(everything)
        cache.memory.remove(everything)
        fetches.invalidations.append(everything)
        return number
    }

    private func completeLater(_ write: CompletedWrite, _ number: Int, of upstream: ProxiedUpstream) async {
        var pause = Duration.seconds(1)
        while true {
            // Nothing cancels this task; it ends with the store.
            try? await Task.sleep(for: pause)
            pause = min(pause * 2, .seconds(30))
            do {
                let completion = try await cache.store.complete(write)
                var invalidation = write.invalidation
                invalidation.paths.formUnion(completion.removed)
                let announcement = announcement(in: upstream.storeKey)
                await announcement?.announce(completion.objects, paths: invalidation.paths, at: write.time)
                // Fetches begun since then are newer than what the store has.
                invalidation.time = cache.now
                invalidate(invalidation)
                break
            } catch .closed {
                return
            } catch { log.debug("what a write changed still cannot be stored", metadata: ["error": "\(error)"]) }
        }
        cache.uncommittedWrites.end(number)
        var charge = write.observation?.body.count ?? 0
        fetches.release(&charge)
        liveDocuments.invalidationsCommitted()
        let subject: Logger.Metadata = ["upstream": "\(upstream.name)"]
        repeated.log(.notice, "what a write changed is stored now", about: subject, ["path": "\(write.path)"])
    }
}
