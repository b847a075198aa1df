import CachePolicy
import HTTPSemantics

/// Events made of responses.
extension LiveEvent {
    /// The event of a ready response, as it is served now.
    ///
    /// - Parameter cookies: those for the one client that gets it.
    init(
        _ kind: Kind,
        _ ready: ReadyResponse,
        as cacheUse: CacheUse,
        isCollapsed: Bool = false,
        cookies: [Field] = [],
        now: Int64
    ) {
        var fields = ready.fields
        ready.addHistory(to: &fields, as: cacheUse, sent: ready.answer.status, isCollapsed: isCollapsed, now: now)
        fields.lines += cookies
        self.init(
            kind: kind,
            status: ready.answer.status,
            age: max(0, ready.policy.age(at: now)),
            fields: Self.shown(fields),
            body: LiveBody(ready.body)
        )
    }

    /// What the upstream says, in fields that are the client's already.
    init(fresh status: Int, _ fields: Fields, _ body: LiveBody) {
        self.init(
            kind: .fresh,
            status: status,
            age: AgeField.parse(fields) ?? 0,
            fields: Self.shown(fields),
            body: body
        )
    }

    /// Why there is no response.
    ///
    /// - Parameters:
    ///   - age: of what was shown.
    ///   - answer: the upstream's error.
    init(failure problem: ProblemDocument, age: Int64?, _ answer: LiveEvent? = nil) {
        self.init(
            kind: .error,
            problem: problem,
            status: answer?.status,
            age: age,
            fields: answer?.fields,
            body: answer?.body
        )
    }

    /// The same without the body.
    func unchanged() -> LiveEvent {
        var event = self
        event.kind = .unchanged
        event.body = nil
        return event
    }

    /// The fields that an event shows: not those that are for a browser and this exchange alone.
    private static func shown(_ fields: Fields) -> Fields {
        var shown = fields
        CORS.removeFields(from: &shown)
        return shown
    }
}
