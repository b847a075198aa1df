import Mapping
import Proxy
import Store
import Testing

@testable import Fleet

/// Which shared documents are outdated.
struct RecentNewsTests {
    private static let minute: Int64 = 60_000_000
    private let key = SharedKey(upstream: "a", context: "", url: "/x?q", credentials: nil)
    private let other = [UInt8](repeating: 1, count: 16)
    private let publisher = [UInt8](repeating: 2, count: 16)

    private func known(_ id: UInt64, _ event: FleetNews.Event, end: Int64, from sender: [UInt8]? = nil)
        -> RecentNews.Known
    {
        let times = SharedTimes(start: end - 10, end: end, ownStart: end - 10, ownEnd: end)
        return .init(id: EntryID(id), sender: sender ?? other, news: PublishedNews(event, times))
    }

    private func wrote(_ id: UInt64, _ paths: Set<String> = ["/x"], end: Int64, from sender: [UInt8]? = nil)
        -> RecentNews.Known
    { known(id, .wrote(id, Invalidation(of: "a", paths: paths, at: end)), end: end, from: sender) }

    private func isOutdated(
        _ news: RecentNews,
        position: UInt64,
        sent: Int64,
        objects: [ObjectName] = [],
        ownSent: Int64? = nil
    ) -> Bool {
        let document = SharedDocument(
            status: 200,
            head: [],
            body: [],
            variant: [],
            sent: sent,
            completed: sent,
            lifetime: 1,
            objects: objects
        )
        let times = SharedTimes(start: sent, end: sent, ownStart: ownSent ?? sent, ownEnd: sent)
        let published = PublishedDocument(document: document, times: times, position: EntryID(position))
        return news.makesOutdated(published, from: publisher, at: key)
    }

    private func news(after floor: UInt64 = 0, _ entries: RecentNews.Known...) -> RecentNews {
        var news = RecentNews(after: EntryID(floor))
        for entry in entries { news.append(entry) }
        return news
    }

    @Test func `a write after the publisher's position makes its target outdated`() {
        let news = news(wrote(5, end: 100))
        #expect(isOutdated(news, position: 4, sent: 50))
        #expect(!isOutdated(news, position: 5, sent: 50))
        #expect(!isOutdated(self.news(wrote(5, ["/y"], end: 100)), position: 4, sent: 50))
    }

    @Test func `a response requested after the end of a write is not outdated by it`() {
        let news = news(wrote(5, end: 100))
        #expect(isOutdated(news, position: 4, sent: 100))
        #expect(!isOutdated(news, position: 4, sent: 101))
    }

    @Test func `times of one process are compared exactly`() {
        let news = news(wrote(5, end: 100, from: publisher))
        #expect(!isOutdated(news, position: 4, sent: 90, ownSent: 101))
        #expect(isOutdated(news, position: 4, sent: 110, ownSent: 100))
    }

    @Test func `an object makes each document outdated that shows it`() {
        let user = ObjectName(model: "User", identity: "1")
        let invalidation = Invalidation(of: "a", objects: [BoundObject(model: "User", identity: "1")], at: 100)
        let news = news(known(5, .invalidated(invalidation), end: 100))
        #expect(isOutdated(news, position: 4, sent: 50, objects: [user]))
        #expect(!isOutdated(news, position: 4, sent: 50, objects: [ObjectName(model: "User", identity: "2")]))
    }

    @Test func `a clean makes each document outdated that was requested before, whatever it shows`() {
        var clean = SharedClean()
        (clean.model, clean.identity) = ("Employee", "1")
        let news = news(known(5, .cleaned(clean), end: 100))
        // It may be the base of the cleaned object's model.
        #expect(isOutdated(news, position: 4, sent: 50, objects: [ObjectName(model: "User", identity: "1")]))
        #expect(!isOutdated(news, position: 4, sent: 101, objects: [ObjectName(model: "User", identity: "1")]))
    }

    @Test func `while a write is under way, no response that it may change is used`() {
        let suspect = known(5, .suspect(9, Invalidation(of: "a", paths: ["/x"], at: 100)), end: 100)
        let open = news(suspect)
        #expect(isOutdated(open, position: 7, sent: 150) && isOutdated(open, position: 3, sent: 50))
        // Without its end it counts as ended after a minute.
        #expect(isOutdated(open, position: 7, sent: 100 + Self.minute))
        #expect(!isOutdated(open, position: 7, sent: 101 + Self.minute))
        let invalidation = Invalidation(of: "a", paths: ["/x"], at: 200)
        let ended = news(suspect, known(6, .wrote(9, invalidation), end: 200))
        #expect(isOutdated(ended, position: 5, sent: 150) && !isOutdated(ended, position: 6, sent: 150))
        #expect(!isOutdated(news(suspect, known(6, .withdrawn(9), end: 200)), position: 5, sent: 150))
    }

    @Test func `a response shared before the oldest known news is not used`() {
        #expect(isOutdated(news(after: 4), position: 3, sent: 50) && !isOutdated(news(after: 4), position: 4, sent: 50))
        var many = RecentNews(after: .start)
        for number in 1...UInt64(RecentNews.capacity + 1) { many.append(wrote(number, ["/y"], end: Int64(number))) }
        #expect(many.floor > .start)
        #expect(isOutdated(many, position: many.floor.milliseconds - 1, sent: 50_000))
        #expect(!isOutdated(many, position: many.floor.milliseconds, sent: 50_000))
    }
}

/// News that wait for the server.
struct NewsQueueTests {
    private func write(_ number: UInt64, at time: Int64 = 1) -> FleetNews {
        FleetNews(.wrote(number, Invalidation(of: "a", paths: ["/\(number)"], at: time)), start: time, end: time)
    }

    private func suspect(_ number: UInt64, at time: Int64 = 1) -> FleetNews {
        FleetNews(.suspect(number, Invalidation(of: "a", paths: ["/\(number)"], at: time)), start: time, end: time)
    }

    private func events(_ queue: NewsQueue) -> [FleetNews] { queue.next(.max, without: []).map(\.news) }

    private func announceAll(_ queue: inout NewsQueue, at time: Int64) {
        let position = FleetPosition(epoch: 1, entry: EntryID(1, 1))
        let all = queue.waiting.map { ($0.number, position) }
        queue.wereAnnounced(Dictionary(uniqueKeysWithValues: all), at: time)
    }

    @Test func `news are announced in order, and an upstream that has to wait does not delay the others`() {
        var queue = NewsQueue()
        queue.append(write(1), in: "a")
        queue.append(write(2), in: "b")
        queue.append(write(3), in: "a")
        #expect(queue.next(2, without: []).map(\.number) == [1, 2])
        #expect(queue.next(2, without: ["a"]).map(\.number) == [2])
        queue.wereAnnounced([1: FleetPosition(epoch: 1, entry: EntryID(1, 1))], at: 5)
        #expect(queue.waiting.map(\.number) == [2, 3])
    }

    @Test func `a waiter gets the entry, or learns that the server is away`() async {
        var queue = NewsQueue()
        let (first, second, third) = (Awaited<FleetPosition>(), Awaited<FleetPosition>(), Awaited<FleetPosition>())
        queue.append(write(1), in: "a", waiter: first)
        queue.append(write(2), in: "a", waiter: second)
        let position = FleetPosition(epoch: 1, entry: EntryID(7, 0))
        queue.wereAnnounced([1: position], at: 5)
        #expect(await first.value(within: .seconds(60)) == position)
        let waits = [queue.wait(for: "a", third), queue.wait(for: "b", third)]
        #expect(waits == [true, false])
        let kept = [queue.file().count, queue.file().count]
        #expect(kept == [1, 0] && queue.waiting.count == 1)
        // What the file does not have is waited for.
        let last = Awaited<FleetPosition>()
        queue.append(write(3), in: "b", waiter: last)
        queue.stopWaiting()
        queue.wereAnnounced([3: position], at: 6)
        #expect(await last.value(within: .seconds(60)) == position)
        #expect(await second.value(within: .seconds(60)) == nil)
        #expect(await third.value(within: .seconds(60)) == nil)
    }

    @Test func `in a new epoch the news of the last ten minutes are announced again, before those that wait`() {
        var queue = NewsQueue()
        queue.append(write(1, at: 1), in: "a")
        announceAll(&queue, at: 1)
        queue.append(write(2), in: "a")
        queue.append(write(3), in: "b")
        announceAll(&queue, at: 100)
        queue.append(write(4), in: "a")
        queue.repeatAnnounced(in: "a", at: NewsQueue.memory + 50)
        #expect(events(queue) == [write(2), write(4)])
        queue.repeatAnnounced(in: "b", at: NewsQueue.memory + 50)
        #expect(events(queue) == [write(3), write(2), write(4)])
    }

    @Test func `of a write that has ended only the end is announced again`() {
        var queue = NewsQueue()
        for news in [suspect(1), write(1), suspect(2), suspect(3)] { queue.append(news, in: "a") }
        announceAll(&queue, at: 5)
        queue.append(write(3), in: "a")
        queue.repeatAnnounced(in: "a", at: 6)
        #expect(events(queue) == [write(1), suspect(2), write(3)])
    }

    @Test func `when the queue is full, an upstream's waiting news are replaced by one that invalidates all`() {
        var queue = NewsQueue()
        for number in 0..<NewsQueue.capacity { queue.append(write(UInt64(number)), in: number == 0 ? "b" : "a") }
        queue.append(write(70_000, at: 9), in: "a")
        #expect(queue.isCondensed && queue.waiting.count == 3)
        #expect(queue.waiting.map(\.upstream) == ["a", "b", "a"])
        #expect(queue.waiting[0].news.event == .invalidated(Invalidation(of: "a", at: 9)))
    }
}
