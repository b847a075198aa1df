import HTTPSemantics

/// Where a transfer stands, and what its events lead to.
///
/// A value that decides; `Transfer` acts. Its phases follow one another:
/// 1. waiting for a connection: nothing has been sent, every failure is harmless;
/// 2. sent, the head is awaited: the upstream may be acting on the request;
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
    /// How often the request has been put on a connection.
    private(set) var attempts = 0
    private(set) var bodyBytes = 0
    /// The delegate wants no body for now.
    private(set) var isReceivingPaused = false
    /// The request's body has nothing for libcurl for now.
    private(set) var isSendingPaused = false
    /// When something last moved, or began to be waited for, in ns of the loop's clock.
    private(set) var lastProgress: UInt64
    /// Since when, in ns of the loop's clock, and after how many bytes its pace is measured.
    private var paceMark: (since: UInt64, bytes: Int) = (0, 0)
    /// Why we made libcurl stop, where libcurl only knows that a callback failed.
    private(set) var ownReason: UpstreamError?
    private(set) var isCancelled = false

    init(now: UInt64) {
        lastProgress = now
    }

    /// libcurl has a connection and wants to send; whether it may.
    ///
    /// libcurl 7.88 sends a request again by itself, up to five times, when no line of a response has come and the connection
    /// was one from the pool, or HTTP/2 refused the stream or went away. It does so whatever the method, and cannot know
    /// whether the upstream has carried the request out. So an unsafe request is sent once, and never again.
    ///
    /// - Parameter hasAnswer: whether a line of a response has come.
    mutating func willSend(isSafe: Bool, hasAnswer: Bool = false, now: UInt64) -> Bool {
        let isAllowed = attempts == 0 || isSafe && !hasAnswer
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

    /// How many bytes a second have moved, once that can be said; nil while somebody is not to blame for it: while it waits
    /// for a connection, or for the upstream to respond.
    ///
    /// - Parameters:
    ///   - sent: bytes of the request's body so far; nil when all of it has been sent.
    ///   - received: bytes of the response's body so far.
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

    /// Something moved that proves the other side alive.
    mutating func progressed(now: UInt64) {
        lastProgress = now
    }

    mutating func received(bytes: Int, now: UInt64) {
        bodyBytes += bytes
        lastProgress = now
    }

    mutating func receivingPaused() {
        isReceivingPaused = true
    }

    /// Lets the body come again; false when it was not resting.
    mutating func receivingResumed(now: UInt64) -> Bool {
        guard isReceivingPaused, phase == .receiving else { return false }
        isReceivingPaused = false
        lastProgress = now
        return true
    }

    mutating func sendingPaused() {
        isSendingPaused = true
    }

    /// Lets the request's body go on; false when it was not resting.
    mutating func sendingResumed(now: UInt64) -> Bool {
        guard isSendingPaused, phase != .ended else { return false }
        isSendingPaused = false
        lastProgress = now
        return true
    }

    /// Notes why libcurl is being stopped; the first reason counts.
    mutating func stop(because reason: UpstreamError) {
        ownReason = ownReason ?? reason
    }

    /// The user gave up; false when it is over anyway.
    mutating func cancelled() -> Bool {
        guard phase != .ended, !isCancelled else { return false }
        isCancelled = true
        ownReason = .cancelled
        return true
    }

    /// The end has come; false if it had come before.
    mutating func ended() -> Bool {
        guard phase != .ended else { return false }
        phase = .ended
        return true
    }

    /// The deadline that now runs, in ns of the loop's clock, and what passing it means; nil when nobody is to blame.
    func deadline(_ timeouts: UpstreamTimeouts) -> (at: UInt64, error: UpstreamError)? {
        switch phase {
        case .waiting:
            // libcurl bounds the connecting itself; this bounds the wait for a place as well.
            (lastProgress + (timeouts.queue + timeouts.connect).nanoseconds, .queueTimeout)
        case .sent:
            // While the client is slow with its body, the upstream has nothing to answer.
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
