import CachePolicy
import HTTPSemantics
import HTTPServer
import Store

/// A document with open streams, and what they were sent.
///
/// All clients that would get the same response to the same request share it: it is looked up, composed and made into events
/// once. It goes round in a cycle: something happens (`causes`), the document is examined (`ProxyCore.look`), the current
/// response is sent if it differs (`send`), and the time of the next inquiry is set (`due`).
///
/// The upstream loop only; `LiveDocuments` keeps it while it has readers.
final class LiveDocument {
    /// The key of a document: everything in a request that its response, or the permission to ask for one, might depend on.
    struct Key: Hashable {
        /// With its rules: the same upstream of another configuration may give another response.
        let upstream: ObjectIdentifier
        let digest: Digest128
        let view: View
        let base: [UInt8]
        let fields: [UInt8]

        init(_ request: ProxyRequest) {
            upstream = ObjectIdentifier(request.upstream)
            (digest, view, base) = (request.digest, request.view, request.base.bytes)
            fields = StoredHead.encode(request.message.fields)
        }
    }

    /// The response that a GET would get, as last sent.
    struct State {
        let content: Digest128
        /// The number of its events; nil if the store could not give one, or not yet.
        var number: Int64?
        /// The policy that its age is computed from; nil if nothing is stored.
        var policy: StoredPolicy?
    }

    let number: Int
    let key: Key
    let request: ProxyRequest
    private let look: (LiveDocument) -> Void
    fileprivate let memory: LiveMemory
    private(set) var readers: [LiveReader] = []
    var rhythm: LiveRhythm
    /// When the upstream is asked next, in ns of the loop's clock.
    var due = UInt64.max
    /// The objects watched for changes.
    var objects: Set<ObjectID> = []
    var state: State?
    /// The number of states so far.
    var edition = 0
    /// The status of the failure that was sent last; nil if there was none, or it is over.
    var failure: Int?

    // What has happened since the last look.
    private var causes: LiveWatch.Causes = []
    private var conclusion: LiveInquiry.Conclusion?
    private var isLooked = false
    private var isLooking = false
    /// Whether a write or a clean has invalidated the response, and the upstream has not been asked since.
    private(set) var isInvalid = false
    /// Whether the effects of the write are still being committed.
    private var awaitsCommit = false
    /// Whether its objects have changed since the upstream was last asked.
    private(set) var isOutdated = false

    // The inquiries, by number.
    private(set) var inquiry: LiveInquiry?
    /// The inquiry whose response is being examined.
    private var examined: LiveInquiry?
    /// The response that was stored when the inquiry began.
    private(set) var askedAbout: ReadyResponse?
    private(set) var begun = 0
    var concluded = 0
    /// Whether any of the last response was stored.
    private(set) var isKept = true
    private(set) var isOver = false
    /// The latest encoding of its body, while something else retains it.
    weak var encoding: LiveEncoding?
    var encoded: Digest128?

    /// With more streams than this, those opened within a second of the upstream's response cause no further inquiry.
    private static let crowd = 16

    init(
        _ number: Int,
        _ key: Key,
        _ request: ProxyRequest,
        interval: Duration,
        memory: LiveMemory,
        look: @escaping (LiveDocument) -> Void
    ) {
        self.number = number
        self.key = key
        self.request = request
        self.memory = memory
        self.look = look
        rhythm = LiveRhythm(interval: interval)
    }

    // MARK: Readers

    func add(_ reader: LiveReader, now: UInt64) {
        readers.append(reader)
        let isCrowded = readers.count > Self.crowd && rhythm.failures == 0 && concluded == begun
        if isCrowded, let last = rhythm.lastConcluded, now < last + 1_000_000_000, !isInvalid {
            reader.awaited = concluded
        } else {
            reader.awaited = inquiry != nil && !isInvalid ? begun : begun + 1
        }
    }

    func remove(_ reader: LiveReader) { readers.removeAll { $0 === reader } }

    /// Ends it, because it has no more readers.
    func end() {
        isOver = true
        for inquiry in [inquiry, examined] { inquiry?.release() }
        (inquiry, examined, conclusion, askedAbout) = (nil, nil, nil, nil)
    }

    // MARK: Events

    /// Notes events that require a look.
    func note(_ causes: LiveWatch.Causes) {
        self.causes.formUnion(causes)
        if causes.contains(.objects) { isOutdated = true }
    }

    /// Notes that a write or a clean has invalidated it; it is not examined before `invalidationCommitted`.
    func invalidate() {
        isInvalid = true
        awaitsCommit = true
    }

    /// Notes that a write's effects are committed; returns false if the write did not concern this document.
    func invalidationCommitted() -> Bool {
        defer { awaitsCommit = false }
        return awaitsCommit
    }

    /// Requests a look; returns whether it can begin now, rather than after the current one.
    func beginLook() -> Bool {
        isLooked = true
        guard !isLooking else { return false }
        isLooking = true
        return true
    }

    /// Takes what has happened; returns nil if there is nothing more to examine.
    func takeNews() -> (causes: LiveWatch.Causes, conclusion: LiveInquiry.Conclusion?)? {
        guard isLooked, !isOver else {
            isLooking = false
            return nil
        }
        isLooked = false
        defer { (causes, conclusion) = ([], nil) }
        return (causes, conclusion)
    }

    /// Drops events noted since `takeNews`, because the look covers them.
    func forgetCauses() { causes = [] }

    // MARK: Inquiries

    /// Whether the upstream must be asked at once: for new readers, or because of a write.
    var mustAsk: Bool {
        !awaitsCommit && (isInvalid || readers.contains { $0.phase != .following && $0.awaited > begun })
    }

    /// Begins an inquiry; replaces one that a write has outdated.
    func ask(_ fetches: Fetches, about stored: ReadyResponse?) -> LiveInquiry {
        inquiry?.release()
        askedAbout = stored
        begun += 1
        (isInvalid, isOutdated) = (false, false)
        due = .max
        let question = LiveInquiry(request.upstream, fetches: fetches) { [unowned self] conclusion in
            self.conclusion = conclusion
            examined = inquiry
            inquiry = nil
            look(self)
        }
        inquiry = question
        return question
    }

    /// Releases what an examined inquiry holds.
    func releaseExamined() {
        examined?.release()
        examined = nil
        if inquiry == nil { askedAbout = nil }
    }

    /// Notes that no upstream is asked, so that responses from elsewhere count once a write's effects are committed.
    func asksNobody() {
        due = .max
        if !awaitsCommit { isInvalid = false }
    }

    /// Notes the end of an inquiry: whether the upstream failed, and so when it is asked next.
    func concluded(_ conclusion: LiveInquiry.Conclusion, now: UInt64) {
        concluded = begun
        if case .failed = conclusion { return rhythm.concluded(hasFailed: true, now: now) }
        isKept = !conclusion.isUnkept
        rhythm.concluded(hasFailed: false, now: now)
    }
}

/// Sending events to the streams of a document.
extension LiveDocument {
    /// A stored response in the requested view.
    struct StoredResponse {
        let ready: ReadyResponse
        let cacheUse: CacheUse
        /// Whether it is on disk.
        let isCommitted: Bool
    }

    /// The response that a GET would get now, ready to be sent.
    struct Update {
        /// The event, whatever its kind.
        var event: LiveEvent
        let content: Digest128
        /// The stored response in the event, which new readers are shown; nil if it is not stored.
        var stored: StoredResponse?
        /// How the upstream's response came about, if it came from an inquiry.
        var cacheStatus: String?
    }

    /// What a stream begins with.
    struct Opening {
        /// The `Cache-Status` of the stream's head.
        let cacheStatus: String
        /// Why the upstream is not asked; nil if it is.
        let refusal: ProblemDocument?
        /// Whether it is because the mode is offline.
        let isOffline: Bool
        let retry: Duration
    }

    /// Whether a reader may come back and name the last event that it was sent.
    var needsNumbers: Bool { readers.contains { !$0.isOnce } }

    /// Whether this state differs from the one last sent.
    func isNew(_ update: Update) -> Bool { state?.content != update.content }

    /// Makes this the current state.
    func move(to update: Update, number: Int64?) {
        state = State(content: update.content, number: number, policy: update.stored?.ready.policy)
        edition += 1
    }

    /// Gives the current state a number after it was sent without one, and sends the id to its readers.
    func give(_ number: Int64) {
        state?.number = number
        let message = LiveMessage(number: number, memory: memory)
        for reader in readers where reader.edition == edition { reader.send(notice: message) }
    }

    /// The age of the response that was sent last, in seconds.
    func age(at now: Int64) -> Int64? { state?.policy.map { max(0, $0.age(at: now)) } }

    /// Sends each reader the events that it lacks.
    ///
    /// - Parameters:
    ///   - received: the upstream's response as it came, if an inquiry has just brought it.
    ///   - afterInquiry: whether an inquiry has just ended.
    func send(
        _ update: Update?,
        received: Update?,
        problem: ProblemDocument?,
        afterInquiry: Bool,
        opening: Opening,
        now: Int64
    ) {
        if let update, !isNew(update) { state?.policy = update.stored?.ready.policy }
        var messages = Messages(document: self, update: update)
        var endings = Messages(document: self, update: received)
        let hasRecovered = afterInquiry && problem == nil && failure != nil
        let fails = problem.map { failure != $0.status } ?? false
        if afterInquiry { failure = problem?.status }
        for reader in readers {
            if reader.phase == .joining { join(reader, opening, &messages, now: now) }
            let isUpToDate = reader.edition == edition
            let hasConcluded = reader.phase == .opening && reader.awaited <= concluded
            if hasConcluded, !afterInquiry, !isUpToDate {
                // The response that this reader was to share is gone.
                reader.awaited = begun + 1
                continue
            }
            // A reader that was shown nothing begins with the upstream's response; one whose stream ends with it waits for it in
            // any case.
            if reader.phase == .opening, !hasConcluded, reader.edition == nil || reader.isOnce { continue }
            // A response that has been superseded does not end the stream.
            if hasConcluded, reader.isOnce, update == nil, problem == nil { continue }
            if hasConcluded { reader.phase = .following }
            let isLast = hasConcluded && reader.isOnce
            if isLast, problem == nil, let received {
                // Such a stream ends with the upstream's word, whatever is settled.
                if reader.shown == received.content {
                    endings.sendUnchanged(isLast: true, to: reader)
                } else {
                    endings.send(.fresh, isLast: true, to: reader)
                }
            } else if let problem, hasConcluded || fails && reader.phase == .following {
                let isSentError = update?.event.problem != nil && !isUpToDate
                if update != nil, !isUpToDate { messages.send(.changed, isLast: isLast && isSentError, to: reader) }
                if !isSentError { messages.send(failure: problem, age: age(at: now), isLast: isLast, to: reader) }
            } else if update != nil, !isUpToDate {
                messages.send(hasConcluded ? .fresh : .changed, isLast: isLast, to: reader)
            } else if hasConcluded || hasRecovered && reader.phase == .following {
                messages.sendUnchanged(isLast: isLast, to: reader)
            }
            if isLast { reader.end() }
        }
    }

    /// New readers that were sent nothing yet.
    var joining: [LiveReader] { readers.filter { $0.phase == .joining } }

    /// Begins a stream with what is known.
    private func join(_ reader: LiveReader, _ opening: Opening, _ messages: inout Messages, now: Int64) {
        var fields: Fields = ["Cache-Status": opening.cacheStatus]
        fields.vary(by: request.upstream.variesForAll)
        request.upstream.addCORS(to: &fields, for: request.message.fields)
        reader.open(fields, retry: opening.retry)
        reader.phase = opening.refusal == nil ? .opening : .following
        let isLast = reader.isOnce && opening.refusal != nil
        defer { if isLast { reader.end() } }
        guard let update = messages.update else {
            if let refusal = opening.refusal { messages.send(failure: refusal, age: nil, isLast: isLast, to: reader) }
            return
        }
        if let known = state?.number, reader.resumed == known {
            messages.sendUnchanged(isLast: false, to: reader)
            reader.edition = edition
        } else if update.stored != nil || update.event.problem != nil && opening.refusal != nil {
            messages.send(.cached, isLast: isLast && !opening.isOffline, to: reader)
            guard isLast, opening.isOffline, let refusal = opening.refusal else { return }
            messages.send(failure: refusal, age: age(at: now), isLast: true, to: reader)
        }
    }

    /// The encoded body of an event, shared while anything retains it.
    fileprivate func encoding(of update: Update) -> LiveEncoding {
        if let encoding, encoded == update.content { return encoding }
        let made = LiveEncoding(bodyOf: update.event, memory: memory)
        (encoding, encoded) = (made, update.content)
        memory.keep(made)
        return made
    }
}

/// The messages of one round, each made when the first reader needs it.
private struct Messages {
    let document: LiveDocument
    let update: LiveDocument.Update?
    var made: [Key: LiveMessage] = [:]

    struct Key: Hashable {
        let kind: LiveEvent.Kind
        let isLast: Bool
    }

    /// Sends the state as an event of this kind; a state that is a problem is always an error.
    mutating func send(_ kind: LiveEvent.Kind, isLast: Bool, to reader: LiveReader) {
        guard let update else { return }
        var event = update.event
        event.kind = event.problem == nil ? kind : .error
        reader.shown = update.content
        reader.send(state: message(event, isLast: isLast), edition: document.edition)
    }

    /// Informs the reader that its state is current.
    mutating func sendUnchanged(isLast: Bool, to reader: LiveReader) {
        guard let update, update.event.problem == nil else { return }
        reader.send(notice: message(update.event.unchanged(), isLast: isLast))
    }

    /// Sends why the upstream gave no response.
    mutating func send(failure problem: ProblemDocument, age: Int64?, isLast: Bool, to reader: LiveReader) {
        let event = LiveEvent(failure: problem, age: age)
        let body = LiveEncoding(bodyOf: event, memory: document.memory)
        reader.send(notice: LiveMessage(event, id: id(isLast: isLast), body: body))
    }

    /// The message for the state, made once for each kind.
    private mutating func message(_ event: LiveEvent, isLast: Bool) -> LiveMessage {
        let key = Key(kind: event.kind, isLast: isLast)
        if let known = made[key] { return known }
        var event = event
        if event.kind != .cached, event.kind != .changed, let status = update?.cacheStatus {
            event.fields?.set("cache-status", status)
        }
        let body =
            if let update, event.body != nil {
                document.encoding(of: update)
            } else {
                LiveEncoding(bodyOf: event, memory: document.memory)
            }
        let message = LiveMessage(event, id: id(isLast: isLast), body: body)
        made[key] = message
        return message
    }

    private func id(isLast: Bool) -> String? {
        if isLast { return LiveMode.endID }
        return document.needsNumbers ? document.state?.number.map(String.init) ?? "" : nil
    }
}
