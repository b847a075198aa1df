import HTTPSemantics
import Logging
import Mapping
import Settings
package import Store

/// Announces what this machine changes.
extension ProxyCore {
    /// Announces that a write is about to be sent; nil without a fleet.
    func announceWrite(_ request: ProxyRequest) async -> AnnouncedWrite? {
        let upstream = request.upstream
        guard let fleet, fleet.link.shares(upstream.storeKey) else { return nil }
        let further = upstream.routeInvalidations(by: request, status: nil)
        let now = cache.now
        let write = AnnouncedWrite(fleet: fleet, upstream: upstream.storeKey)
        let invalidation = Invalidation(
            of: upstream.storeKey,
            paths: Set(request.suspects + further.paths),
            patterns: further.patterns,
            objects: upstream.written(request),
            at: now
        )
        await fleet.announce(FleetNews(.suspect(write.number, invalidation), start: now, end: now), write.begin())
        return write
    }

    /// Begins to announce objects that will no longer be known; nil without a fleet.
    func announcement(in upstream: UpstreamKey) -> LossAnnouncement? {
        guard let fleet, fleet.link.shares(upstream) else { return nil }
        return LossAnnouncement(fleet: fleet, announcement: fleet.begin(in: upstream))
    }

    /// Has every other machine carry out a clean of each shared upstream that it concerns; returns their names.
    ///
    /// - Parameter upstream: nil for all.
    package func announce(_ clean: SharedClean, of upstream: UpstreamKey?) async -> [String] {
        guard let fleet else { return [] }
        var names: [String] = []
        for known in configuration.value.upstreams
        where fleet.link.shares(known.storeKey) && (upstream ?? known.storeKey) == known.storeKey {
            let now = cache.now
            await fleet.announce(FleetNews(.cleaned(clean), start: now, end: now), fleet.begin(in: known.storeKey))
            names.append(known.name)
        }
        return names
    }

    package nonisolated var isInFleet: Bool { fleet != nil }
}

extension ObjectStore {
    /// Announces the new values that responses show.
    func showValues(to fleet: FleetSharing) {
        showValues(where: { fleet.link.shares($0) }) { values in
            func announce(_ event: FleetNews.Event) {
                let announcement = fleet.begin(in: values.upstream)
                Task { await fleet.announce(FleetNews(event, start: values.start, end: values.end), announcement) }
            }
            if !values.observation.objects.isEmpty { announce(.observed(values.observation)) }
            guard !values.oversized.isEmpty else { return }
            let objects = values.oversized.map { BoundObject($0) }
            announce(.invalidated(Invalidation(of: values.upstream, objects: objects, at: values.end)))
        }
    }
}

/// Announces that objects are no longer known.
struct LossAnnouncement {
    fileprivate let fleet: FleetSharing
    fileprivate let announcement: FleetSharing.Announcement

    func announce(_ objects: [BoundObject], paths: Set<String> = [], at time: Int64) async {
        guard !objects.isEmpty || !paths.isEmpty else { return withdraw() }
        let invalidation = Invalidation(of: announcement.upstream, paths: paths, objects: objects, at: time)
        await fleet.announce(FleetNews(.invalidated(invalidation), start: time, end: time), announcement)
    }

    func withdraw() { fleet.end(announcement) }
}

/// A write that other machines know to be under way.
struct AnnouncedWrite: Sendable {
    let fleet: FleetSharing
    let upstream: UpstreamKey
    let number = UInt64.random(in: .min ... .max)

    func begin() -> FleetSharing.Announcement { fleet.begin(in: upstream) }

    /// Announces what the write has made outdated, and what its response has shown.
    ///
    /// - Parameters:
    ///   - completion: its objects, and their values.
    ///   - announcement: begun before that was visible.
    func end(
        _ invalidation: Invalidation,
        _ completion: WriteCompletion,
        _ announcement: FleetSharing.Announcement,
        since start: Int64,
        at end: Int64
    ) async {
        var invalidation = invalidation
        invalidation.objects = completion.objects
        let event = FleetNews.Event.wrote(number, invalidation, shown: completion.shown)
        await fleet.announce(FleetNews(event, start: start, end: end), announcement)
    }

    /// Announces that the write has changed nothing.
    func withdraw(since start: Int64, at end: Int64) async {
        await fleet.announce(FleetNews(.withdrawn(number), start: start, end: end), begin())
    }
}

/// Applies what other machines announce.
extension ProxyCore: FleetFollower {
    package nonisolated func apply(_ news: [FleetNews], at position: FleetPosition, in upstream: UpstreamKey) async {
        // Responses may show it before all of it is applied.
        fleet?.applies(position, in: upstream)
        await apply(news, in: upstream)
        for piece in news {
            log.debug("applied another machine's news", metadata: piece.metadata(at: position, in: upstream))
        }
    }

    /// Applies news in their order; what follows each other becomes one transaction of the store.
    private func apply(_ news: [FleetNews], in upstream: UpstreamKey) async {
        var changes: [AppliedNews] = []
        for piece in news {
            func values(_ shown: SharedObservation) -> AppliedValues {
                AppliedValues(shown, start: piece.start, end: piece.end, fetch: piece.fetch)
            }
            switch piece.event {
            case .suspect(let number, let invalidation): await begin(number, invalidation, in: upstream)
            case .withdrawn(let number): suspects.end(number)
            case .observed(let observation): changes.append(.values(values(observation)))
            case .wrote(let number, let invalidation, let shown):
                suspects.end(number)
                changes.append(.write(invalidation.of(upstream, at: piece.end), shown.map(values)))
            case .invalidated(let invalidation):
                changes.append(.invalidation(invalidation.of(upstream, at: piece.end)))
            case .cleaned(let clean):
                await obey(changes, in: upstream)
                changes = []
                await obey(clean, in: upstream)
            }
        }
        await obey(changes, in: upstream)
    }

    private func begin(_ number: UInt64, _ invalidation: Invalidation, in upstream: UpstreamKey) async {
        suspects.begin(number, invalidation, in: upstream, at: .now)
        await endOverdueSuspects()
        guard !isAwaitingSuspects else { return }
        isAwaitingSuspects = true
        Task { await awaitSuspects() }
    }

    /// Row W4: writes of other machines have no end in time.
    private func endOverdueSuspects() async {
        for invalidation in suspects.takeOverdue(at: .now) {
            guard let upstream = invalidation.upstream else { continue }
            await obey([.write(invalidation.of(upstream, at: cache.now), nil)], in: upstream)
        }
    }

    private func awaitSuspects() async {
        while let time = suspects.nextEnd {
            // Nothing cancels this task.
            try? await Task.sleep(until: time, clock: .continuous)
            await endOverdueSuspects()
        }
        isAwaitingSuspects = false
    }

    /// Obeys news: merges values, and makes everything that invalidations cover outdated, in memory and on disk.
    private func obey(_ changes: [AppliedNews], in upstream: UpstreamKey) async {
        let parts = changes.split(omittingEmptySubsequences: false) { $0.invalidation?.isOfEverything == true }
        for (number, part) in parts.enumerated() {
            if number > 0 { await clean(CleanFilter(upstream: upstream), in: upstream) }
            await commit(Array(part), in: upstream)
        }
    }

    private func commit(_ changes: [AppliedNews], in upstream: UpstreamKey) async {
        guard !changes.isEmpty else { return }
        let invalidations = changes.compactMap(\.invalidation)
        for invalidation in invalidations { invalidate(invalidation) }
        await persistently(in: upstream) { () async throws(StoreError) in
            try await self.cache.store.commit(changes, of: upstream)
        }
        guard !invalidations.isEmpty else { return }
        // Responses read from disk before the commit may have returned to memory meanwhile.
        let time = cache.now
        for var invalidation in invalidations {
            invalidation.time = max(invalidation.time, time)
            invalidate(invalidation)
        }
        liveDocuments.invalidationsCommitted()
    }

    private func clean(_ filter: CleanFilter, in upstream: UpstreamKey) async {
        await persistently(in: upstream) { () async throws(StoreError) in
            _ = try await self.clean(filter, dryRun: false) { _ in true }
        }
    }

    /// Obeys a clean of another machine: nothing requested before is stored from now on, and what is stored goes while other
    /// news are applied.
    private func obey(_ clean: SharedClean, in upstream: UpstreamKey) async {
        guard let known = configuration.value.upstreams.first(where: { $0.storeKey == upstream }) else { return }
        var filter = clean.filter(of: upstream)
        filter.url = clean.covers(by: known)
        log.notice("another machine of the fleet has asked for a clean", metadata: ["upstream": "\(known.name)"])
        Task { [filter] in await self.clean(filter, in: upstream) }
    }

    /// Repeats something until the store has committed it, because the news do not come again; until then, everything older of the
    /// upstream is distrusted.
    private func persistently(
        in upstream: UpstreamKey,
        _ commit: @escaping @Sendable () async throws(StoreError) -> Void
    ) async {
        do throws(StoreError) {
            return try await commit()
        } catch .closed {
            return
        } catch {
            repeated.log(
                .error,
                "news of another machine could not be stored: until they are, everything older is asked of its upstream again",
                about: ["error": "\(error)", "upstream": "\(upstream.name)"],
                [:]
            )
        }
        let number = distrust(Invalidation(of: upstream, at: cache.now))
        Task {
            var pause = Duration.seconds(1)
            while true {
                // Nothing cancels this task; it ends with the store.
                try? await Task.sleep(for: pause)
                pause = min(pause * 2, .seconds(30))
                do throws(StoreError) {
                    try await commit()
                    break
                } catch .closed {
                    return
                } catch {}
            }
            let everything = Invalidation(of: upstream, at: cache.now)
            fetches.invalidations.append(everything)
            cache.memory.remove(everything)
            cache.uncommittedWrites.end(number)
        }
    }
}

extension Invalidation {
    /// The same for the upstream and the clock of this machine.
    fileprivate func of(_ upstream: UpstreamKey, at time: Int64) -> Invalidation {
        var own = self
        (own.upstream, own.time) = (upstream, time)
        return own
    }
}

extension SharedClean {
    /// Whether a document of an upstream is meant, by its URL; nil for all of them.
    fileprivate func covers(by upstream: ProxiedUpstream) -> (@Sendable (String) -> Bool)? {
        if let url {
            let beginning = url.hasSuffix("*") ? String(url.dropLast()) : nil
            return { $0.utf8.elementsEqual(url.utf8) || beginning.map($0.hasPrefix) ?? false }
        }
        guard let route else { return nil }
        return { url in
            let (path, query) = (upstream.route(ofURL: url), ProxiedUpstream.query(ofURL: url))
            return upstream.routePath(method: CacheKey.method(ofURL: url), path: path, query: query) == route
        }
    }
}

/// The writes of other machines that are under way.
///
/// Their number is bounded: the oldest is overdue at once if there are more.
struct FleetSuspects {
    /// After this time a write counts as unanswered.
    static let answerTime: Duration = .seconds(60)
    static let countLimit = 4_096

    private var writes: [UInt64: (invalidation: Invalidation, end: ContinuousClock.Instant)] = [:]
    /// Their numbers in the order of their begin, and of writes that have ended.
    private var order: ArraySlice<UInt64> = []

    mutating func begin(
        _ number: UInt64,
        _ invalidation: Invalidation,
        in upstream: UpstreamKey,
        at time: ContinuousClock.Instant
    ) {
        var invalidation = invalidation
        invalidation.upstream = upstream
        if writes.updateValue((invalidation, time + Self.answerTime), forKey: number) == nil { order.append(number) }
        if order.count > 2 * Self.countLimit { order.removeAll { writes[$0] == nil } }
    }

    /// Ends a write, if it has not ended before.
    mutating func end(_ number: UInt64) { writes[number] = nil }

    /// When the next write is overdue; nil if none is under way.
    var nextEnd: ContinuousClock.Instant? { order.lazy.compactMap { writes[$0]?.end }.first }

    /// Ends the writes that are overdue; returns what they make outdated.
    mutating func takeOverdue(at time: ContinuousClock.Instant) -> [Invalidation] {
        var overdue: [Invalidation] = []
        while let number = order.first {
            if let write = writes[number] {
                guard write.end <= time || writes.count > Self.countLimit else { break }
                overdue.append(write.invalidation)
            }
            writes[number] = nil
            order.removeFirst()
        }
        return overdue
    }
}
