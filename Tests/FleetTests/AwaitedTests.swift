import Testing

@testable import Fleet

/// Values that come, or do not come in time.
struct AwaitedTests {
    @Test func `a wait for a value that does not come ends at its own time limit, whatever other waits there are`()
        async
    {
        await withTaskGroup { group in
            for milliseconds in [400, 1, 200, 0, 300, 100, 2, 200] {
                group.addTask {
                    let limit = Duration.milliseconds(milliseconds)
                    let begun = ContinuousClock.now
                    #expect(await Awaited<Int>().value(within: limit) == nil)
                    #expect(begun.duration(to: .now) >= limit)
                }
            }
        }
    }

    @Test func `a wait returns the first value given, even if it was given before the wait began`() async {
        let (early, late) = (Awaited<Int>(), Awaited<Int>())
        early.give(1)
        early.give(2)
        #expect(await early.value(within: .seconds(3600)) == 1)
        Task { late.give(3) }
        #expect(await late.value(within: .seconds(3600)) == 3)
    }
}
