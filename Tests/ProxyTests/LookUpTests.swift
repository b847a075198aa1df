import EventLoops
import Foundation
import Logging
import Settings
import Store
import TestSupport
import Testing

@testable import CachePolicy
@testable import HTTPSemantics
@testable import HTTPServer
@testable import Proxy

/// Look-ups of what changes while it is read.
@Suite struct LookUpTests {
    @Test(arguments: 1...6)
    func `a look-up is repeated until its result is current, or the attempts are used up`(firstCurrent: Int) async {
        var attempts: [Bool] = []
        let (finding, isCurrent) = await untilCurrent(limit: 3) { isLast in
            attempts.append(isLast)
            return (attempts.count, attempts.count >= firstCurrent)
        }
        #expect(attempts == Array([false, false, false, true].prefix(firstCurrent)))
        #expect(finding == attempts.count)
        #expect(isCurrent == (firstCurrent <= 4))
    }

    /// A proxy without upstreams, over a real store.
    private struct Bench {
        let folder = TemporaryFolder()
        let loop: EventLoop
        let proxy: ProxyCore
        let upstream: ProxiedUpstream

        init() throws {
            let store = try ObjectStore.open(StoreConfiguration(Configuration(), path: folder.file(), [])).0
            let memory = MemoryTier<ReadyResponse>(capacity: 1 << 20)
            let (watch, log) = (LiveWatch(), Logger(label: "test"))
            let key = try PrincipalKey.open(path: folder.file("principal.key"))
            let principals = PrincipalResolver(key: key, store: store)
            store.setListener(ChangeListeners(memory, watch, principals))
            let metrics = Metrics(workers: 1, startTime: 0)
            let loop = try EventLoop(name: "upstream")
            let proxy = ProxyCore(
                loop: loop,
                configuration: CurrentConfiguration(try CompiledConfiguration(Configuration())),
                asksUpstreams: false,
                cache: ResponseCache(store: store, memory: memory, watch: watch, log: log),
                principals: principals,
                modes: ModeSwitch(.online),
                metrics: metrics,
                outcomes: metrics.worker(0),
                log: log
            )
            loop.enqueue { proxy.assumeIsolated { $0.start() } }
            loop.start()
            (self.loop, self.proxy, upstream) = (loop, proxy, try ProxyFixture.upstream())
        }

        func request(_ fields: [(String, String)] = []) -> ProxyRequest {
            ProxyFixture.request("GET", "/x", fields, of: upstream, hasher: proxy.cache.store.hasher)
        }

        /// Commits a response, and has memory forget it.
        func store(_ fields: [(String, String)], _ request: ProxyRequest) async {
            var response = ProxyFixture.answer(fields, of: upstream, for: request).response
            let lines = Fields(fields.map { Field($0.0, $0.1) })
            let vary = VaryField(lines: lines.all("vary"))
            response.selection = VarySelection(vary, request: request.message.fields) ?? .none
            let base = ClientAuthority(authority: "localhost")
            let ready = ReadyResponse(response, digest: request.digest, upstream: upstream, base: base)
            let (cache, disk) = (proxy.cache, DiskShare(of: response, to: request))
            cache.admit(Arrival(ready: ready, sent: cache.now, share: disk))
            await cache.store.flush()
            cache.memory.remove(request.digest)
        }

        /// Does work while a write of the document ends in each turn of the loop, so that at least one ends during each read.
        func whileWritten<Result: Sendable>(_ work: () async -> Result) async -> Result {
            let isOver = Locked(false)
            proxy.invalidateInEachTurn(of: upstream, until: isOver)
            let result = await work()
            isOver.value = true
            await proxy.finishTurn()
            return result
        }

        func end() async {
            await proxy.cache.store.close()
            loop.stop()
        }
    }

    @Test func `during constant writes a look-up ends, and its last result counts as outdated`() async throws {
        let bench = try Bench()
        let (proxy, request) = (bench.proxy, bench.request())
        await bench.store([("Cache-Control", "max-age=60")], request)
        let found = try #require(await bench.whileWritten { await proxy.lookUp(request) })
        #expect(found.response.isOutdated)
        // Other threads would serve it from there.
        #expect(proxy.cache.memory.responses(at: request.digest) == nil)
        guard case .ask = await bench.whileWritten({ await proxy.plan(request).plan }) else {
            Issue.record("a response that may be outdated is served")
            return
        }
        // Where no upstream may be asked, the client is told.
        guard
            case .serve(_, .offline(isStale: true), _) = await bench.whileWritten({
                await proxy.plan(request, mode: .offline).plan
            })
        else {
            Issue.record("a response that may be outdated is served as the current one")
            return
        }
        let later = try #require(await proxy.lookUp(request))
        #expect(!later.response.isOutdated)
        #expect(proxy.cache.memory.responses(at: request.digest)?.count == 1)
        await bench.end()
    }

    @Test func `during constant writes a decision ends, and uses nothing stored`() async throws {
        let bench = try Bench()
        let (german, english) = (
            bench.request([("Accept-Language", "de")]), bench.request([("Accept-Language", "en")])
        )
        await bench.store([("Cache-Control", "max-age=60"), ("ETag", "\"a\""), ("Vary", "Accept-Language")], german)
        let proxy = bench.proxy
        func variants(_ plan: Plan) -> Int? { if case .ask(let inquiry) = plan { inquiry.variants.count } else { nil } }
        #expect(variants(await proxy.plan(english).plan) == 1)
        // A 304 could otherwise confirm a variant that a write has removed.
        #expect(variants(await bench.whileWritten { await proxy.plan(english).plan }) == 0)
        await bench.end()
    }
}

extension ProxyCore {
    /// Does what a completed write does, in this turn of the loop and each one after it.
    fileprivate nonisolated func invalidateInEachTurn(of upstream: ProxiedUpstream, until isOver: Locked<Bool>) {
        enqueue { proxy in
            guard !isOver.value else { return }
            proxy.invalidate(Invalidation(of: upstream.storeKey, paths: ["/x"], at: proxy.cache.now))
            // A loop that never rests would take the processor from the reads, and from all other tests.
            Thread.sleep(forTimeInterval: 0.001)
            proxy.invalidateInEachTurn(of: upstream, until: isOver)
        }
    }
}
