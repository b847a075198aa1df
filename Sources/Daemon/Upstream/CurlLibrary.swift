import CCurl

/// libcurl as a whole: its one-time initialisation and what this build of it can do.
enum CurlLibrary {
    /// Initialises libcurl once for the process; whoever makes a handle touches this first.
    static let isReady: Bool = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    /// The content codings that this libcurl decodes, as a value for `Accept-Encoding`.
    ///
    /// gzip and deflate are there in every build that Larder accepts; br and zstd depend on the distribution.
    static let contentCodings: String = {
        let features = Features.ofThisBuild
        var codings = features.contains(.gzip) ? ["gzip", "deflate"] : []
        if features.contains(.brotli) { codings.append("br") }
        if features.contains(.zstd) { codings.append("zstd") }
        return codings.joined(separator: ", ")
    }()

    /// The version that is linked, for messages.
    static var version: String { String(cString: curl_version()) }

    /// Abilities that depend on how libcurl was built.
    struct Features: OptionSet, Sendable {
        let rawValue: Int32

        static let gzip = Features(rawValue: CURL_VERSION_LIBZ)
        static let brotli = Features(rawValue: CURL_VERSION_BROTLI)
        static let zstd = Features(rawValue: CURL_VERSION_ZSTD)
        static let http2 = Features(rawValue: CURL_VERSION_HTTP2)

        static let ofThisBuild = Features(rawValue: curl_version_info(CURLVERSION_TENTH).pointee.features)
    }
}
