import CCurl

/// Whether the server said that it ends a TLS connection, by a closure alert (RFC 8446 §6.1).
///
/// libcurl takes a connection that ends without the alert for one that ended in order. So OpenSSL itself is asked: anybody on the
/// way can end a TCP connection, but only the server can send the alert. For the upstream loop's thread.
final class CurlClosure {
    private(set) var isAnnounced = false

    /// Watches the connection that a handle uses at present; call it from one of the handle's callbacks.
    ///
    /// - Returns: nil if the connection has no TLS. With a TLS library other than OpenSSL, no closure counts as announced.
    static func watching(_ easy: UnsafeMutableRawPointer) -> CurlClosure? {
        var pointer: UnsafeMutableRawPointer?
        guard larder_easy_get_pointer(easy, CURLINFO_TLS_SSL_PTR, &pointer) == CURLE_OK,
            let session = pointer?.assumingMemoryBound(to: curl_tlssessioninfo.self).pointee,
            let internals = session.internals
        else { return nil }
        let closure = CurlClosure()
        guard session.backend == CURLSSLBACKEND_OPENSSL else { return closure }
        let ssl = OpaquePointer(internals)
        if let known = SSL_get_ex_data(ssl, index) { return from(known) }
        // Taken back by `index`'s function, when OpenSSL frees the session: libcurl may keep that longer than the transfer.
        SSL_set_ex_data(ssl, index, Unmanaged.passRetained(closure).toOpaque())
        SSL_set_info_callback(ssl) { ssl, event, alert in
            guard event & SSL_CB_READ_ALERT == SSL_CB_READ_ALERT, alert & 0xFF == SSL_AD_CLOSE_NOTIFY,
                let closure = SSL_get_ex_data(ssl, CurlClosure.index)
            else { return }
            CurlClosure.from(closure).isAnnounced = true
        }
        return closure
    }

    /// The place of this object among a session's data.
    private static let index = CRYPTO_get_ex_new_index(
        CRYPTO_EX_INDEX_SSL,
        0,
        nil,
        nil,
        nil,
        { _, closure, _, _, _, _ in if let closure { Unmanaged<CurlClosure>.fromOpaque(closure).release() } }
    )

    private static func from(_ context: UnsafeMutableRawPointer) -> CurlClosure {
        Unmanaged<CurlClosure>.fromOpaque(context).takeUnretainedValue()
    }
}
