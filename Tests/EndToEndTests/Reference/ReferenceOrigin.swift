/// What the upstream is to do with one request.
struct Plan: Hashable, Sendable {
    enum Ending: Hashable, Sendable {
        case whole
        /// An error answer. For a write: whether it was done nevertheless.
        case error(isDone: Bool)
        /// The answer breaks off within its body.
        case cut
        /// The connection is reset after the request was read, and done.
        case lost
        /// Writes only: an answer that says nothing.
        case empty
    }

    var ending = Ending.whole
    /// The answer waits for its step to be finished.
    var isHeld = false
    /// A held answer is made when it is let go, not when it was asked for.
    var isMadeLate = false
    /// A list shows what there was so many changes ago.
    var behind = 0
    var isFresh = true
    /// Seconds.
    var age = 0
    var style = 0
    /// 0: none, 1: strong, 2: weak.
    var tag = 1
}

/// What a write does.
enum Edit: Hashable, Sendable {
    case change(Ref, member: String, number: Int)
    case create(Ref, number: Int)
    case delete(Ref)

    var ref: Ref {
        switch self {
        case .change(let ref, _, _), .create(let ref, _), .delete(let ref): ref
        }
    }

    func apply(to holdings: inout Holdings) {
        switch self {
        case .change(let ref, let member, let number): holdings.change(ref, member, to: number)
        case .create(let ref, let number): holdings.create(ref, number: number)
        case .delete(let ref): holdings.delete(ref)
        }
    }
}

/// One request that reached the upstream, and what was said to it.
struct ReferenceExchange: Sendable {
    let step: Int
    let method: String
    let key: Key
    /// The event during which it arrived.
    let arrival: Int
    var status = 0
    /// What was sent, or would have been to a GET without conditions.
    var received: Received?
    var ending = Plan.Ending.whole
    /// The first write that was answered while this was on its way (law 3).
    var overtakenAt: Int?
    /// Whether a write to the same path was answered while this was on its way (law 10).
    var isInvalidated = false
    /// Whether its answer has been made up.
    var isMade = false
    /// The event with which its client had the answer.
    var endedAt: Int?

    var isOver: Bool { endedAt != nil }
}

/// The upstream of the reference model, served by a real ``Origin``.
final class ReferenceOrigin: Sendable {
    struct State {
        /// What there is now, by principal.
        var holdings: [String: Holdings] = [:]
        /// What there was after each change.
        var past: [String: [Holdings]] = [:]
        var plans: [Int: (plan: Plan, edit: Edit?)] = [:]
        var gates: [Int: Gate] = [:]
        var exchanges: [ReferenceExchange] = []
        /// The event that is going on.
        var now = 0
        let isDated: Bool
    }

    let state: Monitor<State>
    let origin: Origin

    init(isDated: Bool) throws {
        let state = Monitor(State(isDated: isDated))
        for principal in Scope.principals {
            state.withLock { $0.holdings[principal] = Holdings(of: principal) }
        }
        self.state = state
        origin = try Origin { Self.answer($0, state) }
    }

    /// Changes something behind Larder's back.
    func change(_ principal: String, _ edit: Edit) { state.withLock { $0.apply(edit, principal) } }

    private static func answer(_ request: Origin.Request, _ state: Monitor<State>) -> Answer {
        guard let step = request["X-Step"].flatMap({ Int($0) }), let page = Page(target: request.target) else {
            return .empty(204)
        }
        let scope = Scope(principal: request["Authorization"] ?? "", language: request["Accept-Language"] ?? "")
        let (number, plan, gate) = state.withLock { state in
            state.exchanges.append(
                ReferenceExchange(
                    step: step,
                    method: request.method,
                    key: Key(page: page, scope: scope),
                    arrival: state.now
                )
            )
            return (state.exchanges.count - 1, state.plans[step]?.plan ?? Plan(), state.gates[step])
        }
        var made = plan.isMadeLate ? nil : state.withLock { $0.make(number, request, plan) }
        if plan.isHeld { gate?.wait() }
        made = made ?? state.withLock { $0.make(number, request, plan) }
        return made ?? .reset
    }
}

extension Scope {
    static let principals = ["", "a", "b"]
    static let languages = ["", "de"]
}

extension Page {
    /// The page about one object.
    init(of ref: Ref) {
        switch ref.kind {
        case .user: self = .user(ref.id)
        case .label: self = .label(ref.id)
        case .issue: self = .issue(ref.id)
        }
    }

    /// Reads a request's target.
    init?(target: String) {
        guard let page = Page.known[target] else { return nil }
        self = page
    }

    private static let known: [String: Page] = {
        var known: [String: Page] = [:]
        for page in everything + (5...9).map({ .issue($0) }) { known[page.target] = page }
        return known
    }()
}

// MARK: - Making answers

extension ReferenceOrigin.State {
    mutating func apply(_ edit: Edit, _ principal: String) {
        guard var holdings = holdings[principal] else { return }
        past[principal, default: []].append(holdings)
        edit.apply(to: &holdings)
        self.holdings[principal] = holdings
    }

    /// What the upstream has of a principal, or had so many changes ago.
    func holdings(of principal: String, behind: Int) -> Holdings {
        let past = past[principal] ?? []
        if behind > 0, past.count >= behind { return past[past.count - behind] }
        return holdings[principal] ?? Holdings(of: principal)
    }

    /// A page as the upstream shows it now; nil where there is none.
    func page(_ key: Key, _ plan: Plan, number: Int) -> Received? {
        let isList = key.page.subject == nil
        let holdings = holdings(of: key.scope.principal, behind: isList ? plan.behind : 0)
        if let subject = key.page.subject, holdings[subject] == nil { return nil }
        let style = Style(number: plan.style)
        let values = UpstreamValues(holdings: holdings, scope: key.scope, page: key.page, style: style)
        let listed = key.page.listed(in: holdings)
        var renderer = Renderer(key.page, style, isDated: isDated, listed: listed, source: values)
        renderer.run()
        let body = renderer.pieces.map { $0[0] }.joined()
        var plain = Renderer(
            key.page,
            Style(number: 0),
            isDated: isDated,
            listed: listed,
            source: UpstreamValues(holdings: holdings, scope: key.scope, page: key.page, style: Style(number: 0))
        )
        plain.run()
        let meaning = plain.pieces.map { $0[0] }.joined()
        let etag: String? =
            switch plan.tag {
            case 1: "\"s\(hash(body + key.description))\""
            case 2: "W/\"w\(hash(meaning + key.description))\""
            default: nil
            }
        return Received(
            number: number,
            page: key.page,
            scope: key.scope,
            style: style,
            isDated: isDated,
            listed: listed,
            shown: values.everything(on: key.page, listed: listed, isDated: isDated),
            body: body,
            etag: etag,
            isFresh: plan.isFresh && plan.age < 3600,
            age: plan.age * 1_000_000
        )
    }

    /// Answers a request, and does what it asks for.
    mutating func make(_ number: Int, _ request: Origin.Request, _ plan: Plan) -> Answer {
        exchanges[number].ending = plan.ending
        exchanges[number].isMade = true
        let key = exchanges[number].key
        let isWrite = request.method != "GET" && request.method != "HEAD"
        if isWrite, let edit = plans[exchanges[number].step]?.edit {
            if plan.ending != .error(isDone: false) { apply(edit, key.scope.principal) }
            return answerWrite(number, edit, plan)
        }
        switch plan.ending {
        case .error:
            exchanges[number].status = 500
            return .json(#"{"message":"broken"}"#, ["Cache-Control": "no-store"], status: 500)
        case .lost: return .reset
        case .whole, .cut, .empty: break
        }
        guard let received = page(key, plan, number: number) else {
            exchanges[number].status = 404
            let body = #"{"message":"Not Found"}"#
            exchanges[number].received = .absent(key, number: number, body: body)
            return .json(body, ["Cache-Control": "max-age=0"], status: 404)
        }
        exchanges[number].received = received
        if let etag = received.etag, request["If-None-Match"]?.contains(etag) == true {
            exchanges[number].status = 304
            // Nothing that could break off.
            exchanges[number].ending = .whole
            return .notModified(fields(received, plan))
        }
        exchanges[number].status = 200
        let answer = Answer.json(received.body, fields(received, plan))
        guard plan.ending == .cut, request.method == "GET" else { return answer }
        guard case .send(let head) = answer.steps[0], case .send(let body) = answer.steps[1] else { return answer }
        return Answer(steps: [.send(head), .send(Array(body.prefix(body.count / 2))), .reset])
    }

    private mutating func answerWrite(_ number: Int, _ edit: Edit, _ plan: Plan) -> Answer {
        let subject = Page(of: edit.ref)
        let key = Key(page: subject, scope: exchanges[number].key.scope)
        switch plan.ending {
        case .error:
            exchanges[number].status = 500
            return .json(#"{"message":"broken"}"#, status: 500)
        case .lost: return .reset
        case .whole, .cut, .empty: break
        }
        guard let received = page(key, plan, number: number), plan.ending == .whole else {
            exchanges[number].status = 204
            return .empty(204)
        }
        exchanges[number].received = received
        let isNew = exchanges[number].method == "POST"
        exchanges[number].status = isNew ? 201 : 200
        return .json(received.body, isNew ? ["Location": subject.target] : [:], status: isNew ? 201 : 200)
    }

    private func fields(_ received: Received, _ plan: Plan) -> FieldLines {
        var fields: FieldLines = [
            "Cache-Control": plan.isFresh ? "max-age=3600" : "max-age=0", "Vary": "Accept-Language",
        ]
        if plan.age > 0 { fields.append("Age", "\(plan.age)") }
        if let etag = received.etag { fields.append("ETag", etag) }
        return fields
    }

    private func hash(_ text: String) -> String {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return String(hash, radix: 16)
    }
}

extension Received {
    /// What is said of something that is not there.
    static func absent(_ key: Key, number: Int, body: String) -> Received {
        Received(
            number: number,
            page: key.page,
            scope: key.scope,
            style: Style(number: 0),
            isDated: false,
            listed: [],
            shown: [:],
            body: body,
            etag: nil,
            isFresh: false,
            age: 0,
            hasObjects: false
        )
    }
}

/// The upstream's own values at one moment.
private struct UpstreamValues: ValueSource {
    let holdings: Holdings
    let scope: Scope
    let page: Page
    let style: Style

    private func datum(_ member: String, of ref: Ref) -> Datum {
        if member == "score" {
            guard case .search(let query) = page else { return .null }
            return .number(ref.id + query)
        }
        let datum = holdings[ref]?[member] ?? .null
        guard case .text(let text) = datum, Kind.translated.contains(member), !scope.language.isEmpty else {
            return datum
        }
        return .text("\(text) (\(scope.language))")
    }

    func spellings(_ member: String, of ref: Ref, isStranger: Bool) -> Alternatives {
        [style.spell(datum(member, of: ref))]
    }

    func relation(_ member: String, of ref: Ref) -> Datum { datum(member, of: ref) }
    func pinned(_ member: String, of ref: Ref) -> Datum { datum(member, of: ref) }

    /// Every member of every object that a page shows.
    func everything(on page: Page, listed: [Int], isDated: Bool) -> [Ref: [String: Shown]] {
        var shown: [Ref: [String: Shown]] = [:]
        let roots = page.subject.map { [$0] } ?? listed.map { Ref(kind: page.kind, id: $0) }
        for ref in roots { note(ref, page.shape(dated: isDated), &shown) }
        return shown
    }

    private func note(_ ref: Ref, _ shape: [Field], _ shown: inout [Ref: [String: Shown]]) {
        if shown[ref] == nil { shown[ref] = [:] }
        for field in shape {
            let datum = datum(field.name, of: ref)
            switch field {
            case .id: continue
            case .plain: shown[ref]?[field.name] = Shown(datum: datum, spelling: style.spell(datum))
            case .bare, .one, .many, .keyed: shown[ref]?[field.name] = Shown(datum: datum, spelling: "")
            }
            switch field {
            case .one(_, let inner): if let id = datum.one { note(Ref(kind: .user, id: id), inner, &shown) }
            case .many(_, let inner): for id in datum.many { note(Ref(kind: .label, id: id), inner, &shown) }
            case .keyed(_, let inner): for id in datum.keyed.values { note(Ref(kind: .user, id: id), inner, &shown) }
            case .id, .plain, .bare: continue
            }
        }
    }
}
