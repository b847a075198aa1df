import Synchronization

@testable import HTTPSemantics

extension RequestBody {
    /// A body that a test fills by hand; the connection never stops reading.
    convenience init(length: Int?, _ bytes: [UInt8] = [], ended: Bool = false) {
        self.init(declaredLength: length, window: .max) {}
        if !bytes.isEmpty { append(bytes) }
        if ended { complete() }
    }

    /// A whole body at once.
    convenience init(_ text: String) { self.init(Array(text.utf8)) }
}

/// A client that sends a body as fast as it is taken.
final class EagerClient: Sendable {
    private let size: Int
    private let state = Mutex<(body: RequestBody?, sent: Int)>((nil, 0))

    init(size: Int) { self.size = size }

    /// The number of bytes sent.
    var sent: Int { state.withLock { $0.sent } }

    /// Begins the body.
    func body() -> RequestBody {
        let body = RequestBody(declaredLength: size, window: 1 << 20) { self.send() }
        state.withLock { $0.body = body }
        return body
    }

    private func send() {
        while let body = state.withLock({ $0.sent < size ? $0.body : nil }), body.hasRoom {
            let count = min(64 << 10, size - sent)
            state.withLock { $0.sent += count }
            body.append([UInt8](repeating: 7, count: count))
            if sent == size {
                body.complete()
                state.withLock { $0.body = nil }
            }
        }
    }
}
