import Foundation
import TestSupport
import Testing

/// Random histories against a plain account of what an upstream of linked objects answers, and of what the laws allow a
/// cache to answer.
@Suite(.scripts) struct ReferenceModelTests {
    @Test(.enabled(if: SoakOptions.current == nil, "make soak runs other histories"), arguments: 1...12)
    func `in random histories every response is one that the laws allow`(seed: UInt64) throws {
        var soak = Soak()
        let failure = soak.run(seed: seed)
        #expect(failure == nil, "\(failure ?? "")")
        guard failure == nil else { return }
        // A history that shows nothing proves nothing.
        #expect(soak.figures.hits > 3, "\(soak.figures)")
    }
}
