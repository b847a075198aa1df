import Testing

@testable import Proxy
@testable import Settings

@Suite struct InvalidationLogTests {
    @Test func `a token distinguishes a write to the URL, one elsewhere, and none`() throws {
        let upstream = try ProxyFixture.upstream()
        let other = try ProxyFixture.upstream { $0.name = "other" }
        let request = ProxyFixture.request("GET", "/x?page=2", of: upstream)
        var log = InvalidationLog()
        log.note(Invalidation(["/x"], of: upstream), at: 1)
        let token = log.token
        #expect(log.change(since: token, for: request) == .none)
        log.note(Invalidation(["/x"], of: other), at: 2)
        #expect(log.change(since: token, for: request) == .none)
        log.note(Invalidation(["/y"], of: upstream), at: 3)
        log.note(Invalidation(["/z"], of: upstream), at: 4)
        #expect(log.change(since: token, for: request) == .written(at: 3))
        log.note(Invalidation(["/x"], of: upstream), at: 5)
        #expect(log.change(since: token, for: request) == .invalidated)
        #expect(log.change(since: log.token, for: request) == .none)
    }

    @Test func `a write concerns its upstream whatever configuration a request began with`() throws {
        let (former, current) = (try ProxyFixture.upstream(), try ProxyFixture.upstream { $0.shared = true })
        let request = ProxyFixture.request("GET", "/x", of: current)
        var log = InvalidationLog()
        let token = log.token
        log.note(Invalidation(["/x"], of: former), at: 1)
        #expect(log.change(since: token, for: request) == .invalidated)
    }

    @Test func `a clean outdates everything, and a write of unknown effect its upstream`() throws {
        let upstream = try ProxyFixture.upstream()
        let other = try ProxyFixture.upstream {
            $0.name = "other"
            $0.url = try .init("https://other.example.com")
        }
        let (one, two) = (ProxyFixture.request(of: upstream), ProxyFixture.request(of: other))
        var log = InvalidationLog()
        let token = log.token
        log.noteAll(of: upstream)
        #expect(log.change(since: token, for: one) == .invalidated)
        #expect(log.change(since: token, for: two) == .none)
        log.noteClean()
        #expect(log.change(since: token, for: two) == .invalidated)
    }

    @Test func `to a token from before the oldest entry everything is outdated`() throws {
        let upstream = try ProxyFixture.upstream()
        let request = ProxyFixture.request(of: upstream)
        var log = InvalidationLog()
        let old = log.token
        for time in 0..<20_000 { log.note(Invalidation(["/y"], of: upstream), at: Int64(time)) }
        #expect(log.change(since: old, for: request) == .invalidated)
        let new = log.token
        log.note(Invalidation(["/y"], of: upstream), at: 20_000)
        #expect(log.change(since: new, for: request) == .written(at: 20_000))
    }
}
