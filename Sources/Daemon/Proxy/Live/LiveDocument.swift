import CachePolicy
import HTTPSemantics
import HTTPServer
import Store

/// One document that streams are open on, and what they were sent.
///
/// Everybody who would get the same response to the same request shares it: it is looked up, composed and made into events
/// once. Its life is a circle: something happens (`causes`), it is looked at (`Proxy.look`), what would be answered now is
/// sent where it differs (`send`), and it is decided when the upstream is asked next (`due`).
///
/// The upstream loop only; `LiveDocuments` keeps it as long as it has readers.
final class LiveDocument {
    /// What distinguishes documents: all of a request that its response, or the freedom to ask for one, might depend on.
    struct Key: Hashable {
        let digest: Digest128
        let view: View
        let base: [UInt8]
        let fields: [UInt8]

        init(_ request: ProxyRequest) {
            digest = request.digest
            view = request.view
            base = request.base.bytes
            var text: [UInt8] = []
            for line in request.message.fields.lines { text.append(field: line) }
            fields = text
        }
    }

    /// What a GET would get, as far as it has been sent.
    struct State {
        let content: Digest128
        /// The number that its events have; nil where the store could not give one, or not yet.
        var number: Int64?
        /// From which the age is reckoned; nil where nothing is kept.
        var policy: StoredPolicy?
    }

    let number: Int
    let key: Key
    let request: ProxyRequest
    private let look: (LiveDocument) -> Void
    private(set) var readers: [LiveReader] = []
    var rhythm: LiveRhythm
    /// When the upstream is asked next, in ns of the loop's clock.
    var due = UInt64.max
    /// The objects that are watched for it.
    var objects: Set<ObjectID> = []
    var state: State?
    /// Counts the states that it has had.
    var edition = 0
    /// The status of the failure that was sent last; nil: none, or it has passed.
    var failure: Int?

    // What has happened since it was looked at.
    private var causes: LiveWatch.Causes = []
    private var outcome: LiveInquiry.Outcome?
    private var isLooked = false
    private var isLooking = false
    /// Whether a write or a cleaning has outdated what was known, and the upstream has not been asked since.
    private(set) var isInvalid = false
    /// Whether the write's consequences are still being committed.
    private var awaitsCommit = false
    /// Whether objects that it shows have changed since the upstream was last asked.
    private(set) var isOvertaken = false

    // The questions to the upstream, by number.
    private(set) var inquiry: LiveInquiry?
    /// The one whose response is being looked at.
    private var answered: LiveInquiry?
    /// What was stored when it was asked.
    private(set) var askedAbout: ReadyResponse?
    private(set) var begun = 0
    var concluded = 0
    /// Whether anything of the last response was kept.
    private(set) var isKept = true
    private(set) var isOver = false
    /// The latest encoding of its body, while somebody else keeps it.
    weak var encoding: LiveEncoding?
    var encoded: Digest128?

    /// Past this many streams, those who come within a second after the upstream's word are not worth another question.
    private static let crowd = 16

    /// - Parameter look: has it looked at.
    init(
        _ number: Int,
        _ key: Key,
        _ request: ProxyRequest,
        interval: Duration,
        look: @escaping (LiveDocument) -> Void
    ) {
        self.number = number
        self.key = key
        self.request = request
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
        if causes.contains(.objects) { isOvertaken = true }
    }

    /// A write or a cleaning has outdated what is known; it is not looked at before `invalidationCommitted`.
    func invalidate() {
        isInvalid = true
        awaitsCommit = true
    }

    /// What a write has done is committed; false where it was none of this document's.
    func invalidationCommitted() -> Bool {
        defer { awaitsCommit = false }
        return awaitsCommit
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
        !awaitsCommit && (isInvalid || readers.contains { $0.phase != .following && $0.awaited > begun })
    }

    /// Begins a question, in the place of one that a write has outdated.
    func ask(_ fetches: Fetches, about stored: ReadyResponse?) -> LiveInquiry {
        inquiry?.release()
        askedAbout = stored
        begun += 1
        (isInvalid, isOvertaken) = (false, false)
        due = .max
        let question = LiveInquiry(request.upstream, fetches: fetches) { [unowned self] outcome in
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
        if !awaitsCommit { isInvalid = false }
    }

    /// Settles an outcome: what it says of the upstream, and when it is asked next.
    func concluded(_ outcome: LiveInquiry.Outcome, now: UInt64) {
        concluded = begun
        if case .failed = outcome { return rhythm.concluded(hasFailed: true, now: now) }
        isKept = !outcome.isUnkept
        rhythm.concluded(hasFailed: false, now: now)
    }
}

/// What the streams on a document are sent.
extension LiveDocument {
    /// What a GET would get now, as it is to be sent.
    struct Update {
        /// The event, whatever its kind.
        var event: LiveEvent
        let content: Digest128
        /// Whether it is stored, so that who comes is shown it.
        let isStored: Bool
        /// Whether it is on disk.
        var isCommitted = false
        var policy: StoredPolicy?
        /// The variant that it is.
        var variant: [UInt8] = []
        /// The fields of the upstream's word, where this is what came of it.
        var word: Fields?
    }

    /// What a stream begins with.
    struct Opening {
        /// What its head says of how it comes about.
        let cacheStatus: String
        /// Why the upstream is not asked; nil where it is.
        let refusal: ProblemDocument?
        /// Whether that is because no upstream may be asked.
        let isOffline: Bool
        let retry: Duration
    }

    /// Whether somebody follows it who may come back and say what was sent last.
    var needsNumbers: Bool { readers.contains { !$0.endsAfterWord } }

    /// Whether this is another state than was sent.
    func isNew(_ update: Update) -> Bool { state?.content != update.content }

    /// This is the state from now on.
    func move(to update: Update, number: Int64?) {
        state = State(content: update.content, number: number, policy: update.policy)
        edition += 1
    }

    /// The state was sent without an id; now it has one: sends the id to those who got it.
    func give(_ number: Int64, memory: LiveMemory) {
        state?.number = number
        let message = LiveMessage(number: number, memory: memory)
        for reader in readers where reader.edition == edition { reader.send(notice: message) }
    }

    /// The age of what was sent last, in seconds.
    func age(at now: Int64) -> Int64? { state?.policy.map { max(0, $0.age(at: now)) } }

    /// Sends each reader what it does not have.
    ///
    /// - Parameters:
    ///   - update: what a GET would get; nil where that is not known.
    ///   - problem: why the upstream's word could not be had.
    ///   - hasWord: whether the upstream has just said something.
    ///   - opening: what those begin with who have just come.
    func send(
        _ update: Update?,
        problem: ProblemDocument?,
        hasWord: Bool,
        opening: Opening,
        memory: LiveMemory,
        now: Int64
    ) {
        if let update, !isNew(update) { state?.policy = update.policy }
        var messages = Messages(self, update, memory: memory)
        let hasRecovered = hasWord && problem == nil && failure != nil
        let fails = problem.map { failure != $0.status } ?? false
        if hasWord { failure = problem?.status }
        for reader in readers {
            if reader.phase == .joining { join(reader, update, opening, &messages, now: now) }
            let isUpToDate = reader.edition == edition
            let isAnswered = reader.phase == .opening && reader.awaited <= concluded
            if isAnswered, !hasWord, !isUpToDate {
                // It was to be content with a word that is gone.
                reader.awaited = begun + 1
                continue
            }
            // Who was shown nothing begins with the upstream's word; whose stream ends with it waits for it in any case.
            if reader.phase == .opening, !isAnswered, reader.edition == nil || reader.endsAfterWord { continue }
            // A word that something newer has superseded is no last word.
            if isAnswered, reader.endsAfterWord, update == nil, problem == nil { continue }
            if isAnswered { reader.phase = .following }
            let isLast = isAnswered && reader.endsAfterWord
            if let problem, isAnswered || fails && reader.phase == .following {
                let isSentError = update?.event.problem != nil && !isUpToDate
                if update != nil, !isUpToDate { messages.send(.changed, isLast: isLast && isSentError, to: reader) }
                if !isSentError { messages.send(failure: problem, age: age(at: now), isLast: isLast, to: reader) }
            } else if update != nil, !isUpToDate {
                messages.send(isAnswered ? .fresh : .changed, isLast: isLast, to: reader)
            } else if isAnswered || hasRecovered && reader.phase == .following {
                messages.sendUnchanged(isLast: isLast, to: reader)
            }
            if isLast { reader.end() }
        }
    }

    /// Those who have come and were sent nothing yet.
    var joining: [LiveReader] { readers.filter { $0.phase == .joining } }

    /// Begins a stream with what is known.
    private func join(
        _ reader: LiveReader,
        _ update: Update?,
        _ opening: Opening,
        _ messages: inout Messages,
        now: Int64
    ) {
        var fields = Fields()
        fields.append("Cache-Status", opening.cacheStatus)
        fields.vary(by: request.upstream.variesBy)
        request.upstream.addCORS(to: &fields, for: request.message.fields)
        reader.open(fields, retry: opening.retry)
        reader.phase = opening.refusal == nil ? .opening : .following
        let isLast = reader.endsAfterWord && opening.refusal != nil
        defer { if isLast { reader.end() } }
        guard let update else {
            if let refusal = opening.refusal { messages.send(failure: refusal, age: nil, isLast: isLast, to: reader) }
            return
        }
        if let known = state?.number, reader.resumed == known {
            messages.sendUnchanged(isLast: false, to: reader)
            reader.edition = edition
        } else if update.isStored || update.event.problem != nil && opening.refusal != nil {
            messages.send(.cached, isLast: isLast && !opening.isOffline, to: reader)
            guard isLast, opening.isOffline, let refusal = opening.refusal else { return }
            messages.send(failure: refusal, age: age(at: now), isLast: true, to: reader)
        }
    }

    /// The body of an event, encoded once as long as anybody has it.
    fileprivate func encoding(of update: Update, memory: LiveMemory) -> LiveEncoding {
        if let encoding, encoded == update.content { return encoding }
        let made = LiveEncoding(bodyOf: update.event, memory: memory)
        (encoding, encoded) = (made, update.content)
        memory.keep(made)
        return made
    }
}

/// The messages of one round, each made when the first reader needs it.
private struct Messages {
    private let document: LiveDocument
    private let update: LiveDocument.Update?
    private let memory: LiveMemory
    private var made: [Name: LiveMessage] = [:]

    private struct Name: Hashable {
        let kind: LiveEvent.Kind
        let isLast: Bool
    }

    init(_ document: LiveDocument, _ update: LiveDocument.Update?, memory: LiveMemory) {
        self.document = document
        self.update = update
        self.memory = memory
    }

    /// Sends the state as an event of this kind; a state that is a problem is an error, whatever the kind.
    ///
    /// - Parameter isLast: whether the stream ends with it.
    mutating func send(_ kind: LiveEvent.Kind, isLast: Bool, to reader: LiveReader) {
        guard let update else { return }
        var event = update.event
        event.kind = event.problem == nil ? kind : .error
        reader.send(state: message(event, isLast: isLast), edition: document.edition)
    }

    /// Sends that what the reader has is what there is.
    mutating func sendUnchanged(isLast: Bool, to reader: LiveReader) {
        guard let update, update.event.problem == nil else { return }
        reader.send(notice: message(update.event.unchanged(), isLast: isLast))
    }

    /// Sends why the upstream's word could not be had.
    mutating func send(failure problem: ProblemDocument, age: Int64?, isLast: Bool, to reader: LiveReader) {
        let event = LiveEvent(failure: problem, age: age)
        reader.send(
            notice: LiveMessage(event, id: id(isLast: isLast), body: LiveEncoding(bodyOf: event, memory: memory))
        )
    }

    /// The event of the state, made once of each name.
    private mutating func message(_ event: LiveEvent, isLast: Bool) -> LiveMessage {
        let name = Name(kind: event.kind, isLast: isLast)
        if let known = made[name] { return known }
        var event = event
        if event.kind != .cached, event.kind != .changed, let word = update?.word?.combined("cache-status") {
            event.fields?.set("cache-status", word)
        }
        let body =
            if let update, event.body != nil {
                document.encoding(of: update, memory: memory)
            } else {
                LiveEncoding(bodyOf: event, memory: memory)
            }
        let message = LiveMessage(event, id: id(isLast: isLast), body: body)
        made[name] = message
        return message
    }

    private func id(isLast: Bool) -> String? {
        if isLast { return LiveMode.endID }
        return document.needsNumbers ? document.state?.number.map(String.init) ?? "" : nil
    }
}
