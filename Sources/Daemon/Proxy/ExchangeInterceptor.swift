package import HTTPServer
package import Store

/// Intercepts requests ahead of the cache, once their upstream and principal are known: recordings and replays.
///
/// Any thread.
package protocol ExchangeInterceptor: AnyObject, Sendable {
    /// Whether it intercepts requests now; otherwise the cache serves them.
    var isActive: Bool { get }

    /// Takes a request over: serves it, or passes it on with `proxy.accept`.
    func received(_ incoming: IncomingRequest, _ reply: Reply, _ proxy: ProxyCore)

    /// The response to a plain GET without credentials; nil if `received` decides.
    ///
    /// - Parameter digest: of the request's cache key, as an anonymous one's.
    func ready(at digest: Digest128) -> ReadyResponse?
}

extension ExchangeInterceptor {
    package func ready(at digest: Digest128) -> ReadyResponse? { nil }
}
