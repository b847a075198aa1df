import CachePolicy
import HTTPSemantics
import HTTPServer
import Store

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
    }

    /// What a stream begins with.
    struct Opening {
        /// What its head says of how it comes about.
        let cacheStatus: String
        /// Why the upstream is not asked; nil where it is.
        let refusal: ProblemDocument?
        let retry: Duration
    }

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

    /// Tells the readers what each of them does not know.
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
            if reader.phase == .joining { join(reader, update, opening, &messages) }
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
                if update != nil, !isUpToDate { messages.send(.changed, to: reader) }
                let isSentError = update?.event.problem != nil && !isUpToDate
                if !isSentError { messages.send(failure: problem, age: age(at: now), to: reader) }
            } else if update != nil, !isUpToDate {
                messages.send(isAnswered ? .fresh : .changed, to: reader)
            } else if isAnswered || hasRecovered && reader.phase == .following {
                messages.sendUnchanged(to: reader)
            }
        }
    }

    /// How many have come and were sent nothing yet.
    var joining: Int { readers.count { $0.phase == .joining } }

    /// Begins a stream with what is known.
    private func join(
        _ reader: LiveReader,
        _ update: Update?,
        _ opening: Opening,
        _ messages: inout Messages
    ) {
        var fields = Fields()
        fields.append("Cache-Status", opening.cacheStatus)
        fields.vary(by: demand.upstream.variesBy)
        demand.upstream.addCORS(to: &fields, for: demand.request.fields)
        reader.open(fields, retry: opening.retry)
        reader.phase = opening.refusal == nil ? .opening : .following
        guard let update else {
            if let refusal = opening.refusal { messages.send(failure: refusal, age: nil, to: reader) }
            return
        }
        if let known = state?.number, reader.resumed == known {
            messages.sendUnchanged(to: reader)
            reader.edition = edition
        } else if update.isStored || update.event.problem != nil && opening.refusal != nil {
            messages.send(.cached, to: reader)
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
    private var states: [LiveEvent.Kind: LiveMessage] = [:]
    private var unchanged: LiveMessage?

    init(_ document: LiveDocument, _ update: LiveDocument.Update?, memory: LiveMemory) {
        self.document = document
        self.update = update
        self.memory = memory
    }

    /// Sends the state as an event of this kind; a state that is a problem is an error, whatever the kind.
    mutating func send(_ kind: LiveEvent.Kind, to reader: LiveReader) {
        guard let update else { return }
        let kind = update.event.problem == nil ? kind : .error
        let message = states[kind] ?? make(kind, update)
        states[kind] = message
        reader.send(state: message, edition: document.edition)
    }

    private func make(_ kind: LiveEvent.Kind, _ update: LiveDocument.Update) -> LiveMessage {
        var event = update.event
        event.kind = kind
        let encoding = document.encoding(of: update, memory: memory)
        return LiveMessage(event, number: document.state?.number, body: encoding)
    }

    /// Sends that what the reader has is what there is.
    mutating func sendUnchanged(to reader: LiveReader) {
        guard let update, update.event.problem == nil else { return }
        let message = unchanged ?? notice(update.event.unchanged())
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
