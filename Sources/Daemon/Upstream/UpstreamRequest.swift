package import HTTPSemantics

/// A request as it goes to an upstream.
package struct UpstreamRequest: Sendable {
    var method: String
    /// An absolute `http` or `https` URL; path and query are sent unchanged.
    var url: String
    /// The fields to send, in this order; hop-by-hop and framing fields are left out, and `Host` overrides the URL's.
    package var fields: Fields
    var body: RequestBody?
    /// The path of a Unix socket to connect to instead of the URL's host.
    var unixSocket: String?
    /// Whether content codings are offered to the upstream and removed from its response.
    ///
    /// If false, the request's own `Accept-Encoding` goes upstream and the body is passed on as received: for ranges.
    var decodes = true
    /// The codings that the client accepts, as its `Accept-Encoding` says.
    ///
    /// A body in one of them stays in it if the response says `no-transform`. Nil if nobody can use a coded body.
    package var clientCodings: [UInt8]?
    /// The time limits that differ from those of the client.
    package var timeouts = UpstreamTimeouts.Changes()
    /// The client that made the request, for a fair share of limited resources.
    package var client = UpstreamSlots.Client()

    var slotKind: UpstreamSlots.Kind { body.map { $0.isComplete ? .exchange : .upload } ?? .exchange }

    package init(
        method: String,
        url: String,
        fields: Fields = Fields(),
        body: RequestBody? = nil,
        unixSocket: String? = nil,
        decodes: Bool = true
    ) {
        self.method = method
        self.url = url
        self.fields = fields
        self.body = body
        (self.unixSocket, self.decodes) = (unixSocket, decodes)
    }

    /// Whether the request changes nothing at the upstream, so that it may be sent twice (RFC 9110 §9.2.1).
    ///
    /// Unknown methods count as unsafe.
    var isSafe: Bool { MethodFacts.isSafe(method) }

    /// Scheme and authority of the URL, by which connections are shared.
    var origin: Substring {
        // By bytes, because by characters it takes ten times as long.
        guard let colon = url.utf8.firstIndex(of: 0x3A), url.utf8[colon...].starts(with: "://".utf8) else {
            return url[...]
        }
        let authority = url.utf8.index(colon, offsetBy: 3)
        return url[..<(url.utf8[authority...].firstIndex { $0 == 0x2F || $0 == 0x3F || $0 == 0x23 } ?? url.endIndex)]
    }
}

/// Feeds a request body to libcurl, once; used on the upstream loop only; the body itself is filled from other threads.
struct RequestBodySender {
    private let body: RequestBody
    /// The number of bytes taken from the body so far.
    private(set) var taken = 0
    /// Whether the whole body has been taken.
    private(set) var hasEnded = false

    init(_ body: RequestBody) { self.body = body }

    var declaredLength: Int? { body.declaredLength }

    /// Fills `room` with the next bytes; `available` is called, on any thread, when there is more after `.pause`.
    mutating func fill(
        _ room: UnsafeMutableRawBufferPointer,
        available: @escaping @Sendable () -> Void
    ) throws(UpstreamError) -> CurlTransfer.Supply {
        if hasEnded { return .end }
        let step = try take(into: room)
        guard case .pause = step else { return step }
        body.onAvailable(available)
        // Taken again: bytes that arrived before the registration would not trigger the callback.
        return try take(into: room)
    }

    private mutating func take(into room: UnsafeMutableRawBufferPointer) throws(UpstreamError) -> CurlTransfer.Supply {
        switch body.take(max: room.count) {
        case .bytes(let bytes):
            if let length = declaredLength, taken + bytes.count > length {
                throw .requestBodyFailed("it is longer than declared")
            }
            room.copyBytes(from: bytes)
            taken += bytes.count
            return .bytes(bytes.count)
        case .pending: return .pause
        case .end:
            if let length = declaredLength, taken != length { throw .requestBodyFailed("it is shorter than declared") }
            hasEnded = true
            return .end
        case .failed(let error): throw .requestBodyFailed(error.reason)
        }
    }
}

extension RequestBodyError {
    fileprivate var reason: String {
        switch self {
        case .disconnected: "the client left"
        case .refused: "the client sent it malformed, too long or too slowly"
        case .overLimit: "it is too long"
        }
    }
}
