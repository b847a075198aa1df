import CachePolicy
import HTTPSemantics
import HTTPServer
import Settings
import Store

/// A document with open streams.
///
/// All clients that would get the same response to the same request share it: it is looked up, composed and made into events
/// once. `Following` decides what happens; this class performs it.
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
            fields = request.message.fields.encoded
        }
    }

    let number: Int
    let key: Key
    let request: ProxyRequest
    private(set) var following: Following
    private(set) var readers: [Int: LiveClient] = [:]
    var watched = WatchedObjects()
    /// The inquiry under way, or the one being examined.
    private(set) var inquiry: LiveInquiry?
    private let look: () -> Void
    fileprivate let memory: LiveMemory
    /// The policy that the age of the response sent last is computed from; nil if it is not stored.
    private var policy: StoredPolicy?
    /// The latest encoding of its body, while something else retains it.
    private weak var encoding: LiveEncoding?
    private var encoded: Digest128?

    init(_ number: Int, _ key: Key, _ request: ProxyRequest, memory: LiveMemory, look: @escaping () -> Void) {
        (self.number, self.key, self.request, self.memory, self.look) = (number, key, request, memory, look)
        following = Following(interval: request.upstream.daemon.live.interval)
    }

    var isOver: Bool { following.isOver }

    func add(_ reader: LiveClient, _ mode: LiveMode, _ number: Int, now: UInt64) {
        readers[number] = reader
        handle(.joined(Following.Reader(number, mode), now: now))
    }

    func remove(_ number: Int) {
        readers[number] = nil
        handle(.left(number))
        if isOver { release() }
    }

    /// Processes an event other than `looked`.
    func handle(_ event: Following.Event) { if following.handle(event).contains(.look) { look() } }

    /// Begins a look; returns the response to examine.
    func startLook() -> LiveInquiry.Conclusion? {
        handle(.lookBegan)
        return following.inquiry == .examined ? inquiry?.conclusion : nil
    }

    /// Begins an inquiry; replaces one that a write has outdated.
    func ask(_ fetches: Fetches, about stored: ReadyResponse?) -> LiveInquiry {
        release()
        let question = LiveInquiry(request.upstream, about: stored, fetches: fetches) { [unowned self] in
            handle(.answered)
        }
        inquiry = question
        return question
    }

    private func release() {
        inquiry?.release()
        inquiry = nil
    }
}

extension LiveDocument {
    /// A stored response in the requested view.
    struct StoredResponse {
        let ready: ReadyResponse
        let cacheUse: CacheUse
        let isCommitted: Bool
    }

    /// The response that a GET would get now, ready to be sent.
    struct Update {
        var event: LiveEvent
        let content: Digest128
        /// The stored response in the event, which new readers are shown; nil if it is not stored.
        var stored: StoredResponse?
        /// How the upstream's response came about, if it came from an inquiry.
        var cacheStatus: String?
    }

    /// What a look has found to send.
    struct News {
        let update: Update?
        /// The upstream's response as it came, if an inquiry has brought it.
        let received: Update?
        /// Why the inquiry brought no response.
        let failure: ProblemDocument?
        /// Why the upstream is not asked; nil if it is.
        let refusal: ProblemDocument?
        let cacheStatus: String
        let now: Int64
    }

    /// Ends a look: sends what it has found.
    ///
    /// - Parameter ask: called if the upstream is to be asked now.
    func looked(_ finding: Following.Finding, _ news: News, ask: () -> Void) {
        let actions = following.handle(.looked(finding))
        if let update = news.update, update.content == following.state?.content { policy = update.stored?.ready.policy }
        let age = policy.map { max(0, $0.age(at: news.now)) }
        var messages = Messages(document: self, news: news, age: age)
        for action in actions {
            switch action {
            case .look: look()
            case .number(let ids):
                guard let number = following.state?.number else { continue }
                let message = LiveMessage(number: number, memory: memory)
                for id in ids { readers[id]?.send(message, isState: false) }
            case .open(let id, let isOnce):
                var fields: Fields = ["Cache-Status": news.cacheStatus]
                fields.vary(by: request.upstream.variesForAll)
                request.upstream.addCORS(to: &fields, for: request.message.fields)
                readers[id]?.open(fields, retry: isOnce ? nil : request.upstream.daemon.live.retry)
            case .send(let id, let kind, let isLast):
                guard let reader = readers[id], let message = messages.message(kind, isLast: isLast) else { continue }
                reader.send(message, isState: kind.isState)
            case .end(let id): readers[id]?.end()
            case .release: release()
            case .ask: if !isOver { ask() }
            }
        }
    }

    /// The encoded body of an event, shared while anything retains it.
    fileprivate func encoding(of update: Update) -> LiveEncoding {
        if let encoding, encoded == update.content { return encoding }
        let made = LiveEncoding(bodyOf: update.event, memory: memory)
        (encoding, encoded) = (made, update.content)
        memory.remember(made)
        return made
    }
}

/// The messages of one look, each made when the first reader needs it.
private struct Messages {
    let document: LiveDocument
    let news: LiveDocument.News
    let age: Int64?
    var made: [Following.Message: [Bool: LiveMessage]] = [:]

    mutating func message(_ kind: Following.Message, isLast: Bool) -> LiveMessage? {
        if let known = made[kind]?[isLast] { return known }
        guard let (event, update) = event(kind) else { return nil }
        let body =
            if let update, event.body != nil {
                document.encoding(of: update)
            } else {
                LiveEncoding(bodyOf: event, memory: document.memory)
            }
        let number = document.following.state?.number
        let id = isLast ? LiveMode.endID : document.following.needsNumbers ? number.map(String.init) ?? "" : nil
        let message = LiveMessage(event, id: id, body: body)
        made[kind, default: [:]][isLast] = message
        return message
    }

    private func event(_ kind: Following.Message) -> (LiveEvent, LiveDocument.Update?)? {
        switch kind {
        case .state(let kind): news.update.map { (event(of: $0, as: $0.event.problem == nil ? kind : .error), $0) }
        case .received: news.received.map { (event(of: $0, as: .fresh), $0) }
        case .unchanged: news.update.map { (event(of: $0, as: .unchanged), nil) }
        case .unchangedReceived: news.received.map { (event(of: $0, as: .unchanged), nil) }
        case .failure: news.failure.map { (LiveEvent(failure: $0, age: age), nil) }
        case .refusal: news.refusal.map { (LiveEvent(failure: $0, age: news.update == nil ? nil : age), nil) }
        }
    }

    private func event(of update: LiveDocument.Update, as kind: LiveEvent.Kind) -> LiveEvent {
        var event = update.event
        event.kind = kind
        if kind == .unchanged { event.body = nil }
        if kind != .cached, kind != .changed, let status = update.cacheStatus {
            event.fields?.set("cache-status", status)
        }
        return event
    }
}
