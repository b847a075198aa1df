import CCurl
package import EventLoops
package import HTTPSemantics

/// An attempt to connect to an upstream, TLS and proxy included, without a request.
///
/// It has a connection pool of its own, so that what it finds does not depend on connections that exist. Used on the upstream loop
/// only; whoever drops it ends it, but not from within its callback.
package final class ConnectionProbe {
    private let multi: CurlMulti
    private var curl: CurlTransfer?

    /// - Parameters:
    ///   - url: any URL of the upstream.
    ///   - ended: called once, later.
    package init(
        to url: String,
        options: UpstreamOptions,
        loop: EventLoop,
        _ ended: @escaping (_ isConnected: Bool) -> Void
    ) {
        multi = CurlMulti(loop: loop, maxConnectionsPerHost: 0, maxIdleConnections: 1)
        let curl = CurlTransfer(owner: self)
        self.curl = curl
        multi.completed = { _, result in ended(result.isSuccess) }
        let request = UpstreamRequest(method: "GET", url: url)
        do throws(UpstreamError) {
            try curl.prepare(request, options: options, body: .none, waitsForMultiplexing: false)
        } catch {
            preconditionFailure("an upstream's URL cannot be asked: \(error)")
        }
        curl.set(CURLOPT_CONNECT_ONLY, true)
        _ = multi.add(curl)
    }

    deinit {
        if let curl { multi.remove(curl) }
    }
}

extension ConnectionProbe: CurlTransfer.Owner {
    func curlWillSend() -> Bool { true }
    func curlReceived(headLine: UnsafeRawBufferPointer) -> Bool { false }
    func curlReceived(body: UnsafeRawBufferPointer) -> CurlTransfer.Taking { .abort }
    func curlWantsBody(_ room: UnsafeMutableRawBufferPointer) -> CurlTransfer.Supply { .abort }
    func curlRewinds() -> Bool { false }
}
