package import HTTPServer
package import Store

/// Takes requests ahead of the cache, once their upstream and principal are known: recordings and replays.
///
/// Any thread.
package protocol ExchangeInterceptor: AnyObject, Sendable {
    /// Whether it takes requests at the moment; otherwise they are the cache's.
    var isActive: Bool { get }

    /// Takes a request over: answers it, or passes it on with `proxy.accept`.
    func received(_ exchange: Exchange, _ incoming: IncomingRequest, _ proxy: ProxyCore)

    /// The responses that a plain GET without credentials of its own is given in turn; nil where `received` decides.
    ///
    /// - Parameter digest: of the request's cache key, as an anonymous one's.
    func sequence(at digest: Digest128) -> ReadySequence?
}

extension ExchangeInterceptor {
    package func sequence(at digest: Digest128) -> ReadySequence? { nil }
}
