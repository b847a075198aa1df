import Foundation
import TestSupport

/// Ends TLS in front of an origin, and passes on the bytes in both directions.
///
/// When the origin ends a connection in order, it ends it with a closure alert, or without (RFC 9112 §9.8). Python's `ssl` is the
/// one that has both, and it is at hand wherever the tests run.
final class TLSFront: Sendable {
    private let temporary = TemporaryFolder()
    private let process: TestProcess
    let port: UInt16
    /// The authority that clients have to trust.
    let caFile: String

    var url: String { "https://localhost:\(port)" }

    /// - Parameters:
    ///   - protocols: the protocols that it accepts, in its order (ALPN).
    ///   - announcesClosure: whether it sends a closure alert before it closes a connection.
    init(of port: UInt16, protocols: [String] = ["http/1.1"], announcesClosure: Bool = true) throws {
        let certificates = try TestCertificates(in: temporary.path)
        caFile = certificates.authority
        let arguments = [certificates.certificate, certificates.key, "\(port)", "\(announcesClosure ? 1 : 0)"]
        process = try TestProcess("python3", ["-c", Self.script] + arguments + protocols)
        guard process.waitForErrors(until: { $0.hasSuffix("\n") }),
            let port = UInt16(process.errors.trimmingCharacters(in: .whitespacesAndNewlines))
        else { throw Larder.DidNotStart(description: "the TLS front did not start: \(process.errors)") }
        self.port = port
    }

    /// The config of an upstream behind it; `keys` are added.
    func config(_ keys: String...) -> String {
        """
        upstreams:
          api:
            url: \(url)
            ca_file: \(caFile)
        \(keys.map { "    \($0)" }.joined(separator: "\n"))
        """
    }

    private static let script = #"""
        import select, socket, ssl, sys, threading
        certificate, key, target, alert, *protocols = sys.argv[1:]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        context.set_alpn_protocols(protocols)

        def send(tls, data):
            view = memoryview(data)
            while view:
                try: view = view[tls.send(view):]
                except ssl.SSLWantWriteError: select.select([], [tls], [])
                except ssl.SSLWantReadError: select.select([tls], [], [])

        def end(tls):
            if alert == "1":
                try: tls.unwrap()
                except (ssl.SSLError, OSError): pass
            try: tls.shutdown(socket.SHUT_WR)
            except OSError: pass

        def pump(raw):
            with raw, socket.create_connection(("127.0.0.1", int(target))) as plain:
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with context.wrap_socket(raw, server_side=True) as tls:
                    tls.setblocking(False)
                    sources = [tls, plain]
                    while plain in sources:
                        ready = [tls] if tls in sources and tls.pending() else select.select(sources, [], [])[0]
                        if tls in ready:
                            try: data = tls.recv(65536)
                            except ssl.SSLWantReadError: data = None
                            if data: plain.sendall(data)
                            elif data is not None:
                                sources.remove(tls)
                                plain.shutdown(socket.SHUT_WR)
                        if plain in ready:
                            data = plain.recv(65536)
                            if data: send(tls, data)
                            else:
                                sources.remove(plain)
                                end(tls)

        def serve(raw):
            try: pump(raw)
            except (ssl.SSLError, OSError): pass

        listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        print(listener.getsockname()[1], file=sys.stderr, flush=True)
        while True:
            raw = listener.accept()[0]
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=serve, args=(raw,), daemon=True).start()
        """#
}
