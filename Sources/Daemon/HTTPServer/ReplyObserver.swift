package import HTTPSemantics

/// What sees the response that a client is given, as it is given: for recordings.
///
/// Called on the thread that gives the response, in its order.
package protocol ReplyObserver: AnyObject, Sendable {
    /// The response begins.
    func began(status: Int, fields: Fields)
    /// The next bytes of its body.
    func wrote(_ bytes: [UInt8])
    /// It is complete.
    func finished()
    /// It breaks off, or there is none.
    func aborted()
}

extension ReplyChannel.Operation {
    func report(to observer: any ReplyObserver) {
        switch self {
        case .informational: break
        case .start(let status, _, let fields, _): observer.began(status: status, fields: fields)
        case .write(let bytes): observer.wrote(bytes)
        case .finish: observer.finished()
        case .abort, .drop: observer.aborted()
        }
    }
}

extension Reply {
    /// Has somebody told of the response from now on; before it begins.
    package func observe(_ observer: any ReplyObserver) { channel.observe(observer) }
}
