/// Where a transfer stands, and what its events lead to.
///
/// A value that decides; `Transfer` acts. Its phases follow one another:
/// 1. waiting for a connection: nothing has been sent, every failure is harmless;
/// 2. sent, the head is awaited: the upstream may be acting on the request;
/// 3. receiving the body;
/// 4. ended: the delegate has been told, or will be with the next turn, and hears nothing more.
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
    /// A byte of an answer has come, though perhaps no whole line.
    private(set) var hasFirstByte = false
    /// What became of the request on the connection that it last went out on, once that is gone.
    private(set) var fate: RequestFate?
    /// When something last moved, or began to be waited for, in ns of the loop's clock.
    private(set) var lastProgress: UInt64
    /// Why we made libcurl stop, where libcurl only knows that a callback failed.
    private(set) var ownReason: UpstreamError?
    private(set) var isCancelled = false

    init(now: UInt64) {
        lastProgress = now
    }

    /// libcurl has a connection and wants to send; whether it may.
    ///
    /// libcurl sends again by itself when a connection from the pool dies before a complete line of answer. That is
    /// right only if the upstream cannot have received the request (`RequestFate`), and nothing of an answer had come.
    ///
    /// - Parameter hasAnswer: whether a line of an answer has come.
    mutating func willSend(
        isIdempotent: Bool,
        isMultiplexed: Bool = false,
        hasAnswer: Bool = false,
        now: UInt64
    ) -> Bool {
        let isAllowed =
            attempts == 0 || !hasAnswer && mayRepeat(isIdempotent: isIdempotent, isMultiplexed: isMultiplexed)
        guard isAllowed, phase == .waiting || phase == .sent else {
            ownReason = ownReason ?? .reset(afterBytes: 0)
            return false
        }
        attempts += 1
        phase = .sent
        fate = nil
        lastProgress = now
        return true
    }

    /// Whether a request that has been sent may be sent again.
    ///
    /// - Parameter isMultiplexed: whether it is a stream of HTTP/2. Of those libcurl knows which were not looked at, and
    ///   repeats no others (RFC 9113 §8.7); of any other request something must be known.
    func mayRepeat(isIdempotent: Bool, isMultiplexed: Bool = false) -> Bool {
        guard !hasFirstByte else { return false }
        return fate?.permitsRepeating(isIdempotent: isIdempotent) ?? (isMultiplexed && isIdempotent)
    }

    mutating func lostConnection(_ fate: RequestFate) {
        self.fate = fate
    }

    /// The request goes back to the beginning, to be sent on a new connection; false when it has been tried too often.
    mutating func startsAgain(now: UInt64) -> Bool {
        guard phase == .sent, attempts < Self.maximumAttempts else { return false }
        phase = .waiting
        isSendingPaused = false
        lastProgress = now
        return true
    }

    /// The answer that has begun is of no use, and is asked for otherwise.
    mutating func asksAgain(now: UInt64) {
        phase = .waiting
        // A request of its own, as it were.
        attempts = 0
        isReceivingPaused = false
        hasFirstByte = false
        lastProgress = now
    }

    private static let maximumAttempts = 3

    mutating func firstByteArrived() {
        hasFirstByte = true
    }

    mutating func headArrived(now: UInt64) {
        phase = .receiving
        lastProgress = now
    }

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
