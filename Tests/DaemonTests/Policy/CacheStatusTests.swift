import Testing

@testable import Daemon

@Suite struct CacheStatusTests {
    @Test(
        arguments: [
            (.hit(), "larder; hit"),
            (.hit(timeToLive: 123), "larder; hit; ttl=123"),
            (.hit(timeToLive: -5, detail: "stale"), "larder; hit; ttl=-5; detail=stale"),
            (.hit(timeToLive: .max), "larder; hit; ttl=999999999999999"),
            (.forwarded(.uriMiss, isStored: true), "larder; fwd=uri-miss; stored"),
            (.forwarded(.varyMiss), "larder; fwd=vary-miss"),
            (.forwarded(.stale, status: 304, isStored: true), "larder; fwd=stale; fwd-status=304; stored"),
            (.forwarded(.miss, isStored: true, isCollapsed: true), "larder; fwd=miss; stored; collapsed"),
            (.forwarded(.method), "larder; fwd=method"),
            (.hit(detail: "not a token"), "larder; hit; detail=\"not a token\""),
            (.hit(detail: "a\"b\\c"), "larder; hit; detail=\"a\\\"b\\\\c\""),
            (.hit(detail: "429"), "larder; hit; detail=\"429\""),
            (.hit(detail: ""), "larder; hit; detail=\"\""),
        ] as [(CacheStatus, String)]
    )
    func `a member is written in the order of RFC 9211`(_ status: CacheStatus, _ expected: String) {
        #expect(status.text == expected)
    }

    @Test func `Larder comes last in the list of caches`() {
        #expect(CacheStatus.hit().appended(to: []) == bytes("larder; hit"))
        #expect(
            CacheStatus.hit().appended(to: [bytes("cdn; fwd=miss"), [], bytes("b; hit")])
                == bytes("cdn; fwd=miss, b; hit, larder; hit")
        )
    }

    @Test(
        arguments: [
            (0, 60, nil, "Age: 0\r\nCache-Status: larder; hit; ttl=60\r\n"),
            (1234, -10, "stale", "Age: 1234\r\nCache-Status: larder; hit; ttl=-10; detail=stale\r\n"),
            (-5, 0, "composed", "Age: 0\r\nCache-Status: larder; hit; ttl=0; detail=composed\r\n"),
            (Int64.max, Int64.min, nil, "Age: 2147483648\r\nCache-Status: larder; hit; ttl=-2147483648\r\n"),
        ] as [(Int64, Int64, String?, String)]
    )
    func `the fields of a hit are written into a buffer`(
        _ age: Int64,
        _ ttl: Int64,
        _ detail: String?,
        _ expected: String
    ) {
        var buffer = [UInt8](repeating: 0xFF, count: HitFields.capacity)
        let details: [String: StaticString] = ["stale": "stale", "composed": "composed"]
        let count = buffer.withUnsafeMutableBytes {
            HitFields.write(age: age, timeToLive: ttl, detail: detail.flatMap { details[$0] }, into: $0)
        }
        #expect(text(Array(buffer[..<count])) == expected)
        #expect(buffer[count...].allSatisfy { $0 == 0xFF })
    }
}
