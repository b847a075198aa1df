import Foundation
import TestSupport
import Testing

@Suite(.scripts) struct SoakTests {
    @Test(.enabled(if: SoakOptions.current != nil, "make soak runs it"))
    func `in millions of steps every response is one that the laws allow`() throws {
        let options = try #require(SoakOptions.current)
        #expect(SoakCampaign(options: options).run().isEmpty, "what fails is told above")
    }
}
