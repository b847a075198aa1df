import DaemonTestSupport
import Testing

@testable import CachePolicy
@testable import HTTPSemantics

@Suite struct CacheStatusTests {
    @Test(
        arguments: [
            (.hit(), "larder; hit"),
            (.hit(timeToLive: 123), "larder; hit; ttl=123"),
            (.hit(timeToLive: -5, details: ["stale"]), "larder; hit; ttl=-5; detail=stale"),
            (.hit(timeToLive: .max), "larder; hit; ttl=999999999999999"),
            (.forwarded(.uriMiss, isStored: true), "larder; fwd=uri-miss; stored"),
            (.forwarded(.varyMiss), "larder; fwd=vary-miss"),
            (.forwarded(.stale, status: 304, isStored: true), "larder; fwd=stale; fwd-status=304; stored"),
            (.forwarded(.miss, isStored: true, isCollapsed: true), "larder; fwd=miss; stored; collapsed"),
            (.forwarded(.method), "larder; fwd=method"), (.refused("offline"), "larder; detail=offline"),
            (.hit(details: ["not a token"]), "larder; hit; detail=\"not a token\""),
            (.hit(details: ["a\"b\\c"]), "larder; hit; detail=\"a\\\"b\\\\c\""),
            (.hit(details: ["429"]), "larder; hit; detail=\"429\""),
            (.hit(details: [""]), "larder; hit; detail=\"\""),
        ] as [(CacheStatus, String)]
    )
    func `a Cache-Status member is written in the order of RFC 9211`(_ status: CacheStatus, _ expected: String) {
        #expect(status.text == expected)
    }

    @Test func `details are joined in their order, and the cause of an inquiry comes first, once`() {
        var status = CacheStatus.forwarded(.stale)
        status.add(cause: nil)
        #expect(status.detail == nil)
        status.details += ["forced", "unwritable"]
        #expect(status.detail == "forced+unwritable")
        for _ in 0..<2 { status.add(cause: "no-cache") }
        #expect(status.detail == "no-cache+forced+unwritable")
        status = .forwarded(.request, isStored: true)
        status.add(cause: "request-max-age")
        #expect(status.text == "larder; fwd=request; stored; detail=request-max-age")
    }

    @Test func `Larder comes last in the list of caches`() {
        var (first, last) = (Fields(), fields(["cdn; fwd=miss", "", "b; hit"].map { ("cache-status", $0) }))
        CacheStatus.hit().append(to: &first)
        CacheStatus.hit().append(to: &last)
        #expect(first == ["Cache-Status": "larder; hit"])
        #expect(last == ["Cache-Status": "cdn; fwd=miss, b; hit, larder; hit"])
    }

    @Test(
        arguments: [
            (0, 60, "Age: 0\r\nCache-Status: larder; hit; ttl=60"),
            (1234, -10, "Age: 1234\r\nCache-Status: larder; hit; ttl=-10"),
            (-5, 0, "Age: 0\r\nCache-Status: larder; hit; ttl=0"),
            (Int64.max, Int64.min, "Age: 2147483648\r\nCache-Status: larder; hit; ttl=-2147483648"),
        ] as [(Int64, Int64, String)]
    )
    func `the fields of a hit are written into a buffer`(_ age: Int64, _ ttl: Int64, _ expected: String) {
        var buffer = [UInt8](repeating: 0xFF, count: HitFields.capacity)
        let count = buffer.withUnsafeMutableBytes { HitFields.write(age: age, timeToLive: ttl, into: $0) }
        #expect(text(Array(buffer[..<count])) == expected)
        #expect(buffer[count...].allSatisfy { $0 == 0xFF })
    }
}
