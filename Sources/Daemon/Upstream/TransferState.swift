import HTTPSemantics

/// The state of a transfer, and the decisions about its events.
///
/// It is a value that decides; `Transfer` acts. The phases follow one another:
/// 1. waiting for a connection: nothing has been sent, every failure is harmless;
/// 2. sent, waiting for the head: the upstream may be acting on the request;
/// 3. receiving the body;
/// 4. ended: the delegate has been informed, or will be with the next turn; nothing more follows.
struct TransferState {
    enum Phase: Equatable {
        case waiting
        case sent
        case receiving
        case ended
    }

    private(set) var phase = Phase.waiting
    /// How often the request has been sent on a connection.
    private(set) var attempts = 0
    private(set) var bodyBytes = 0
    /// Whether the delegate has paused the body.
    private(set) var isReceivingPaused = false
    /// Whether sending waits for more of the request body.
    private(set) var isSendingPaused = false
    /// When data last moved, or a wait began, in ns of the loop's clock.
    private(set) var lastProgress: UInt64
    /// The start of the speed measurement: its time in ns of the loop's clock, and the bytes moved until then.
    private var paceMark: (since: UInt64, bytes: Int) = (0, 0)
    /// Larder's reason for stopping libcurl, which itself only reports that a callback failed.
    private(set) var ownReason: UpstreamError?
    private(set) var isCancelled = false

    init(now: UInt64) { lastProgress = now }

    /// Decides whether libcurl may send the request on its connection.
    ///
    /// libcurl 7.88 repeats a request by itself, up to five times, if no line of a response has arrived and the connection came
    /// from the pool, or HTTP/2 refused the stream or closed. It does so for any method, and cannot know whether the upstream
    /// has processed the request. So an unsafe request is sent only once.
    mutating func willSend(isSafe: Bool, hasResponse: Bool = false, now: UInt64) -> Bool {
        let isAllowed = attempts == 0 || isSafe && !hasResponse
        guard isAllowed, phase == .waiting || phase == .sent else {
            ownReason = ownReason ?? .reset(afterBytes: 0)
            return false
        }
        attempts += 1
        phase = .sent
        paceMark = (now, 0)
        lastProgress = now
        return true
    }

    mutating func headArrived(now: UInt64) {
        phase = .receiving
        paceMark = (now, 0)
        lastProgress = now
    }

    /// The speed in bytes per second since the last measurement; nil if that was too recent.
    ///
    /// Nil also while the transfer waits for a connection, or for the upstream to respond: then no side is slow.
    ///
    /// - Parameter sent: The number of request body bytes sent so far; nil if all have been sent.
    mutating func pace(sent: Int?, received: Int, now: UInt64) -> Int? {
        let bytes: Int
        switch (phase, sent) {
        case (.sent, let sent?): bytes = sent
        case (.receiving, _): bytes = received
        case (.sent, nil), (.waiting, _), (.ended, _): return nil
        }
        guard now >= paceMark.since + Self.paceWindow else { return nil }
        let pace = Double(bytes - paceMark.bytes) / (Double(now - paceMark.since) / 1_000_000_000)
        paceMark = (now, bytes)
        return Int(pace)
    }

    private static let paceWindow: UInt64 = 10_000_000_000

    /// Notes progress, which shows that the other side is alive.
    mutating func progressed(now: UInt64) { lastProgress = now }

    mutating func received(bytes: Int, now: UInt64) {
        bodyBytes += bytes
        lastProgress = now
    }

    mutating func receivingPaused() { isReceivingPaused = true }

    /// Resumes receiving; returns false if it was not paused.
    mutating func receivingResumed(now: UInt64) -> Bool {
        guard isReceivingPaused, phase == .receiving else { return false }
        isReceivingPaused = false
        lastProgress = now
        return true
    }

    mutating func sendingPaused() { isSendingPaused = true }

    /// Resumes sending; returns false if it was not paused.
    mutating func sendingResumed(now: UInt64) -> Bool {
        guard isSendingPaused, phase != .ended else { return false }
        isSendingPaused = false
        lastProgress = now
        return true
    }

    /// Notes why libcurl is being stopped; the first reason counts.
    mutating func stop(because reason: UpstreamError) { ownReason = ownReason ?? reason }

    /// Notes that the caller cancelled; returns false if the transfer is over anyway.
    mutating func cancelled() -> Bool {
        guard phase != .ended, !isCancelled else { return false }
        isCancelled = true
        ownReason = .cancelled
        return true
    }

    /// Notes the end; returns false if the transfer has ended before.
    mutating func ended() -> Bool {
        guard phase != .ended else { return false }
        phase = .ended
        return true
    }

    /// The current deadline in ns of the loop's clock, and the error when it passes; nil if no timeout applies.
    func deadline(_ timeouts: UpstreamTimeouts) -> (at: UInt64, error: UpstreamError)? {
        switch phase {
        case .waiting:
            // libcurl bounds connecting itself; this also bounds the wait for a connection slot.
            (lastProgress + (timeouts.queue + timeouts.connect).nanoseconds, .queueTimeout)
        case .sent:
            // While the client is slow with its body, the upstream cannot respond.
            isSendingPaused ? nil : (lastProgress + timeouts.firstByte.nanoseconds, .firstByteTimeout)
        case .receiving:
            if let stall = timeouts.stall, !isReceivingPaused {
                (lastProgress + stall.nanoseconds, .stalled)
            } else {
                nil
            }
        case .ended: nil
        }
    }
}
