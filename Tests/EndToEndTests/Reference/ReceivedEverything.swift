import TestSupport

/// What is settled once all is received: in the end Larder receives the newest state of every object in
/// responses that show it, one after the other. Then every list that it still has must show what the upstream has.
extension ReferenceRun {
    func checkThatEverythingIsKnown() throws {
        tick()
        try settle()
        let scope = Scope(principal: "a", language: "")
        let holdings = reference.state.withLock { $0.states(of: scope.principal) }.last ?? Holdings(of: scope.principal)
        var number = 1_000_000
        for kind in [Kind.user, .label, .issue] {
            for id in holdings.all(kind) {
                number += 1
                let page = Page(of: Ref(kind: kind, id: id))
                try perform(.ask(Ask(number: number, page: page, scope: scope, isForced: true)))
            }
        }
        try settle()
        let state = reference.state.withLock { $0.revision(of: scope.principal) }
        for (ref, members) in holdings.objects {
            for member in members.keys { seen.note(shown: [ReadLog.Fact(scope, ref, member): state], by: number) }
        }
        for page in Page.everything where page.subject == nil {
            number += 1
            let stored = documents[Key(page: page, scope: scope)].map(\.received)
            let answer = try larder.get("/api\(page.target)", ["X-Request-Id": "\(number)", "Authorization": "a"])
            // No response has shown what is gone by now.
            let isThere = stored.allSatisfy { $0.listed.allSatisfy { holdings[Ref(kind: page.kind, id: $0)] != nil } }
            guard answer.isHit, isThere else { continue }
            let judgements = stored.map { judge(answer.text, as: $0, since: seen, mayContradict: false) }
            guard judgements.allSatisfy({ $0.facts == nil }) else { continue }
            let reasons = judgements.map { if case .wrong(let reason) = $0 { "  \(reason)\n" } else { "" } }.joined()
            throw Violation("Larder received everything, and \(page.target) still shows\n  \(answer.text)\n\(reasons)")
        }
    }
}
