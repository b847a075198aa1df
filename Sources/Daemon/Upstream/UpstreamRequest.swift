package import HTTPSemantics

/// One request to an upstream.
package struct UpstreamRequest: Sendable {
    var method: String
    /// An absolute `http` or `https` URL; path and query are sent as they are spelled here.
    var url: String
    /// Sent in this order, but for hop-by-hop and framing fields, which are left out; `Host` overrides the URL's.
    package var fields: Fields
    var body: (any UpstreamBody)?
    /// The path of a Unix socket to connect to instead of the URL's host.
    var unixSocket: String?
    /// Whether content codings are offered to the upstream and taken off its response.
    ///
    /// With false the request's own `Accept-Encoding` goes upstream and the body is passed on as it comes: for ranges.
    var decodes = true
    /// Whose request it is, for a fair share of what is limited.
    package var client = UpstreamSlots.Client()

    /// The slots that it takes one of.
    var slotKind: UpstreamSlots.Kind { body.map { $0.isComplete ? .exchange : .upload } ?? .exchange }

    package init(
        method: String,
        url: String,
        fields: Fields = Fields(),
        body: (any UpstreamBody)? = nil,
        unixSocket: String? = nil,
        decodes: Bool = true
    ) {
        self.method = method
        self.url = url
        self.fields = fields
        self.body = body
        self.unixSocket = unixSocket
        self.decodes = decodes
    }

    /// Whether the request changes nothing at the upstream, so that it may be sent twice (RFC 9110 §9.2.1).
    ///
    /// A method that Larder does not know is unsafe.
    var isSafe: Bool { MethodFacts.isSafe(method) }

    /// Scheme and authority of the URL, by which connections are shared.
    var origin: Substring {
        guard let authority = url.firstRange(of: "://")?.upperBound else { return url[...] }
        let end = url[authority...].firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? url.endIndex
        return url[..<end]
    }
}

/// A request's body on its way upstream, which arrives while it is being sent.
package protocol UpstreamBody: AnyObject, Sendable {
    /// The length that the client declared; nil when it comes in chunks.
    var declaredLength: Int? { get }

    /// Whether all of it has arrived.
    var isComplete: Bool { get }

    /// The next bytes, at most `max` of them.
    func take(max: Int) -> UpstreamBodyPart

    /// Calls back once there may be more to take after `.pending`; perhaps at once, on any thread.
    func onAvailable(_ notify: @escaping @Sendable () -> Void)
}

/// What a request's body has to give at one moment.
package enum UpstreamBodyPart: Sendable {
    case bytes([UInt8])
    /// Nothing now; `onAvailable` calls back when to ask again.
    case pending
    /// Nothing more: the body is whole.
    case end
    /// The body will never be whole: the client left or broke off.
    case failed(String)
}

/// Feeds a request's body to libcurl, once.
///
/// The upstream loop only, but for the body itself, which is filled from elsewhere.
struct RequestBodySender {
    private let body: any UpstreamBody
    /// Bytes taken from the body so far.
    private(set) var taken = 0
    /// Whether all of the body has been taken.
    private(set) var hasEnded = false

    init(_ body: any UpstreamBody) {
        self.body = body
    }

    var declaredLength: Int? { body.declaredLength }

    /// What the body has to say after a look at it.
    enum Step {
        case bytes(Int)
        case end
        case pending
        case failed(String)
    }

    /// Fills the room with what comes next; `available` is called, on any thread, when there is more after `.pending`.
    mutating func fill(
        _ room: UnsafeMutableRawBufferPointer,
        available: @escaping @Sendable () -> Void
    ) -> Step {
        if hasEnded { return .end }
        let step = take(into: room)
        guard case .pending = step else { return step }
        body.onAvailable(available)
        // Looked at again: what came between the look and the registration would otherwise wake nobody.
        return take(into: room)
    }

    private mutating func take(into room: UnsafeMutableRawBufferPointer) -> Step {
        switch body.take(max: room.count) {
        case .bytes(let bytes):
            if let length = declaredLength, taken + bytes.count > length {
                return .failed("it is longer than declared")
            }
            room.copyBytes(from: bytes)
            taken += bytes.count
            return .bytes(bytes.count)
        case .pending:
            return .pending
        case .end:
            if let length = declaredLength, taken != length { return .failed("it is shorter than declared") }
            hasEnded = true
            return .end
        case .failed(let reason):
            return .failed(reason)
        }
    }
}
