import Store

/// The life of a document with open streams: what each was sent and awaits, and when the upstream is asked.
///
/// This is a value without I/O. `handle` takes an event and returns actions in order, and `LiveDocument` performs them.
/// `FollowingTests` visits every reachable state.
///
/// ```
/// look:    idle ─ something happens ─► scheduled ─► running ─► idle, or scheduled if something has happened meanwhile
/// inquiry: idle ─ due ─► asking ─► answered ─ a look begins ─► examined ─ it ends ─► idle
/// reader:  joining ─ opened ─► opening ─ the upstream's response ─► following (on) or ended (once)
/// ```
struct Following: Hashable {
    struct Reader: Hashable {
        let id: Int
        /// Whether the stream ends with the upstream's first response (`once`).
        let isOnce: Bool
        /// The number of the last event that the client got on an earlier stream.
        var resumed: Int64?
        fileprivate(set) var phase = Phase.joining(.next)
        /// The content of the state that it was sent last.
        fileprivate(set) var shown: Digest128?
    }

    enum Phase: Hashable {
        /// Nothing was sent.
        case joining(Awaited)
        /// The known response was sent, and the upstream's is awaited.
        case opening(Awaited)
        /// Each change is sent.
        case following
        /// The last event was sent, but the client may not have read it yet.
        case ended
    }

    /// The inquiry whose response a stream awaits.
    enum Awaited: Hashable {
        case next
        case current
        /// It is over.
        case past
    }

    /// The response that a GET would get, as last sent.
    struct State: Hashable {
        let content: Digest128
        /// The number of its events; nil if the store could not give one, or not yet.
        var number: Int64?
    }

    enum Look: Hashable {
        case idle
        case scheduled(Cause)
        /// `next` is what has happened since it began, so that another look must follow; nil if nothing has.
        case running(Cause, next: Cause?)
    }

    /// What has happened that requires a look.
    enum Cause: Hashable, Comparable {
        case other
        /// Objects have changed, and perhaps something else has happened.
        case objects
    }

    enum InquiryPhase: Hashable {
        /// The upstream is asked next at this time, in ns of the loop's clock.
        case idle(due: UInt64)
        case asking
        case answered
        /// A look examines the response.
        case examined
    }

    /// What has happened since the upstream was last asked.
    enum Validity: Hashable {
        case current
        /// Its objects have changed.
        case outdated
        /// A write or a clean has invalidated the response. Its effects are still being committed.
        case invalidated
        /// The effects are committed, and the upstream must be asked.
        case invalid
    }

    /// What a look has found.
    struct Finding: Hashable {
        /// The response that a GET would get now; nil if it is not known.
        var content: Digest128?
        /// Whether it is a stored response, which new streams are shown.
        var isStored = false
        var isProblem = false
        /// Its number, if `lacksNumber` and the store gave one.
        var number: Int64?
        /// How the examined inquiry ended; nil if none was examined.
        var outcome: Outcome?
        var asks = true
        /// Whether it may not because the mode is offline.
        var isOffline = false
        /// What is stored; nil if another look follows that finds out.
        var freshness: Freshness?
        /// When a back-off ends, in ns of the loop's clock.
        var backOff: UInt64 = 0
        let now: UInt64

        /// The examined response as the upstream sent it.
        var received: Digest128? { if case .response(let received, _) = outcome { received } else { nil } }
        /// The status of the failure that the inquiry ended with.
        var failure: Int? { if case .failure(let status, _) = outcome { status } else { nil } }
    }

    /// How an inquiry ended.
    enum Outcome: Hashable {
        /// `received` is its content as the upstream sent it, if it is known.
        case response(received: Digest128?, isStored: Bool)
        /// It is an outage if the upstream could not be reached.
        case failure(status: Int, isOutage: Bool)
    }

    /// Whether a GET would be served from the store.
    enum Freshness: Hashable {
        case fresh(seconds: Int64)
        /// A GET need not wait for the upstream.
        case stale
        case mustValidate
        /// Something newer is known, or might be.
        case outdated
        case missing
    }

    enum Event {
        case joined(Reader, now: UInt64)
        case left(Int)
        case objectsChanged
        /// Something else has happened that requires a look.
        case lookRequested
        /// A write or a clean has invalidated the response.
        case invalidated
        case committed
        /// The upstream could not be reached, and can be again.
        case upstreamIsBack
        case answered
        case lookBegan
        /// All changes that the examined response has caused have been reported. They do not make it outdated.
        case ownChangesReported
        case looked(Finding)
    }

    /// The contents of an event to send.
    enum Message: Hashable {
        case state(LiveEvent.Kind)
        /// The upstream's response as it came.
        case received
        /// The client's state is current, or equals the upstream's response.
        case unchanged, unchangedReceived
        /// Why the upstream's response is missing.
        case failure
        /// Why the upstream is not asked.
        case refusal

        var isState: Bool { if case .state = self { true } else { self == .received } }
    }

    enum Action: Hashable {
        case look
        /// Send these readers the number of the state that they were sent.
        case number([Int])
        /// Begin a stream; its client comes back after a break unless it ends with the upstream's first response.
        case open(Int, isOnce: Bool)
        case send(Int, Message, isLast: Bool)
        case end(Int)
        /// Release the inquiry, because its response is examined or no longer wanted.
        case release
        /// Ask the upstream, in place of an inquiry that has not been examined.
        case ask
    }

    private(set) var readers: [Reader] = []
    private(set) var state: State?
    /// The status of the failure that was sent last; nil if there was none, or it is over.
    private var failure: Int?
    /// Whether any of the last response was stored, so that what is missing now has been displaced.
    private var wasStored = true
    private(set) var look = Look.idle
    private(set) var inquiry = InquiryPhase.idle(due: .max)
    private(set) var validity = Validity.current
    private var rhythm: LiveRhythm
    /// With more streams than this, those opened within a second of the upstream's response cause no further inquiry.
    private let crowd: Int

    init(interval: Duration, crowd: Int = 16) { (rhythm, self.crowd) = (LiveRhythm(interval: interval), crowd) }

    var isOver: Bool { readers.isEmpty }
    /// When the upstream is asked next, in ns of the loop's clock.
    var due: UInt64 { if case .idle(let due) = inquiry { due } else { .max } }
    var isInvalid: Bool { validity == .invalidated || validity == .invalid }
    /// Whether the last inquiry failed because the upstream could not be reached, and it is not known to be back.
    var isCutOff: Bool { rhythm.outage == .lasting }
    /// Whether a reader may come back and name the last event that it was sent.
    var needsNumbers: Bool { readers.contains { !$0.isOnce } }

    /// Whether this content has no number, because it differs from what was sent last or had none then.
    func lacksNumber(_ content: Digest128) -> Bool { state?.content != content || state?.number == nil }

    /// Whether the upstream must be asked at once: for new readers, or because of a write.
    var mustAsk: Bool {
        switch validity {
        case .invalidated: false
        case .invalid: true
        // The next look examines what was answered, and then asks.
        case .current, .outdated: inquiry != .answered && readers.contains { $0.awaited == .next }
        }
    }

    /// Processes an event; returns the actions to perform, in order.
    mutating func handle(_ event: Event) -> [Action] {
        switch event {
        case .joined(var reader, let now):
            reader.phase = .joining(awaited(now: now))
            readers.append(reader)
            return requestLook()
        case .left(let id):
            readers.removeAll { $0.id == id }
            return []
        case .objectsChanged:
            if validity == .current { validity = .outdated }
            return requestLook(because: .objects)
        case .lookRequested: return requestLook()
        case .invalidated:
            validity = .invalidated
            return []
        case .committed:
            guard validity == .invalidated else { return [] }
            validity = .invalid
            return requestLook()
        case .upstreamIsBack:
            rhythm.upstreamIsBack()
            return requestLook()
        case .answered:
            inquiry = .answered
            return requestLook()
        case .lookBegan:
            if case .scheduled(let cause) = look { look = .running(cause, next: nil) }
            if inquiry == .answered { inquiry = .examined }
            return []
        case .ownChangesReported:
            if case .running(_, let next) = look { look = .running(.other, next: next.map { _ in .other }) }
            return []
        case .looked(let finding): return looked(finding)
        }
    }

    private mutating func requestLook(because cause: Cause = .other) -> [Action] {
        switch look {
        case .idle:
            look = .scheduled(cause)
            return [.look]
        case .scheduled(let earlier): look = .scheduled(max(earlier, cause))
        case .running(let own, let next): look = .running(own, next: max(next ?? cause, cause))
        }
        return []
    }

    private func awaited(now: UInt64) -> Awaited {
        switch inquiry {
        case _ where isInvalid: return .next
        case .asking: return .current
        case .answered, .examined: return .next
        case .idle:
            guard readers.count >= crowd, rhythm.failures == 0, let last = rhythm.lastConcluded else { return .next }
            return now < last + 1_000_000_000 ? .past : .next
        }
    }

    // MARK: Looks

    private mutating func looked(_ found: Finding) -> [Action] {
        var (finding, actions): (Finding, [Action]) = (found, [])
        if isInvalid {
            // The response, and the inquiry's, may be older than what clients of the write know. Where no upstream is asked, stored
            // ones count once the effects are committed.
            if !finding.asks, validity == .invalid {
                validity = .outdated
                if inquiry == .asking || inquiry == .answered {
                    inquiry = .idle(due: .max)
                    actions.append(.release)
                }
            }
            if isInvalid || !finding.isStored { finding.content = nil }
            finding.outcome = nil
        }
        if let outcome = finding.outcome {
            switch outcome {
            case .response(_, let isStored):
                rhythm.concluded(now: finding.now)
                wasStored = isStored
            case .failure(_, let isOutage): rhythm.failed(isOutage: isOutage, now: finding.now)
            }
            for index in readers.indices { readers[index].await(.past, insteadOf: .current) }
        }
        if let content = finding.content {
            if state?.content != content {
                state = State(content: content, number: finding.number)
            } else if state?.number == nil, let number = finding.number {
                state?.number = number
                actions.append(.number(readers.filter { $0.shown == content && $0.phase != .ended }.map(\.id)))
            }
        }
        actions += send(finding)
        if inquiry == .examined {
            inquiry = .idle(due: .max)
            actions.append(.release)
        }
        guard case .running(let cause, let next) = exchange(&look, with: .idle)
        else { preconditionFailure("a look ends that has not begun") }
        actions += plan(finding, after: cause)
        return actions + (next.map { requestLook(because: $0) } ?? [])
    }

    /// Asks the upstream now, or sets the time of the next inquiry.
    private mutating func plan(_ finding: Finding, after cause: Cause) -> [Action] {
        guard finding.asks, readers.contains(where: { $0.phase != .ended }) else {
            if case .idle = inquiry { inquiry = .idle(due: .max) }
            return []
        }
        guard !mustAsk else { return ask() }
        guard case .idle = inquiry, let need = finding.freshness.map({ need($0, after: cause) }) else { return [] }
        let due = max(rhythm.due(need, now: finding.now), finding.backOff)
        inquiry = .idle(due: due)
        guard due <= finding.now else { return [] }
        rhythm.began(need)
        return ask()
    }

    private func need(_ freshness: Freshness, after cause: Cause) -> LiveRhythm.Need {
        switch freshness {
        case .fresh(let seconds): .expiry(seconds)
        case .stale: .stale
        case .mustValidate: cause == .objects ? .displaced : .stale
        case .outdated: .displaced
        case .missing: wasStored ? .displaced : .stale
        }
    }

    private mutating func ask() -> [Action] {
        (inquiry, validity) = (.asking, .current)
        for index in readers.indices { readers[index].await(.current, insteadOf: .next) }
        return [.ask]
    }

    // MARK: Sending

    /// Sends each reader the events that it lacks.
    private mutating func send(_ finding: Finding) -> [Action] {
        let hasRecovered = finding.outcome != nil && finding.failure == nil && failure != nil
        let fails = finding.failure != nil && failure != finding.failure
        if finding.outcome != nil { failure = finding.failure }
        var actions: [Action] = []
        for index in readers.indices {
            var reader = readers[index]
            actions += open(&reader, finding)
            actions += send(finding, to: &reader, fails: fails, hasRecovered: hasRecovered)
            readers[index] = reader
        }
        return actions
    }

    /// Begins a new stream with what is known; also one that awaits the upstream, if that is not asked after all.
    private func open(_ reader: inout Reader, _ finding: Finding) -> [Action] {
        guard let awaited = reader.awaited else { return [] }
        var actions: [Action] = []
        if case .joining = reader.phase {
            actions = [.open(reader.id, isOnce: reader.isOnce)]
        } else {
            let isComing =
                switch awaited {
                case .past: finding.outcome != nil && (finding.content != nil || finding.failure != nil)
                case .current: inquiry == .asking || inquiry == .answered
                case .next: false
                }
            guard !finding.asks, !isComing else { return [] }
        }
        reader.phase = finding.asks ? .opening(awaited) : .following
        let isLast = reader.isOnce && !finding.asks
        let refusal = Action.send(reader.id, .refusal, isLast: isLast)
        if finding.content == nil {
            if !finding.asks { actions.append(refusal) }
        } else if let number = state?.number, reader.resumed == number {
            actions += unchanged(finding, for: reader)
            reader.shown = finding.content
        } else if reader.shown == nil, finding.isStored || finding.isProblem && !finding.asks {
            let isFollowed = isLast && finding.isOffline
            actions.append(.send(reader.id, .state(.cached), isLast: isLast && !isFollowed))
            reader.shown = finding.content
            if isFollowed { actions.append(refusal) }
        } else if isLast {
            actions.append(refusal)
        }
        return actions + (isLast ? end(&reader) : [])
    }

    private func send(_ finding: Finding, to reader: inout Reader, fails: Bool, hasRecovered: Bool) -> [Action] {
        let (id, isOnce) = (reader.id, reader.isOnce)
        let isUpToDate = reader.shown != nil && reader.shown == state?.content
        let lacks = finding.content != nil && !isUpToDate
        let hasConcluded = reader.phase == .opening(.past)
        switch reader.phase {
        case .ended: return []
        // A reader that was shown nothing begins with the upstream's response; one whose stream ends with it waits for it in any
        // case.
        case .opening(.current), .opening(.next): if reader.shown == nil || isOnce { return [] }
        case .opening(.past) where finding.outcome == nil && !isUpToDate:
            // The response that this reader was to share is gone.
            reader.phase = .opening(.next)
            return []
        // A response that has been superseded does not end the stream.
        case .opening(.past) where isOnce && finding.content == nil && finding.failure == nil: return []
        case .opening(.past): reader.phase = .following
        case .following, .joining: break
        }
        let isLast = hasConcluded && isOnce
        var actions: [Action] = []
        if isLast, finding.failure == nil, let received = finding.received {
            // Such a stream ends with the upstream's response, whatever is settled.
            actions = [.send(id, reader.shown == received ? .unchangedReceived : .received, isLast: true)]
        } else if finding.failure != nil, hasConcluded || fails && reader.phase == .following {
            let isSentError = lacks && finding.isProblem
            if lacks { actions = [.send(id, .state(.changed), isLast: isLast && isSentError)] }
            if !isSentError { actions.append(.send(id, .failure, isLast: isLast)) }
        } else if lacks {
            actions = [.send(id, .state(hasConcluded ? .fresh : .changed), isLast: isLast)]
        } else if hasConcluded || hasRecovered && reader.phase == .following {
            actions = unchanged(finding, for: reader, isLast: isLast)
        }
        if actions.contains(where: { if case .send(_, .state, _) = $0 { true } else { false } }) {
            reader.shown = finding.content
        }
        return actions + (isLast ? end(&reader) : [])
    }

    private func unchanged(_ finding: Finding, for reader: Reader, isLast: Bool = false) -> [Action] {
        finding.content == nil || finding.isProblem ? [] : [.send(reader.id, .unchanged, isLast: isLast)]
    }

    private func end(_ reader: inout Reader) -> [Action] {
        reader.phase = .ended
        return [.end(reader.id)]
    }
}

extension Following.Reader {
    init(_ id: Int, _ mode: LiveMode) {
        let resumed: Int64? = if case .on(let number) = mode { number } else { nil }
        let isOnce = if case .on = mode { false } else { true }
        self.init(id: id, isOnce: isOnce, resumed: resumed)
    }

    fileprivate var awaited: Following.Awaited? {
        switch phase {
        case .joining(let awaited), .opening(let awaited): awaited
        case .following, .ended: nil
        }
    }

    fileprivate mutating func await(_ awaited: Following.Awaited, insteadOf other: Following.Awaited) {
        guard self.awaited == other else { return }
        if case .joining = phase { phase = .joining(awaited) } else { phase = .opening(awaited) }
    }
}
