package import HTTPServer

/// Takes requests ahead of the cache, once their upstream and principal are known: recordings and replays.
///
/// Any thread.
package protocol ExchangeInterceptor: AnyObject, Sendable {
    /// Whether it takes requests at the moment; otherwise they are the cache's.
    var isActive: Bool { get }

    /// Takes a request over: answers it, or passes it on with `proxy.accept`.
    func received(_ exchange: Exchange, _ incoming: IncomingRequest, _ proxy: ProxyCore)
}
