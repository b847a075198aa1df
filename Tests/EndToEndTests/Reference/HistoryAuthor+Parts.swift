import TestSupport

/// The steps that histories are made of.
extension HistoryAuthor {
    mutating func principal() -> String {
        random.once(in: 5) ? random.pick(Scope.principals) : mainScope.principal
    }

    mutating func scope() -> Scope {
        Scope(principal: principal(), language: random.once(in: 6) ? random.pick(Scope.languages) : mainScope.language)
    }

    mutating func page() -> Page { random.once(in: 5) ? random.pick(Page.everything) : random.pick(pages) }

    mutating func client() -> String { random.once(in: 4) ? random.pick(["", "cli", "web"]) : mainClient }

    mutating func nextNumber() -> Int {
        number += 1
        return number
    }

    mutating func plan() -> ResponsePlan {
        var plan = ResponsePlan()
        plan.style = random.once(in: 3) ? random.below(Style.count) : 0
        plan.tag = random.below(3)
        if random.once(in: 4) { plan.control = random.pick([.private, .private, .mustRevalidate, .brief]) }
        if random.once(in: 12) {
            plan.slip = Slip(ref: random.pick(Slip.candidates), number: random.below(20))
        }
        return plan
    }

    mutating func read(_ kind: StepKind) -> Ask {
        let page = page()
        var ask = Ask(number: nextNumber(), page: page, scope: scope(), plan: plan())
        ask.client = client()
        switch kind {
        case .forcedRead: ask.isForced = true
        case .conditionalRead: ask.isConditional = true
        case .head: ask.method = "HEAD"
        case .range:
            let start = random.below(60)
            ask.range = start..<start + 1 + random.below(60)
            ask.isIfRange = random.once(in: 2)
        case .raw: ask.isRaw = true
        case .heldRead:
            ask.plan.isHeld = true
            ask.plan.isMadeLate = random.once(in: 2)
            ask.isForced = random.once(in: 2)
        case .brokenRead:
            ask.plan.ending = random.pick([.error(isDone: false), .cut, .lost])
            ask.isForced = random.once(in: 2)
        case .laggingList:
            ask.plan.behind = 1 + random.below(3)
            ask.isForced = random.once(in: 2)
        case .agedResponse:
            ask.plan.age = random.pick([60, 1000, 4000])
            ask.plan.behind = random.below(3)
            ask.isForced = random.once(in: 2)
        case .staleResponse:
            ask.plan.isFresh = false
            ask.plan.isServedStale = servesStale
            ask.isForced = random.once(in: 2)
        default: break
        }
        return ask
    }

    /// A list is asked for twice, and while the second response is on its way one of its objects changes.
    mutating func overtakenRead() -> [Step] {
        let scope = scope()
        let list = random.pick(pages.filter { $0.subject == nil })
        var plan = plan()
        plan.tag = 1 + random.below(2)
        var first = Ask(number: nextNumber(), page: list, scope: scope, plan: plan)
        first.isForced = true
        var second = Ask(number: nextNumber(), page: list, scope: scope, plan: plan)
        second.isForced = true
        second.plan.isHeld = true
        // It is told that what it has holds, or is given the whole, which disagrees with what overlaps with it.
        if random.once(in: 2) { second.plan.tag = 0 }
        let edit = change(structure: random.once(in: 3))
        var third = Ask(number: nextNumber(), page: Page(of: edit.ref), scope: scope)
        if random.once(in: 3) {
            (third.method, third.edit) = ("PATCH", edit)
        } else {
            third.isForced = true
        }
        let behind: [Step] = third.isWrite ? [] : [.change(scope.principal, edit)]
        let settling: [Step] = random.once(in: 2) ? [.settle] : []
        return [.ask(first), .settle, .ask(second)] + behind + [.ask(third)] + settling
            + [.finish(second.number), .settle, .ask(Ask(number: nextNumber(), page: list, scope: scope))]
    }

    /// Clients poll a list while its objects change, behind Larder's back, where others read them, and through it.
    mutating func polledList() -> [Step] {
        let scope = scope()
        let list = random.pick([Page.users, .labels, .issues(nil)])
        var steps: [Step] = []
        for _ in 0..<2 + random.below(3) {
            let edit = change(structure: false)
            var other = Ask(number: nextNumber(), page: Page(of: edit.ref), scope: scope)
            switch random.below(4) {
            case 0: steps.append(.change(scope.principal, edit))
            case 1:
                other.isForced = true
                steps += [.change(scope.principal, edit), .ask(other)]
            case 2:
                (other.method, other.edit) = ("PATCH", edit)
                other.plan.ending = random.pick([.whole, .empty, .partial])
                steps.append(.ask(other))
            default: break
            }
            var poll = Ask(number: nextNumber(), page: list, scope: scope, plan: plan())
            (poll.isForced, poll.client) = (random.once(in: 2), client())
            // Now and then another replica responds, which lags, and more often behind a write.
            if random.once(in: other.isWrite ? 2 : 4) { poll.plan.behind = 1 }
            steps.append(.ask(poll))
            if !random.once(in: 3) { steps.append(.settle) }
            for _ in 0..<1 + random.below(2) {
                var next = Ask(number: nextNumber(), page: list, scope: scope)
                next.client = client()
                steps += [.ask(next), .settle]
            }
        }
        return steps
    }

    /// A list is asked for in any style, one or two of its objects are deleted, and it is asked for again.
    mutating func shrinkingList() -> [Step] {
        let scope = scope()
        let list = random.pick([Page.issues(nil), .issues("open"), .search(0), .search(1)])
        var plan = plan()
        plan.style = random.below(Style.count)
        var first = Ask(number: nextNumber(), page: list, scope: scope, plan: plan)
        first.isForced = true
        var steps: [Step] = [.ask(first), .settle]
        for _ in 0...random.below(2) {
            let ref = Ref(kind: .issue, id: 1 + random.below(4))
            if random.once(in: 2) {
                steps.insert(.change(scope.principal, .create(ref, number: random.below(900))), at: 0)
            }
            var ask = Ask(number: nextNumber(), page: .issue(ref.id), scope: scope)
            if random.once(in: 3) {
                steps.append(.change(scope.principal, .delete(ref)))
                ask.isForced = true
            } else {
                (ask.method, ask.edit, ask.plan.ending) = ("DELETE", .delete(ref), .empty)
            }
            steps.append(.ask(ask))
        }
        return steps + [.ask(Ask(number: nextNumber(), page: list, scope: scope))]
    }

    mutating func write(_ kind: StepKind) -> Ask {
        var plan = plan()
        switch kind {
        case .heldWrite:
            plan.isHeld = true
            plan.isMadeLate = random.once(in: 2)
        case .silentWrite, .delete: plan.ending = .empty
        case .partialWrite: plan.ending = .partial
        case .lostWrite: plan.ending = .lost
        case .failedWrite: plan.ending = .error(isDone: random.once(in: 2))
        case .writeByName: plan.ending = random.pick([.whole, .empty, .empty, .lost])
        default: break
        }
        let scope = scope()
        switch kind {
        case .create:
            let edit = Edit.create(Ref(kind: .issue, id: 1 + random.below(6)), number: random.below(900))
            return Ask(number: nextNumber(), method: "POST", page: .issues(nil), scope: scope, plan: plan, edit: edit)
        case .writeByName:
            let edit = Edit.change(
                Ref(kind: .user, id: 1 + random.below(3)),
                member: random.pick(["login", "name", "karma"]),
                number: random.below(500)
            )
            var ask = Ask(number: nextNumber(), method: "PATCH", page: Page(of: edit.ref), scope: scope, plan: plan)
            (ask.edit, ask.isByName) = (edit, true)
            return ask
        case .delete:
            let id = 1 + random.below(4)
            let edit = Edit.delete(Ref(kind: .issue, id: id))
            return Ask(number: nextNumber(), method: "DELETE", page: .issue(id), scope: scope, plan: plan, edit: edit)
        default:
            let edit = change(structure: random.once(in: 3))
            let method = random.once(in: 4) ? "PUT" : "PATCH"
            return Ask(
                number: nextNumber(),
                method: method,
                page: Page(of: edit.ref),
                scope: scope,
                plan: plan,
                edit: edit
            )
        }
    }

    mutating func change(structure: Bool) -> Edit {
        if structure {
            return .change(
                Ref(kind: .issue, id: 1 + random.below(4)),
                member: random.pick(["user", "labels", "watchers"]),
                number: random.below(64)
            )
        }
        let kind = random.pick([Kind.user, .label, .issue, .issue])
        let members = kind.changeable.filter { !["user", "labels", "watchers"].contains($0) }
        return .change(
            Ref(kind: kind, id: 1 + random.below(3)),
            member: random.pick(members),
            number: random.below(500)
        )
    }
}
