/// A random history: how Larder is set up, and what happens.
struct History: Sendable {
    let seed: UInt64
    let setting: Setting
    var steps: [Step]

    /// The history that a seed stands for.
    ///
    /// - Parameter kinds: what may happen in it.
    init(seed: UInt64, length: Int, kinds: Set<StepKind> = StepKind.enabled) {
        var author = HistoryAuthor(seed: seed, kinds: kinds)
        self.seed = seed
        setting = author.setting()
        steps = author.steps(length)
    }
}

extension History: CustomStringConvertible {
    var description: String {
        "seed \(seed), \(setting)\n" + steps.map { "  \($0)\n" }.joined()
    }
}

/// Makes histories up.
private struct HistoryAuthor {
    var random: SeededGenerator
    let kinds: Set<StepKind>
    /// What most requests are for: a history in which everything is asked for seldom meets anything twice.
    let pages: [Page]
    let mainScope: Scope
    /// Which answers are held at this point.
    var held: [Int] = []
    var number = 0

    init(seed: UInt64, kinds: Set<StepKind>) {
        var random = SeededGenerator(seed: seed)
        let lists = Page.everything.filter { $0.subject == nil }
        pages = (0..<3).map { _ in random.pick(lists) } + (0..<5).map { _ in random.pick(Page.everything) }
        mainScope = Scope(principal: random.pick(["a", "a", "b", ""]), language: random.once(in: 4) ? "de" : "")
        self.random = random
        self.kinds = kinds
    }

    mutating func setting() -> Setting {
        Setting(
            dating: random.pick(Setting.Dating.likely),
            hasLag: random.once(in: 2),
            onDelete: random.pick(Setting.Deletion.allCases),
            memory: random.pick(Setting.memories),
            disk: random.pick(["1GiB", "4MiB"]),
            bulk: random.once(in: 10) ? 40_000 : 0,
            isFollowed: random.once(in: 4)
        )
    }

    mutating func steps(_ length: Int) -> [Step] {
        var steps: [Step] = []
        while steps.count < length {
            for step in next() {
                if case .ask(let ask) = step, ask.plan.isHeld { held.append(ask.number) }
                steps.append(step)
            }
            if !held.isEmpty, random.once(in: 4) { steps.append(.finish(held.remove(at: random.below(held.count)))) }
            if kinds.contains(.settle), random.once(in: 5) { steps.append(.settle) }
        }
        return steps
    }

    private mutating func next() -> [Step] {
        let kind = pickKind()
        guard kinds.contains(kind) else { return [] }
        switch kind {
        case .read, .forcedRead, .conditionalRead, .head, .range, .raw, .heldRead, .brokenRead, .laggingList,
            .agedAnswer,
            .staleAnswer:
            return [.ask(read(kind))]
        case .write, .heldWrite, .silentWrite, .lostWrite, .failedWrite, .create, .delete: return [.ask(write(kind))]
        case .overtakenRead: return overtakenRead()
        case .change: return [.change(principal(), change(structure: false))]
        case .changeOfStructure: return [.change(principal(), change(structure: true))]
        case .creationBehind:
            return [
                .change(principal(), .create(Ref(kind: .issue, id: random.below(4) + 1), number: random.below(900)))
            ]
        case .deletionBehind: return [.change(principal(), .delete(Ref(kind: .issue, id: random.below(4) + 1)))]
        case .settle: return [.settle]
        case .kill:
            held = []
            return random.once(in: 2) ? [.settle, .kill] : [.kill]
        case .restart, .clean: return [kind == .restart ? .restart : .clean]
        }
    }

    /// Held answers are let go soon; restarts are dear, and rare.
    private mutating func pickKind() -> StepKind {
        let roll = random.below(1000)
        switch roll {
        case ..<365: return .read
        case ..<380: return .overtakenRead
        case ..<430: return .forcedRead
        case ..<470: return .conditionalRead
        case ..<490: return .head
        case ..<510: return .range
        case ..<530: return .raw
        case ..<600: return .heldRead
        case ..<630: return .brokenRead
        case ..<660: return .laggingList
        case ..<680: return .agedAnswer
        case ..<700: return .staleAnswer
        case ..<760: return .write
        case ..<785: return .heldWrite
        case ..<800: return .silentWrite
        case ..<815: return .lostWrite
        case ..<825: return .failedWrite
        case ..<835: return .create
        case ..<845: return .delete
        case ..<930: return .change
        case ..<970: return .changeOfStructure
        case ..<976: return .creationBehind
        case ..<982: return .deletionBehind
        case ..<984: return .restart
        case ..<987: return .kill
        case ..<989: return .clean
        default: return .settle
        }
    }

    // MARK: Parts

    private mutating func principal() -> String {
        random.once(in: 5) ? random.pick(Scope.principals) : mainScope.principal
    }

    private mutating func scope() -> Scope {
        Scope(principal: principal(), language: random.once(in: 6) ? random.pick(Scope.languages) : mainScope.language)
    }

    private mutating func page() -> Page { random.once(in: 5) ? random.pick(Page.everything) : random.pick(pages) }

    private mutating func nextNumber() -> Int {
        number += 1
        return number
    }

    private mutating func plan() -> Plan {
        var plan = Plan()
        plan.style = random.once(in: 3) ? random.below(48) : 0
        plan.tag = random.below(3)
        if random.once(in: 12) {
            plan.slip = Slip(ref: random.pick(Slip.candidates), number: random.below(20))
        }
        return plan
    }

    private mutating func read(_ kind: StepKind) -> Ask {
        let page = page()
        var ask = Ask(number: nextNumber(), page: page, scope: scope(), plan: plan())
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
        case .agedAnswer:
            ask.plan.age = random.pick([1000, 4000])
            ask.isForced = random.once(in: 2)
        case .staleAnswer:
            ask.plan.isFresh = false
            ask.plan.isServedStale = random.once(in: 2)
            ask.isForced = random.once(in: 2)
        default: break
        }
        return ask
    }

    /// A list is asked for twice, and while the second answer is on its way one of its objects changes.
    private mutating func overtakenRead() -> [Step] {
        let scope = scope()
        let list = random.pick(pages.filter { $0.subject == nil })
        var plan = plan()
        plan.tag = 1 + random.below(2)
        var first = Ask(number: nextNumber(), page: list, scope: scope, plan: plan)
        first.isForced = true
        var second = Ask(number: nextNumber(), page: list, scope: scope, plan: plan)
        second.isForced = true
        second.plan.isHeld = true
        let edit = change(structure: random.once(in: 3))
        var third = Ask(number: nextNumber(), page: Page(of: edit.ref), scope: scope)
        if random.once(in: 3) {
            (third.method, third.edit) = ("PATCH", edit)
        } else {
            third.isForced = true
        }
        let behind: [Step] = third.isWrite ? [] : [.change(scope.principal, edit)]
        let settling: [Step] = random.once(in: 2) ? [.settle] : []
        return [.ask(first), .settle, .ask(second)] + behind + [.ask(third)] + settling + [.finish(second.number)]
    }

    private mutating func write(_ kind: StepKind) -> Ask {
        var plan = plan()
        switch kind {
        case .heldWrite:
            plan.isHeld = true
            plan.isMadeLate = random.once(in: 2)
        case .silentWrite, .delete: plan.ending = .empty
        case .lostWrite: plan.ending = .lost
        case .failedWrite: plan.ending = .error(isDone: random.once(in: 2))
        default: break
        }
        let scope = scope()
        switch kind {
        case .create:
            let edit = Edit.create(Ref(kind: .issue, id: 1 + random.below(6)), number: random.below(900))
            return Ask(number: nextNumber(), method: "POST", page: .issues(nil), scope: scope, plan: plan, edit: edit)
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

    private mutating func change(structure: Bool) -> Edit {
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
