package import HTTPServer

/// What is given requests ahead of the cache, once it is known where they go and on whose behalf: recordings and replays.
///
/// Any thread.
package protocol ExchangeInterceptor: AnyObject, Sendable {
    /// Whether it takes requests at the moment; otherwise they are the cache's.
    var isActive: Bool { get }

    /// Takes a request over: answers it, or passes it on with `proxy.accept`.
    func received(_ exchange: Exchange, _ incoming: IncomingRequest, _ proxy: ProxyCore)
}
