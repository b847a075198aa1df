import Settings
import Store
import TestSupport
import Testing

@testable import Proxy

struct PrincipalsTests {
    @Test func `an id that the store has forgotten is nobody's from then on`() async throws {
        let folder = TemporaryFolder()
        var configuration = Configuration().storeConfiguration(path: folder.file(), models: [:])
        configuration.unusedPrincipals = 4
        let (store, _) = try ObjectStore.open(configuration)
        let principals = PrincipalResolver(key: try PrincipalKey.open(path: folder.file("principal.key")), store: store)
        store.setListener(ChangeListeners(principals))
        let upstream = try ProxyFixture.upstream()
        func identify(_ token: Int) async throws -> PrincipalID {
            let text = Array("authorization: \(token)".utf8)
            let quick = PrincipalResolver.digest(ofLines: text, upstream, ProxyFixture.hasher)
            return try await principals.identify(text, quick: quick, of: upstream)
        }
        let quick = PrincipalResolver.digest(ofLines: Array("authorization: 1".utf8), upstream, ProxyFixture.hasher)
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
