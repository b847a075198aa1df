import Foundation
import TestSupport
import Testing

@Suite(.scripts) struct SoakTests {
    @Test(.enabled(if: SoakOptions.current != nil, "make soak runs it"))
    func `millions of steps, each answered as the laws allow`() throws {
        let options = try #require(SoakOptions.current)
        #expect(SoakCampaign(options: options).run().isEmpty, "what fails is told above")
    }
}
