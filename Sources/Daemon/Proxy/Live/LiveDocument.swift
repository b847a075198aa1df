import Store

/// One document that streams are open on, and what they were told of it.
///
/// Everybody who would get the same answer to the same request shares it: it is looked up, composed and made into events
/// once. Its life is a circle: something happens (`causes`), it is looked at (`Proxy.look`), what would be answered now is
/// told where it differs (`tell`), and it is settled when the upstream is asked next (`due`).
///
/// The upstream loop only; `LiveDocuments` keeps it as long as it has readers.
final class LiveDocument {
    /// What tells documents apart: all of a request that its answer, or the freedom to ask for one, might depend on.
    struct Key: Hashable {
        let digest: Digest128
        let view: View
        let base: [UInt8]
        let fields: [UInt8]

        init(_ demand: Demand) {
            digest = demand.digest
            view = demand.view
            base = demand.base.bytes
            var text: [UInt8] = []
            for line in demand.request.fields.lines { text.append(field: line) }
            fields = text
        }
    }

    /// What would be answered, as far as it has been told.
    struct State {
        let content: Digest128
        /// The number that its events have; nil where the store could not give one, or not yet.
        var number: Int64?
        /// From which the age is reckoned; nil where nothing is kept.
        var policy: AnswerPolicy?
    }

    let number: Int
    let key: Key
    let demand: Demand
    private let look: (LiveDocument) -> Void
    private(set) var readers: [LiveReader] = []
    var rhythm: LiveRhythm
    /// When the upstream is asked next, in ns of the loop's clock.
    var due = UInt64.max
    /// The objects that are watched for it.
    var objects: Set<ObjectID> = []
    private(set) var state: State?
    /// Counts the states that it has had.
    private(set) var edition = 0
    /// The status of the failure that was told last; nil: none, or it has passed.
    private var failure: Int?

    // What has happened since it was looked at.
    private var causes: LiveWatch.Causes = []
    private var outcome: LiveInquiry.Outcome?
    private var isLooked = false
    private var isLooking = false
    /// Whether a write or a cleaning has made worthless what was known, and the upstream has not been asked since.
    private(set) var isInvalid = false
    /// Whether the write's consequences are still being committed.
    private var isSettling = false

    // The questions to the upstream, by number.
    private(set) var inquiry: LiveInquiry?
    /// The one whose answer is being looked at.
    private var answered: LiveInquiry?
    /// What was stored when it was asked.
    private(set) var askedAbout: ReadyAnswer?
    private(set) var begun = 0
    private var concluded = 0
    /// Whether anything of the last answer was kept.
    private(set) var isKept = true
    private(set) var isOver = false
    /// The latest encoding of its body, while somebody else keeps it.
    private weak var encoding: LiveEncoding?
    private var encoded: Digest128?

    /// Past this many streams, those who come within a second after the upstream's word are not worth another question.
    private static let crowd = 16

    /// - Parameter look: has it looked at.
    init(
        _ number: Int,
        _ key: Key,
        _ demand: Demand,
        interval: Duration,
        look: @escaping (LiveDocument) -> Void
    ) {
        self.number = number
        self.key = key
        self.demand = demand
        self.look = look
        rhythm = LiveRhythm(interval: interval)
    }

    // MARK: Readers

    func add(_ reader: LiveReader, now: UInt64) {
        readers.append(reader)
        let isCrowded = readers.count > Self.crowd && rhythm.failures == 0 && concluded == begun
        if isCrowded, let lastWord = rhythm.lastWord, now < lastWord + 1_000_000_000, !isInvalid {
            reader.awaited = concluded
        } else {
            reader.awaited = inquiry != nil && !isInvalid ? begun : begun + 1
        }
    }

    func remove(_ reader: LiveReader) {
        readers.removeAll { $0 === reader }
    }

    /// Nobody follows it any more.
    func end() {
        isOver = true
        for inquiry in [inquiry, answered] { inquiry?.release() }
        (inquiry, answered, outcome, askedAbout) = (nil, nil, nil, nil)
    }

    // MARK: What happens

    /// Something has happened that it must be looked at for.
    func note(_ causes: LiveWatch.Causes) {
        self.causes.formUnion(causes)
    }

    /// A write or a cleaning has made worthless what is known; it is not looked at before `settled`.
    func invalidate() {
        isInvalid = true
        isSettling = true
    }

    /// What a write has done is committed; false where it was none of this document's.
    func settled() -> Bool {
        defer { isSettling = false }
        return isSettling
    }

    /// Whether it can be looked at now; if not, it is as soon as that can be.
    func beginLook() -> Bool {
        isLooked = true
        guard !isLooking else { return false }
        isLooking = true
        return true
    }

    /// Takes what has happened; nil where there is nothing more to look at.
    func takeNews() -> (causes: LiveWatch.Causes, outcome: LiveInquiry.Outcome?)? {
        guard isLooked, !isOver else {
            isLooking = false
            return nil
        }
        isLooked = false
        defer { (causes, outcome) = ([], nil) }
        return (causes, outcome)
    }

    /// What has happened since the news were taken is part of them.
    func forgetCauses() {
        causes = []
    }

    // MARK: Asking

    /// Whether the upstream has to be asked at once: for those who came, or because of a write.
    var mustAsk: Bool {
        !isSettling && (isInvalid || readers.contains { $0.phase != .following && $0.awaited > begun })
    }

    /// Begins a question, in the place of one that a write has overtaken.
    func ask(_ flights: Flights, about stored: ReadyAnswer?) -> LiveInquiry {
        inquiry?.release()
        askedAbout = stored
        begun += 1
        isInvalid = false
        due = .max
        let question = LiveInquiry(demand.upstream, flights: flights, isRequest: false) { [unowned self] outcome in
            self.outcome = outcome
            answered = inquiry
            inquiry = nil
            look(self)
        }
        inquiry = question
        return question
    }

    /// The outcome has been looked at: what it holds is free.
    func releaseOutcome() {
        answered?.release()
        answered = nil
        if inquiry == nil { askedAbout = nil }
    }

    /// Nobody is asked, so that what comes from elsewhere counts as soon as a write's consequences are committed.
    func asksNobody() {
        due = .max
        if !isSettling { isInvalid = false }
    }

    /// Settles an outcome: what it says of the upstream, and when it is asked next.
    func concluded(_ outcome: LiveInquiry.Outcome, now: UInt64) {
        concluded = begun
        switch outcome {
        case .answered(_, let isKept): self.isKept = isKept
        case .served(_, .unkept, _, _), .served(_, .revalidated(_, isStored: false), _, _): isKept = false
        case .served: isKept = true
        case .failed: return rhythm.concluded(hasFailed: true, now: now)
        }
        rhythm.concluded(hasFailed: false, now: now)
    }

    // MARK: Telling

    /// What would be answered now, as it is to be told.
    struct Telling {
        /// The event, whatever its kind.
        var event: LiveEvent
        let content: Digest128
        /// Whether it is stored, so that who comes is shown it.
        let isStored: Bool
        /// Whether it is on disk.
        var isCommitted = false
        var policy: AnswerPolicy?
        /// The variant that it is.
        var variant: [UInt8] = []
    }

    /// What a stream begins with.
    struct Opening {
        /// What its head says of how it comes about.
        let cacheStatus: String
        /// Why the upstream is not asked; nil where it is.
        let refusal: ProblemDocument?
        let retry: Duration
    }

    /// Whether this is another state than was told.
    func isNew(_ telling: Telling) -> Bool { state?.content != telling.content }

    /// It will be told that this is the state from now on.
    func move(to telling: Telling, number: Int64?) {
        state = State(content: telling.content, number: number, policy: telling.policy)
        edition += 1
    }

    /// The state that was told without a number has one now: who was told of it hears of that, too.
    func give(_ number: Int64, memory: LiveMemory) {
        state?.number = number
        let message = LiveMessage(number: number, memory: memory)
        for reader in readers where reader.edition == edition { reader.send(notice: message) }
    }

    /// The age of what was told last, in seconds.
    func age(at now: Int64) -> Int64? { state?.policy.map { max(0, $0.age(at: now)) } }

    /// Tells the readers what each of them does not know.
    ///
    /// - Parameters:
    ///   - telling: what would be answered; nil where that is not known.
    ///   - problem: why the upstream's word could not be had.
    ///   - hasWord: whether the upstream has just said something.
    ///   - opening: what those begin with who have just come.
    func tell(
        _ telling: Telling?,
        problem: ProblemDocument?,
        hasWord: Bool,
        opening: Opening,
        memory: LiveMemory,
        now: Int64
    ) {
        if let telling, !isNew(telling) { state?.policy = telling.policy }
        var messages = Messages(self, telling, memory: memory)
        let hasRecovered = hasWord && problem == nil && failure != nil
        let fails = problem.map { failure != $0.status } ?? false
        if hasWord { failure = problem?.status }
        for reader in readers {
            if reader.phase == .joining { join(reader, telling, opening, &messages) }
            let isUpToDate = reader.edition == edition
            let isAnswered = reader.phase == .opening && reader.awaited <= concluded
            if isAnswered, !hasWord, !isUpToDate {
                // It was to be content with a word that is gone.
                reader.awaited = begun + 1
                continue
            }
            // Who was shown nothing begins with the upstream's word.
            if reader.phase == .opening, !isAnswered, reader.edition == nil { continue }
            if isAnswered { reader.phase = .following }
            if let problem, isAnswered || fails && reader.phase == .following {
                if telling != nil, !isUpToDate { messages.send(.changed, to: reader) }
                let isToldSo = telling?.event.problem != nil && !isUpToDate
                if !isToldSo { messages.send(failure: problem, age: age(at: now), to: reader) }
            } else if telling != nil, !isUpToDate {
                messages.send(isAnswered ? .fresh : .changed, to: reader)
            } else if isAnswered || hasRecovered && reader.phase == .following {
                messages.sendUnchanged(to: reader)
            }
        }
    }

    /// How many have come and were told nothing yet.
    var joining: Int { readers.count { $0.phase == .joining } }

    /// Begins a stream with what is known.
    private func join(
        _ reader: LiveReader,
        _ telling: Telling?,
        _ opening: Opening,
        _ messages: inout Messages
    ) {
        var fields = Fields()
        fields.append("Cache-Status", opening.cacheStatus)
        demand.upstream.addCORS(to: &fields, for: demand.request.fields)
        reader.open(fields, retry: opening.retry)
        reader.phase = opening.refusal == nil ? .opening : .following
        guard let telling else {
            if let refusal = opening.refusal { messages.send(failure: refusal, age: nil, to: reader) }
            return
        }
        if let known = state?.number, reader.resumed == known {
            messages.sendUnchanged(to: reader)
            reader.edition = edition
        } else if telling.isStored || telling.event.problem != nil && opening.refusal != nil {
            messages.send(.cached, to: reader)
        }
    }

    /// The body of an event, encoded once as long as anybody has it.
    fileprivate func encoding(of telling: Telling, memory: LiveMemory) -> LiveEncoding {
        if let encoding, encoded == telling.content { return encoding }
        let made = LiveEncoding(bodyOf: telling.event, memory: memory)
        (encoding, encoded) = (made, telling.content)
        memory.keep(made)
        return made
    }
}

/// The messages of one round of telling, each made when the first reader needs it.
private struct Messages {
    private let document: LiveDocument
    private let telling: LiveDocument.Telling?
    private let memory: LiveMemory
    private var states: [LiveEvent.Kind: LiveMessage] = [:]
    private var unchanged: LiveMessage?

    init(_ document: LiveDocument, _ telling: LiveDocument.Telling?, memory: LiveMemory) {
        self.document = document
        self.telling = telling
        self.memory = memory
    }

    /// Sends the state as an event of this kind; a state that is a problem is an error, whatever the kind.
    mutating func send(_ kind: LiveEvent.Kind, to reader: LiveReader) {
        guard let telling else { return }
        let kind = telling.event.problem == nil ? kind : .error
        let message = states[kind] ?? make(kind, telling)
        states[kind] = message
        reader.send(state: message, edition: document.edition)
    }

    private func make(_ kind: LiveEvent.Kind, _ telling: LiveDocument.Telling) -> LiveMessage {
        var event = telling.event
        event.kind = kind
        let encoding = document.encoding(of: telling, memory: memory)
        return LiveMessage(event, number: document.state?.number, body: encoding)
    }

    /// Sends that what the reader has is what there is.
    mutating func sendUnchanged(to reader: LiveReader) {
        guard let telling, telling.event.problem == nil else { return }
        let message = unchanged ?? notice(telling.event.unchanged())
        unchanged = message
        reader.send(notice: message)
    }

    /// Sends why the upstream's word could not be had.
    mutating func send(failure problem: ProblemDocument, age: Int64?, to reader: LiveReader) {
        reader.send(notice: notice(LiveEvent(failure: problem, age: age)))
    }

    private func notice(_ event: LiveEvent) -> LiveMessage {
        LiveMessage(event, number: document.state?.number, body: LiveEncoding(bodyOf: event, memory: memory))
    }
}
