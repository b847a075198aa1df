import Mapping
import Proxy
import Store
import Testing

@testable import Fleet

/// What is on the server, and who can read it.
struct SealerTests {
    private let keys = FleetKeys([UInt8](repeating: 7, count: 32))
    private let others = FleetKeys([UInt8](repeating: 8, count: 32))

    private func key(_ url: String = "/a", _ credentials: String? = nil) -> SharedKey {
        SharedKey(upstream: "a https://a", context: "", url: url, credentials: credentials.map { Array($0.utf8) })
    }

    @Test func `another process opens sealed bytes, and learns the id of the sealer`() throws {
        let (one, other) = (Sealer(), Sealer())
        for bytes in [[], [1], [UInt8](repeating: 9, count: 100_000)] as [[UInt8]] {
            let sealed = one.seal(bytes, key: keys.newsKey, place: "p")
            let opened = try #require(other.open(sealed, key: keys.newsKey, place: "p"))
            #expect(opened.bytes == bytes && opened.sender == one.sender)
        }
        #expect(one.sender != other.sender)
    }

    @Test func `sealed bytes open only with the key, and in the stream and epoch, for which they were sealed`() {
        let sealer = Sealer()
        let names = FleetNames(record: keys.name(ofUpstream: "a https://a"))
        let sealed = sealer.seal([1, 2], key: keys.newsKey, place: names.stream(1))
        #expect(sealer.open(sealed, key: keys.newsKey, place: names.stream(1)) != nil)
        #expect(sealer.open(sealed, key: keys.newsKey, place: names.stream(2)) == nil)
        #expect(sealer.open(sealed, key: others.newsKey, place: names.stream(1)) == nil)
    }

    @Test func `altered, truncated or extended sealed bytes do not open`() {
        let sealer = Sealer()
        let sealed = sealer.seal(Array("secret".utf8), key: keys.newsKey, place: "p")
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 1
            #expect(sealer.open(changed, key: keys.newsKey, place: "p") == nil)
            #expect(sealer.open(Array(sealed[..<index]), key: keys.newsKey, place: "p") == nil)
        }
        #expect(sealer.open(sealed + [0], key: keys.newsKey, place: "p") == nil)
    }

    @Test func `sealing the same bytes again gives different sealed bytes`() {
        let sealer = Sealer()
        let all = (0..<100).map { _ in sealer.seal([1, 2, 3], key: keys.newsKey, place: "p") }
        #expect(Set(all).count == 100)
    }

    @Test func `a private document opens for its principal alone`() {
        let sealer = Sealer()
        let sealed = sealer.seal([1], key: keys.key(of: key("/a", "ada")), place: "p")
        #expect(sealer.open(sealed, key: keys.key(of: key("/a", "ada")), place: "p") != nil)
        for other in [key("/a", "bob"), key("/a", ""), key("/a")] {
            #expect(sealer.open(sealed, key: keys.key(of: other), place: "p") == nil)
        }
    }

    @Test func `names differ with each part of a key, and say nothing of it`() {
        let names = [
            key(), key("/b"), key("/a", "ada"), key("/a", ""), key("/a", "bob"),
            SharedKey(upstream: "a https://a", context: "/", url: "a", credentials: nil),
            SharedKey(upstream: "a https://a/", context: "", url: "a", credentials: nil),
        ].map { keys.name(of: $0) }
        #expect(Set(names).count == names.count && names.allSatisfy { $0.count == 32 })
        #expect(keys.name(of: key()) != others.name(of: key()))
        #expect(keys.name(ofUpstream: "a") != others.name(ofUpstream: "a") && keys.digest != others.digest)
        #expect(FleetKeys.principalSecret([UInt8](repeating: 7, count: 32)).count == 32)
    }
}

/// Documents and news as bytes.
struct SharedContentTests {
    private let clock = FleetClock(.init(sent: 1_000, received: 1_010, server: 501_005))

    private var observation: SharedObservation {
        SharedObservation(
            principal: [1, 2],
            context: "c",
            url: "/u?x",
            isList: true,
            dividedBy: nil,
            objects: [
                .init(model: "User", identity: "1", payload: Array(#"{"a":"é"}"#.utf8)),
                .init(model: "User", identity: "2", payload: [0xFF, 0], isEmbedded: true),
            ]
        )
    }

    private var written: SharedObservation {
        var written = observation
        (written.isList, written.write) = (false, "PATCH")
        return written
    }

    private func news(_ event: FleetNews.Event) -> PublishedNews {
        PublishedNews(event, SharedTimes(2_000, 3_000, clock))
    }

    private var events: [FleetNews.Event] {
        let invalidation = Invalidation(
            of: "a",
            paths: ["/x"],
            objects: [BoundObject(model: "User", identity: "1")],
            principals: ["p-1"],
            at: 3_000
        )
        let pattern = (try? RoutePattern("users/*/issues")).map { InvalidationPattern(base: "/v1", pattern: $0) }
        let named = Invalidation(
            of: nil,
            patterns: [pattern].compactMap(\.self),
            objects: [BoundObject(model: "User", keys: ["a", "b"]), BoundObject(model: "")],
            at: 3_000
        )
        var clean = SharedClean()
        clean.model = "User"
        return [
            .suspect(.max, invalidation), .wrote(1, invalidation), .withdrawn(2), .invalidated(invalidation),
            .cleaned(clean), .observed(observation), .wrote(3, invalidation, shown: written), .invalidated(named),
            .suspect(0, named),
        ]
    }

    @Test func `news are read as they were written, with their times widened`() throws {
        for event in events {
            let found = try PublishedNews(news(event).encoded)
            #expect(found == news(event))
            let local = found.local(clock, now: 9_000)
            #expect(local.start <= 2_000 && local.start > 1_900 && local.end >= 3_000 && local.end < 3_100)
            if case .wrote(_, _, let shown) = local.event { #expect(shown == nil || shown == written) }
            // What shows values says in which fetch, by the clock of the machine that has fetched.
            let fetch = SharedFetch(sender: [7], url: observation.url, start: 2_000)
            var isObserved = false
            if case .observed = event { isObserved = true }
            #expect(local.fetch == nil)
            #expect(found.local(clock, now: 9_000, from: [7]).fetch == (isObserved ? fetch : nil))
            // It was over when it was read.
            #expect(found.local(clock, now: 2_500).end == 2_500)
        }
    }

    @Test func `news of an earlier epoch count as events that happened at any time until now`() throws {
        for event in events {
            let local = try PublishedNews(news(event).encoded).local(nil, now: 9_000)
            #expect(local.start == 0 && local.end == 9_000)
        }
    }

    @Test func `news that are cut short are not read`() {
        for event in events {
            let bytes = news(event).encoded
            for count in bytes.indices {
                #expect(throws: (any Error).self) { try PublishedNews(Array(bytes[..<count])) }
            }
        }
    }

    @Test func `news that are too large make everything outdated`() {
        var large = observation
        large.objects[0].payload = [UInt8](repeating: 0x20, count: PublishedNews.byteLimit)
        let bounded = PublishedNews.bounded(FleetNews(.observed(large), start: 1, end: 2), of: "a")
        #expect(bounded == FleetNews(.invalidated(Invalidation(of: "a", at: 2)), start: 1, end: 2))
        let paths = Set((0..<20_000).map { "/\($0)" })
        let write = FleetNews(.wrote(5, Invalidation(of: "a", paths: paths, at: 2)), start: 1, end: 2)
        #expect(PublishedNews.bounded(write, of: "a").event == .wrote(5, Invalidation(of: "a", at: 2)))
        let invalidation = Invalidation(of: "a", paths: ["/x"], at: 2)
        // Without the values, a write makes no more outdated than it does.
        let valued = FleetNews(.wrote(6, invalidation, shown: large), start: 1, end: 2)
        #expect(PublishedNews.bounded(valued, of: "a").event == .wrote(6, invalidation))
        let small = FleetNews(.observed(observation), start: 1, end: 2)
        #expect(PublishedNews.bounded(small, of: "a") == small)
    }

    @Test func `a document is read as it was written, with its times widened`() throws {
        let document = SharedDocument(
            status: 200,
            head: Array("A: b".utf8),
            body: [0, 1],
            variant: [],
            sent: 2_000,
            completed: 3_000,
            lifetime: 60,
            objects: [ObjectName(model: "User", identity: "1")]
        )
        let times = SharedTimes(2_000, 3_000, clock)
        let written = PublishedDocument(document: document, times: times, position: EntryID(5, 6)).encoded
        let found = try PublishedDocument(written, clock)
        #expect(found.position == EntryID(5, 6) && found.times == times)
        #expect(found.document.sent <= 2_000 && found.document.completed >= 3_000)
        var same = found.document
        (same.sent, same.completed) = (2_000, 3_000)
        #expect(same == document)
        for count in written.indices {
            #expect(throws: (any Error).self) { try PublishedDocument(Array(written[..<count]), clock) }
        }
    }
}
