import Logging
import Mapping
import Store
import TestSupport
import Testing

@testable import CachePolicy
@testable import HTTPSemantics
@testable import Proxy
@testable import Settings

/// Memory never goes back behind what has been passed on.
@Suite struct ResponseCacheTests {
    private let folder = TemporaryFolder()
    private let store: ObjectStore
    private let memory = MemoryTier<ReadyResponse>(capacity: 1 << 20)
    private let cache: ResponseCache
    private let upstream: ProxiedUpstream
    private let request: ProxyRequest

    init() throws {
        store = try ObjectStore.open(StoreConfiguration(Configuration(), path: folder.file(), [])).0
        let watch = LiveWatch()
        store.setListener(ChangeListeners(memory, watch))
        cache = ResponseCache(store: store, memory: memory, watch: watch, log: Logger(label: "test"))
        upstream = try ProxyFixture.upstream()
        request = ProxyFixture.request(of: upstream, hasher: store.hasher)
    }

    /// What the writer is given from now on is not on disk before the gate is open.
    private func holdUpWriter() -> Gate {
        let (gate, isHeld, other) = (Gate(), Gate(), ProxyFixture.request("GET", "/other", of: upstream).key)
        // It reports commits in order, on its own thread; what comes before the first report may be in the same commit.
        store.receive(ReceivedDocument(key: other, body: [], start: cache.now, end: cache.now)) { _ in
            isHeld.open()
            gate.wait()
        }
        isHeld.wait()
        return gate
    }

    private func answer(_ body: String) -> ReadyResponse {
        ProxyFixture.answer([("Cache-Control", "max-age=60")], body: body, of: upstream, for: request)
    }

    private func keep(_ ready: ReadyResponse, writtenAt: Int64? = nil) {
        let share = DiskShare(of: ready.response, to: request)
        cache.admit(Arrival(ready: ready, sent: cache.now, writtenAt: writtenAt, share: share))
    }

    /// The same response as a 304 has renewed it.
    private func renewed(_ ready: ReadyResponse) -> ReadyResponse {
        var answer = ready.response
        answer.document = ready.stored?.document
        return ReadyResponse(
            answer,
            digest: request.digest,
            upstream: upstream,
            base: ClientAuthority(authority: "localhost")
        )
    }

    /// Has a response renewed by a 304.
    private func replace(_ old: ReadyResponse, by renewed: ReadyResponse, since number: Int) throws {
        let head = try #require(FieldsOnDisk.encode(renewed.response.fields, for: request))
        cache.replace(old, by: renewed, head: head, sent: cache.now, since: number)
    }

    /// The number of the last event under the key.
    private var number: Int { memory.number(at: request.digest) }

    private var remembered: [ReadyResponse] { memory.responses(at: request.digest) ?? [] }

    @Test func `a response that a 304 freshens does not replace one admitted since`() async throws {
        let (old, new) = (answer("old"), answer("new"))
        keep(old)
        await store.flush()
        let sent = number
        // Whether its commit is still to come, or done; and also where memory has let go of it.
        keep(new)
        try replace(old, by: renewed(old), since: sent)
        #expect(remembered.map { $0 === new } == [true])
        await store.flush()
        try replace(old, by: renewed(old), since: sent)
        #expect(remembered.map { $0 === new } == [true])
        memory.remove(new, at: request.digest)
        try replace(old, by: renewed(old), since: sent)
        #expect(remembered.isEmpty)
        await store.close()
    }

    @Test func `a freshened response replaces the one it freshens if nothing newer arrived`()
        async throws
    {
        let old = answer("old")
        keep(old)
        await store.flush()
        let sent = number
        let first = renewed(old)
        try replace(old, by: first, since: sent)
        #expect(remembered.map { $0 === first } == [true])
        memory.remove(first, at: request.digest)
        let second = renewed(old)
        try replace(old, by: second, since: sent)
        #expect(remembered.map { $0 === second } == [true])
        await store.close()
    }

    @Test func `without room in memory, a freshened response is still found before its commit`() async throws {
        let old = answer("old")
        keep(old)
        await store.flush()
        // Read before the commit.
        let documents = try await store.documents(at: old.key) { _ in true }
        let sent = number
        let renewed = ProxyFixture.answer([("Cache-Control", "max-age=0")], body: "old", of: upstream, for: request)
        renewed.committed(as: try #require(old.stored?.document), showing: [])
        try replace(old, by: renewed, since: sent)
        memory.remove(request.digest)
        let found = try #require(cache.admit(documents, for: request, since: number, now: cache.now / 1_000_000))
        #expect(found.response.fields.text("cache-control") == "max-age=0")
        #expect(found.response.policy == renewed.response.policy && found.response.policy != old.response.policy)
        await store.close()
    }

    @Test func `fields that Larder 0.2 wrote are served if they are those received, and dropped otherwise`()
        async throws
    {
        func admitted(_ fields: [(String, String)]) async throws -> ReadyResponse? {
            let response = ProxyFixture.answer(fields, of: upstream, for: request).response
            let head = response.fields.encoded
            let moment = cache.now
            let document = ReceivedDocument(
                key: request.key,
                variant: response.selection.bytes,
                head: head,
                policy: response.policy.bytes,
                body: response.body,
                start: moment,
                end: moment
            )
            store.receive(document) { _ in }
            await store.flush()
            memory.remove(request.digest)
            let documents = try await store.documents(at: request.key)
            #expect(documents.map(\.head) == [head])
            return cache.admit(documents, for: request, since: number, now: moment / 1_000_000)
        }
        let plain = [("Cache-Control", "max-age=60"), ("Link", "</x?page=2>; rel=next")]
        #expect(try await admitted(plain)?.response.fields == Fields(plain.map { Field($0.0, $0.1) }))
        for line in [
            ("Location", "/x?token=REDACTED"), ("X-Auth-Token", "REDACTED"),
            ("Operation-Location", "/x?token=secret-12"),
        ] {
            #expect(try await admitted(plain + [line]) == nil, "\(line)")
            await store.flush()
            #expect(try await store.documents(at: request.key).isEmpty)
        }
        await store.close()
    }

    @Test func `a response dropped before its commit is not found after it`() async throws {
        let dropped = answer("old")
        keep(dropped)
        cache.drop(dropped)
        #expect(remembered.isEmpty)
        await store.flush()
        let found = try await store.documents(at: request.key)
        #expect(cache.admit(found, for: request, since: number, now: 1_000) == nil)
        await store.close()
    }

    @Test func `a response that may be older than a write is not found before its commit`() async throws {
        let (ready, gate) = (answer("old"), holdUpWriter())
        keep(ready, writtenAt: cache.now)
        #expect(cache.isArriving(request) && remembered.isEmpty)
        gate.open()
        await store.flush()
        #expect(remembered.map { $0 === ready } == [true])
        await store.close()
    }

    @Test func `a document that is read from disk gets the fields of a 304 that are only in memory yet`() async throws {
        let old = answer("old")
        keep(old)
        await store.flush()
        let (document, gate) = (try #require(old.stored?.document), holdUpWriter())
        let fields = [("Cache-Control", "max-age=5"), ("Link", "</x?page=2>; rel=next")]
        let renewed = ProxyFixture.answer(fields, body: "old", of: upstream, for: request)
        renewed.committed(as: document, showing: [])
        try replace(old, by: renewed, since: number)
        var found = try await store.documents(at: request.key) + (try await store.variants(at: request.key))
        found += try await store.documents(ofURL: request.key.url, upstream: request.key.upstream).map(\.stored)
        found.append(try #require(try await store.inspect(document)).stored)
        #expect(found.count == 4 && found.allSatisfy { $0.policy == old.response.policy.bytes })
        for stored in found {
            let current = try #require(cache.current(stored))
            #expect(current.policy == renewed.response.policy.bytes)
            #expect(CachedResponse(current, for: request)?.fields == renewed.response.fields)
        }
        let shown = try await cache.inspect(document, in: .wire, of: [upstream], at: "localhost")
        #expect(shown?.fields.contains("link") == true)
        cache.drop(renewed)
        #expect(found.allSatisfy { cache.current($0) == nil })
        #expect(try await cache.inspect(document, in: .wire, of: [upstream], at: "localhost") == nil)
        gate.open()
        await store.close()
    }

    @Test func `a dropped response is neither validated nor released for another principal while it is on disk`()
        async throws
    {
        let upstream = try ProxyFixture.upstream { settings in
            settings.validateAcross = .computed
            settings.etag.sha256 = ["Accept", "body"]
        }
        let request = ProxyFixture.request(of: upstream, hasher: store.hasher)
        let digest = try #require(RecipeTags(request)).opaque(of: Array("{}".utf8), .received)
        let tag = ("ETag", "\"\(String(decoding: digest, as: UTF8.self))\"")
        let ready = ProxyFixture.answer([tag, ("Cache-Control", "max-age=60")], of: upstream, for: request)
        let share = DiskShare(of: ready.response, to: request)
        cache.admit(Arrival(ready: ready, sent: cache.now, share: share, findCoverage: { _ in .received }))
        await store.flush()
        let offered = try #require(try await cache.latestOfAnyone(for: request))
        #expect(await cache.released(offered.document, by: Fields())?.body == Array("{}".utf8))
        let gate = holdUpWriter()
        cache.drop(ready)
        #expect(try await store.covered(offered.document) != nil)
        #expect(await cache.released(offered.document, by: Fields()) == nil)
        #expect(try await cache.latestOfAnyone(for: request) == nil)
        gate.open()
        await store.close()
    }

    @Test func `a copy for one request becomes dirty with its response`() {
        let ready = answer("old")
        let copy = ready.with(ready.response.policy)
        #expect(copy.isClean)
        memory.admit(ready, at: request.digest)
        memory.register(ready, under: [7])
        memory.objectsWillChange([7])
        #expect(!ready.isClean && !copy.isClean)
    }

    @Test func `a doubt that arises in the same second as an inquiry is asked about at once`() {
        let doubts = OpenDoubts()
        let (first, second): (Int64, Int64) = (10_300_000, 10_700_000)
        #expect(doubts.nextInquiry(for: request.digest, about: [first], lag: 30) == first)
        doubts.recordInquiry(for: request.digest, about: [first], at: 10_400_000)
        #expect(doubts.nextInquiry(for: request.digest, about: [first], lag: 30) == 40_400_000)
        #expect(doubts.nextInquiry(for: request.digest, about: [first, second], lag: 30) == second)
        doubts.recordInquiry(for: request.digest, about: [first, second], at: 10_800_000)
        #expect(doubts.nextInquiry(for: request.digest, about: [first, second], lag: 30) == 40_800_000)
    }

    @Test func `no response older than a write that could not be committed is a hit`() async throws {
        let ready = answer("old")
        keep(ready)
        await store.flush()
        memory.remove(request.digest)
        _ = cache.uncommittedWrites.begin(Invalidation(of: "another", at: cache.now))
        let write = cache.uncommittedWrites.begin(Invalidation(of: ready.upstream.storeKey, at: cache.now))
        let found = try await store.documents(at: request.key)
        #expect(cache.admit(found, for: request, since: number, now: 1_000)?.response.isOutdated == true)
        #expect(remembered.isEmpty)
        cache.uncommittedWrites.end(write)
        #expect(cache.admit(found, for: request, since: number, now: 1_000)?.response.form == .asReceived)
        #expect(remembered.count == 1)
        await store.close()
    }
}
