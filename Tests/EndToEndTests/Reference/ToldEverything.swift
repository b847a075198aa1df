import TestSupport

/// A check that knows nothing of the order of observations: in the end Larder is told the newest state of every object by
/// answers about it, one after the other. Then every list that it still has must show what the upstream has.
extension ReferenceRun {
    func checkThatEverythingIsKnown() throws {
        tick()
        try settle()
        let scope = Scope(principal: "a", language: "")
        let holdings = reference.state.withLock { $0.holdings(of: scope.principal, behind: 0) }
        var number = 1_000_000
        for kind in [Kind.user, .label, .issue] {
            for id in holdings.all(kind) {
                number += 1
                let page = Page(of: Ref(kind: kind, id: id))
                try perform(.ask(Ask(number: number, page: page, scope: scope, isForced: true)))
            }
        }
        try settle()
        for page in Page.everything where page.subject == nil {
            number += 1
            let ask = Ask(number: number, page: page, scope: scope)
            // Where several may have stayed, the model does not know which one it is.
            let documents = worlds.compactMap { $0.documents[ask.key] }
            guard documents.allSatisfy(\.rivals.isEmpty) else { continue }
            let before = documents.map(\.received)
            let answer = try larder.get("/api\(page.target)", ["X-Step": "\(number)", "Authorization": "a"])
            guard answer.isHit, let received = before.first, before.allSatisfy({ $0.number == received.number }) else {
                continue
            }
            let isThere = received.listed.allSatisfy { holdings[Ref(kind: page.kind, id: $0)] != nil }
            guard isThere else { continue }
            let source = ValuesNow(received: received, holdings: holdings, setting: setting)
            var renderer = Renderer(
                page,
                received.style,
                isDated: setting.isDated,
                listed: received.listed,
                source: source
            )
            renderer.run()
            guard matches(answer.text[...].utf8, renderer.pieces[...]) else {
                let expected = renderer.pieces.map { $0[0] }.joined()
                throw Violation(
                    "Larder was told everything, and \(page.target) still shows\n  \(answer.text)\ninstead of\n  \(expected)"
                )
            }
        }
    }
}

/// What the upstream has now, in the shape in which an answer was received: what is not declared stays as it came, and
/// what means the same keeps its spelling.
private struct ValuesNow: ValueSource {
    let received: Received
    let holdings: Holdings
    let setting: Setting

    func spellings(_ member: String, of ref: Ref, isStranger: Bool, at place: String) -> Alternatives {
        let own = received.shown(member, of: ref, at: place)
        if let own, setting.undeclared.contains(member) { return [own.spelling] }
        let datum = holdings[ref]?[member] ?? .null
        if let own, own.datum == datum, !isStranger { return [own.spelling] }
        return Set((0..<12).map { Style(number: $0).spell(datum) }).sorted { $0.utf8.count > $1.utf8.count }
    }

    func relation(_ member: String, of ref: Ref) -> Datum { holdings[ref]?[member] ?? .null }
    func pinned(_ member: String, of ref: Ref) -> Datum { received.shown[ref]?[member]?.datum ?? .null }
}
