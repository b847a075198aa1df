import Testing

@testable import Admin

@Suite struct StoreTimeTests {
    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (1_795_254_753_250_999, "2026-11-21T09:52:33.250Z"),
            (1_078_012_800_000_000, "2004-02-29T00:00:00.000Z"), (-5, "1970-01-01T00:00:00.000Z"),
        ] as [(Int64, String)]
    )
    func `times are RFC 3339 in UTC`(microseconds: Int64, written: String) {
        #expect(StoreTime.text(microseconds) == written)
    }
}
