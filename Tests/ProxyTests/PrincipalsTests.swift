import HTTPSemantics
import HTTPServer
import Settings
import TestSupport
import Testing

@testable import Proxy
@testable import Store

struct PrincipalsTests {
    @Test func `a principal whose id the store has forgotten gets a new one`() async throws {
        let folder = TemporaryFolder()
        var configuration = StoreConfiguration(Configuration(), path: folder.file(), [])
        configuration.unusedPrincipals = 4
        let (store, _) = try ObjectStore.open(configuration)
        let principals = PrincipalResolver(key: try PrincipalKey.open(path: folder.file("principal.key")), store: store)
        store.setListener(ChangeListeners(principals))
        let upstream = try ProxyFixture.upstream()
        func incoming(_ token: Int) throws -> IncomingRequest {
            var head = Array("GET /x HTTP/1.1\r\nHost: localhost\r\nAuthorization: \(token)\r\n\r\n".utf8)
            let parser = RequestParser(limits: HTTPLimits())
            return try head.withUnsafeMutableBufferPointer { buffer in
                guard case .complete = parser.parse(try #require(buffer.baseAddress), count: buffer.count)
                else { throw CancellationError() }
                return try IncomingRequest(parser.head, upstream)
            }
        }
        func identify(_ token: Int) async throws -> PrincipalID { try await principals.identify(try incoming(token)) }
        let quick = try #require(try incoming(1).credentialsDigest)
        let first = try await identify(1)
        #expect(principals.recognise(quick) == first)
        for token in 2...20 { _ = try await identify(token) }
        await store.flush()
        #expect(principals.recognise(quick) == nil)
        let again = try await identify(1)
        #expect(again != first)
        #expect(principals.recognise(quick) == again)
        await store.close()
    }
}
