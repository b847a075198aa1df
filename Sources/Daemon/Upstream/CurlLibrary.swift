import CCurl

/// libcurl as a whole: its one-time initialisation and what this build of it can do.
enum CurlLibrary {
    /// Initialises libcurl once for the process; whoever makes a handle touches this first.
    static let isReady: Bool = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    /// The version that is linked, for messages.
    static var version: String { String(cString: curl_version()) }
}
