import Store
import Testing

@testable import Proxy
@testable import Settings

@Suite struct InvalidationLogTests {
    @Test func `a token distinguishes a write to its URL, a write elsewhere, and no write`() throws {
        let upstream = try ProxyFixture.upstream()
        let other = try ProxyFixture.upstream { $0.name = "other" }
        let request = ProxyFixture.request("GET", "/x?page=2", of: upstream)
        var log = InvalidationLog()
        log.append(Invalidation(of: upstream.storeKey, paths: ["/x"], at: 1))
        let token = log.token
        #expect(log.change(since: token, for: request) == .none)
        log.append(Invalidation(of: other.storeKey, paths: ["/x"], at: 2))
        #expect(log.change(since: token, for: request) == .none)
        log.append(Invalidation(of: upstream.storeKey, paths: ["/y"], at: 3))
        log.append(Invalidation(of: upstream.storeKey, paths: ["/z"], at: 4))
        #expect(log.change(since: token, for: request) == .written(at: 3))
        log.append(Invalidation(of: upstream.storeKey, paths: ["/x"], at: 5))
        #expect(log.change(since: token, for: request) == .invalidated)
        #expect(log.change(since: log.token, for: request) == .none)
    }

    @Test func `a clean of one principal does not concern others, and applies if the principal is unknown`() throws {
        let upstream = try ProxyFixture.upstream()
        let request = ProxyFixture.request(of: upstream)
        func change(_ label: String?) -> InvalidationLog.Change {
            var log = InvalidationLog { _ in label }
            let token = log.token
            log.append(Invalidation(of: upstream.storeKey, principals: ["ada"], at: 1))
            return log.change(since: token, for: request)
        }
        #expect(change("ada") == .invalidated)
        #expect(change("bob") == .none)
        #expect(change(nil) == .invalidated)
    }

    @Test func `a clean invalidates everything, and a write of unknown effect its upstream`() throws {
        let upstream = try ProxyFixture.upstream()
        let other = try ProxyFixture.upstream {
            $0.name = "other"
            $0.url = try .init("https://other.example.com")
        }
        let (one, two) = (ProxyFixture.request(of: upstream), ProxyFixture.request(of: other))
        var log = InvalidationLog()
        let token = log.token
        log.append(Invalidation(of: upstream.storeKey, at: 1))
        #expect(log.change(since: token, for: one) == .invalidated)
        #expect(log.change(since: token, for: two) == .none)
        log.append(Invalidation(of: nil, at: 2))
        #expect(log.change(since: token, for: two) == .invalidated)
    }

    @Test func `for a token older than the log, everything counts as invalidated`() throws {
        let upstream = try ProxyFixture.upstream()
        let request = ProxyFixture.request(of: upstream)
        var log = InvalidationLog()
        let old = log.token
        for time in 0..<20_000 { log.append(Invalidation(of: upstream.storeKey, paths: ["/y"], at: Int64(time))) }
        #expect(log.change(since: old, for: request) == .invalidated)
        let new = log.token
        log.append(Invalidation(of: upstream.storeKey, paths: ["/y"], at: 20_000))
        #expect(log.change(since: new, for: request) == .written(at: 20_000))
    }

    @Test func `a response requested before an invalidation of its URL, or before the log begins, may be covered`()
        throws
    {
        let upstream = try ProxyFixture.upstream()
        let request = ProxyFixture.request("GET", "/x", of: upstream)
        var log = InvalidationLog(since: 10)
        #expect(log.mayCover(request, requestedAt: 10) && !log.mayCover(request, requestedAt: 11))
        log.append(Invalidation(of: upstream.storeKey, paths: ["/y"], at: 30))
        log.append(Invalidation(of: upstream.storeKey, paths: ["/x"], at: 20))
        #expect(log.mayCover(request, requestedAt: 20) && !log.mayCover(request, requestedAt: 21))
        for _ in 0..<20_000 { log.append(Invalidation(of: upstream.storeKey, paths: ["/y"], at: 40)) }
        #expect(log.mayCover(request, requestedAt: 40) && !log.mayCover(request, requestedAt: 41))
    }
}
