import Basics
import Logging
import Store
import Synchronization

/// A request for a response that no machine has shared: the response is shared once it is committed.
///
/// It exists as long as that is possible. If it ends without, the machines that wait for the response ask the upstream.
final class FleetFetch: Sendable {
    let key: SharedKey
    private let sharing: FleetSharing
    /// How far this machine had read the stream when the request was sent; nil if nothing is shared.
    private let position: FleetPosition?
    /// Whether other machines wait for the response.
    private let isAwaited: Bool
    private let state = Mutex(State.open)

    // Not private: the compiler (6.3.1) cannot lay it out in a mutex from other files if it is.
    enum State { case open, shared, unshareable }

    init(_ sharing: FleetSharing, _ key: SharedKey, isAwaited: Bool) {
        (self.sharing, self.key, self.isAwaited) = (sharing, key, isAwaited)
        position = sharing.link.position(in: key.upstream)
    }

    /// Shares the response, after its commit, and once the server has what it has shown: others would serve it before.
    func share(_ document: SharedDocument) async {
        guard let position, let announced = await sharing.announcedPosition(in: key.upstream),
            announced.epoch == position.epoch
        else { return }
        var document = document
        document.announced = announced
        state.withLock { $0 = .shared }
        sharing.link.share(document, at: key, from: position)
    }

    /// Notes that the response may not be shared, nor probably the next ones.
    func refuse() { state.withLock { if $0 == .open { $0 = .unshareable } } }

    deinit {
        let state = state.withLock { $0 }
        if isAwaited, state != .shared { sharing.link.release(key, isForNow: state == .open) }
    }
}
