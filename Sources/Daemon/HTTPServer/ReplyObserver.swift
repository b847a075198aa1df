package import HTTPSemantics

/// What sees the response that a client is given, as it is given: for recordings and the access log.
///
/// Called on the thread that gives the response, in its order.
package protocol ReplyObserver: AnyObject, Sendable {
    /// The response begins.
    ///
    /// - Parameter length: of its body, where that is known.
    func began(status: Int, fields: Fields, length: Int?)
    /// The next bytes of its body.
    func wrote(_ bytes: [UInt8])
    /// It is complete.
    func finished()
    /// It breaks off, or there is none.
    func aborted()
    /// Whether the response is completed for it although the client has left.
    var outlivesClient: Bool { get }
}

extension ReplyObserver {
    package var outlivesClient: Bool { true }
}

extension ReplyChannel.Operation {
    func report(to observer: any ReplyObserver) {
        switch self {
        case .informational: break
        case .start(let status, _, let fields, let framing):
            let length: Int? = if case .length(let length) = framing { length } else { nil }
            observer.began(status: status, fields: fields, length: length)
        case .write(let bytes): observer.wrote(bytes)
        case .finish: observer.finished()
        case .abort, .drop: observer.aborted()
        }
    }
}

extension Reply {
    /// Reports the response to an observer from now on; to be called before it begins.
    package func observe(_ observer: any ReplyObserver) { channel.observe(observer) }
}
