import Testing

@testable import HTTPSemantics

@Suite struct CollectedBodyTests {
    private static func body(_ pieces: [[UInt8]]) -> RequestBody {
        let body = RequestBody(declaredLength: nil, window: 1 << 20) {}
        for piece in pieces { body.append(piece) }
        body.complete()
        return body
    }

    @Test func `a body within the limit is collected`() async throws {
        #expect(try await Self.body([[1], [2, 3]]).collectUnlessLarger(than: 3) == [1, 2, 3])
        #expect(try await Self.body([]).collectUnlessLarger(than: 0) == [])
    }

    @Test(arguments: 0...4) func `a body larger than the limit can still be read from its beginning`(limit: Int)
        async throws
    {
        let body = Self.body([[1], [2, 3], [4], [5]])
        #expect(try await body.collectUnlessLarger(than: limit) == nil)
        #expect(try await body.collect(limit: 5) == [1, 2, 3, 4, 5])
    }

    @Test func `bytes that arrive after the limit was exceeded are read after the earlier ones`() async throws {
        let body = RequestBody(declaredLength: nil, window: 1 << 20) {}
        body.append([1, 2])
        #expect(try await body.collectUnlessLarger(than: 1) == nil)
        body.append([3])
        body.complete()
        #expect(try await body.collect(limit: 3) == [1, 2, 3])
    }

    @Test func `a body that breaks off is not collected`() async {
        let body = RequestBody(declaredLength: 5, window: 1 << 20) {}
        body.append([1])
        body.fail(.disconnected)
        await #expect(throws: RequestBodyError.disconnected) { try await body.collectUnlessLarger(than: 5) }
    }
}
