package import HTTPSemantics

/// Whether the next piece of a body may follow.
package enum Flow: Sendable, Equatable {
    case proceed
    /// The piece just offered was not taken; it is offered again after `Transfer.resume()`.
    case pause
}

/// Who is told of an upstream's response, always on the upstream loop.
///
/// The order is: any number of interim responses, the head, pieces of body, and in every case `completed`, once, as the last call.
/// From each of them `resume()`, `cancel()` and new requests are allowed; none of the calls comes from within one of those.
package protocol TransferDelegate: AnyObject {
    /// An interim response (102, 103 …); 100 is kept back, being between Larder and the upstream.
    func informational(status: Int, fields: Fields)
    /// The final response's head.
    func received(head: UpstreamHead)
    /// A piece of the body, decoded; the bytes are valid during the call only.
    func received(body: UnsafeRawBufferPointer) -> Flow
    /// The end: the whole response has been received, or it failed.
    func completed(_ result: Result<TransferSummary, UpstreamError>)
}

/// Facts about a transfer that went well.
package struct TransferSummary: Sendable, Equatable {
    /// Bytes of body given to the delegate.
    var bodyBytes: Int
    /// Bytes of body as they came over the wire, before decoding.
    var wireBytes: Int
    /// Whether a connection from the pool served it.
    var reusedConnection: Bool
    /// How often the request was sent; more than once only for a safe one whose pooled connection died.
    var attempts: Int
    /// Whether the body's content coding came to its end, checksum included, and did not break off in a message that is whole.
    package var isCodingWhole = true
}
