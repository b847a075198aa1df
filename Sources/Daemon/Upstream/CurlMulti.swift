import CCurl
import EventLoops

/// libcurl's multi handle on an event loop: many transfers, one pool of connections.
///
/// Used on the loop's thread only. Sockets belong to this handle, not to the transfer that opened them: they outlive it in
/// the pool. libcurl runs callbacks inside its calls, and they must not call libcurl again; see `isInside`.
final class CurlMulti {
    /// Called for each finished transfer, when libcurl is off the stack and the transfer out of the handle.
    var completed: ((CurlTransfer, CurlResult) -> Void)?
    /// Called when libcurl has worked and is off the stack, after `completed` for the finished transfers.
    var worked: (() -> Void)?

    /// Whether libcurl is on the stack.
    private(set) var isInside = false

    private let loop: EventLoop
    private let handle: UnsafeMutableRawPointer
    /// The watch of each socket.
    ///
    /// One that libcurl does not want is disabled, because mostly the next transfer wants the same.
    private var watches: [curl_socket_t: (watch: EventWatch, events: ReadyEvents)] = [:]
    private var timer: EventTimer!
    /// Calls libcurl when it wants that at once, as for every new transfer.
    private var ending: TurnEnding!

    /// - Parameters:
    ///   - maxConnectionsPerHost: The limit beyond which transfers wait; 0 for no limit.
    ///   - maxIdleConnections: The number of connections kept for reuse.
    init(loop: EventLoop, maxConnectionsPerHost: Int, maxIdleConnections: Int) {
        precondition(CurlLibrary.isReady, "libcurl could not be initialised")
        guard let handle = curl_multi_init() else { preconditionFailure("out of memory for libcurl") }
        (self.loop, self.handle) = (loop, handle)
        timer = EventTimer(loop: loop) { [unowned self] in act(on: CURL_SOCKET_TIMEOUT, mask: 0) }
        ending = TurnEnding(loop: loop) { [unowned self] in act(on: CURL_SOCKET_TIMEOUT, mask: 0) }
        let context = Unmanaged.passUnretained(self).toOpaque()
        larder_multi_set_socket_callback(handle, CURLMOPT_SOCKETFUNCTION) { _, socket, what, context, _ in
            CurlMulti.from(context).interestChanged(socket, what)
            return 0
        }
        larder_multi_set_pointer(handle, CURLMOPT_SOCKETDATA, context)
        larder_multi_set_timer_callback(handle, CURLMOPT_TIMERFUNCTION) { _, milliseconds, context in
            CurlMulti.from(context).timerChanged(milliseconds)
            return 0
        }
        larder_multi_set_pointer(handle, CURLMOPT_TIMERDATA, context)
        larder_multi_set_long(handle, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
        larder_multi_set_long(handle, CURLMOPT_MAX_HOST_CONNECTIONS, maxConnectionsPerHost)
        larder_multi_set_long(handle, CURLMOPT_MAXCONNECTS, maxIdleConnections)
    }

    deinit {
        loop.proveOwnership()
        // Closing the pool would call back into an object in deinit. A watch must be removed before its descriptor is closed.
        larder_multi_set_socket_callback(handle, CURLMOPT_SOCKETFUNCTION, nil)
        larder_multi_set_timer_callback(handle, CURLMOPT_TIMERFUNCTION, nil)
        watches.removeAll()
        ending.cancel()
        curl_multi_cleanup(handle)
    }

    // MARK: Calls into libcurl

    /// Adds a transfer; the loop takes its first step later.
    ///
    /// Must not be called while `isInside`. The caller keeps the transfer alive until it has completed or been removed.
    func add(_ transfer: CurlTransfer) -> Bool {
        entering { curl_multi_add_handle(handle, transfer.handle) == CURLM_OK }
    }

    /// Removes a transfer, cutting its connection if it has not finished; must not be called while `isInside`.
    func remove(_ transfer: CurlTransfer) {
        entering { _ = curl_multi_remove_handle(handle, transfer.handle) }
    }

    /// Sets which directions of a transfer are paused; a direction that resumes may call back at once.
    ///
    /// Must not be called while `isInside`.
    func pause(_ transfer: CurlTransfer, receiving: Bool, sending: Bool) {
        let mask = (receiving ? CURLPAUSE_RECV : 0) | (sending ? CURLPAUSE_SEND : 0)
        entering { _ = curl_easy_pause(transfer.handle, mask) }
    }

    private func act(on socket: curl_socket_t, mask: Int32) {
        var running: Int32 = 0
        // What has come of a response goes to its worker at once.
        loop.deferringWakes {
            entering { _ = curl_multi_socket_action(handle, socket, mask, &running) }
            reportCompleted()
            worked?()
        }
    }

    private func entering<Result>(_ call: () -> Result) -> Result {
        loop.proveOwnership()
        precondition(!isInside, "libcurl is called from one of its callbacks")
        isInside = true
        defer { isInside = false }
        return call()
    }

    func reportCompleted() {
        var finished: [(CurlTransfer, CurlResult)] = []
        var left: Int32 = 0
        while let message = curl_multi_info_read(handle, &left) {
            // Read before the handle is removed, which invalidates the message.
            guard message.pointee.msg == CURLMSG_DONE, let transfer = CurlTransfer.of(message.pointee.easy_handle)
            else {
                continue
            }
            finished.append((transfer, transfer.result(larder_message_result(message))))
        }
        for (transfer, _) in finished { remove(transfer) }
        for (transfer, result) in finished { completed?(transfer, result) }
    }

    // MARK: Callbacks of libcurl

    private func interestChanged(_ socket: curl_socket_t, _ what: Int32) {
        // To remove it is neither of these.
        var events: ReadyEvents = []
        if what & CURL_POLL_IN != 0 { events.insert(.read) }
        if what & CURL_POLL_OUT != 0 { events.insert(.write) }
        if events.isEmpty {
            watches[socket]?.watch.disable()
        } else if let known = watches[socket], known.events == events {
            known.watch.enable()
        } else {
            // The old watch is removed first: two events of one descriptor would add up.
            watches[socket] = nil
            let watch = loop.watch(descriptor: socket, events: events) { [unowned self] ready in
                let mask =
                    (ready.contains(.read) ? CURL_CSELECT_IN : 0) | (ready.contains(.write) ? CURL_CSELECT_OUT : 0)
                act(on: socket, mask: mask)
            }
            watches[socket] = (watch, events)
        }
    }

    private func timerChanged(_ milliseconds: Int) {
        // libcurl must not be called from here, not even for 0 (CURLMOPT_TIMERFUNCTION).
        if milliseconds == 0 { ending.want() } else { ending.cancel() }
        if milliseconds > 0 { timer.schedule(after: .milliseconds(milliseconds)) } else { timer.cancel() }
    }

    private static func from(_ context: UnsafeMutableRawPointer?) -> CurlMulti {
        Unmanaged<CurlMulti>.fromOpaque(context!).takeUnretainedValue()
    }
}
