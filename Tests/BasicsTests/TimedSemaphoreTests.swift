import TestSupport
import Testing

@testable import Basics

@Suite(.scripts) struct TimedSemaphoreTests {
    @Test func `each signal lets one thread go on, also one that waits later`() {
        let semaphore = TimedSemaphore()
        #expect(!semaphore.wait(for: .zero))
        semaphore.signal()
        semaphore.signal()
        #expect(semaphore.wait(for: .zero) && semaphore.wait(until: .now + .seconds(3600)))
        #expect(!semaphore.wait(for: .milliseconds(1)) && !semaphore.wait(for: .seconds(-1)))
        let over = Monitor(0)
        for _ in 0..<3 {
            startThread {
                if semaphore.wait(for: .seconds(3600)) { over.withLock { $0 += 1 } }
            }
        }
        for number in 1...3 {
            semaphore.signal()
            #expect(over.wait { $0 == number })
        }
    }
}
