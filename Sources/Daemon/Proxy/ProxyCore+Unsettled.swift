import Logging
import Store

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
        liveDocuments.settled()
        log.notice(
            "what a write changed is stored now",
            metadata: ["upstream": "\(upstream.name)", "path": "\(write.path)"]
        )
    }
}
