import TestSupport

/// Makes histories up.
struct HistoryAuthor {
    var random: SeededGenerator
    let kinds: Set<StepKind>
    /// What most requests are for: a history in which everything is asked for seldom meets anything twice.
    let pages: [Page]
    let mainScope: Scope
    /// The program that most requests come from.
    let mainClient: String
    /// Whether answers may be served stale while they are asked for again.
    ///
    /// What fails behind one is tried again seconds later, when nobody waits for it: there, nothing fails.
    let servesStale: Bool
    /// Which answers are held at this point.
    var held: [Int] = []
    var number = 0

    init(seed: UInt64, kinds: Set<StepKind>) {
        var random = SeededGenerator(seed: seed)
        let lists = Page.everything.filter { $0.subject == nil }
        pages = (0..<3).map { _ in random.pick(lists) } + (0..<5).map { _ in random.pick(Page.everything) }
        mainScope = Scope(principal: random.pick(["a", "a", "b", ""]), language: random.once(in: 4) ? "de" : "")
        servesStale = random.once(in: 3)
        mainClient = random.pick(["", "", "cli"])
        self.random = random
        self.kinds = servesStale ? kinds.subtracting([.brokenRead, .knownInPart]) : kinds
    }

    mutating func setting() -> Setting {
        let lag = random.pick(Setting.Lag.likely)
        return Setting(
            dating: random.pick(Setting.Dating.likely),
            lag: lag,
            withhold: lag == .usual ? .usual : random.pick(Setting.Withhold.likely),
            onDelete: random.pick(Setting.Deletion.allCases),
            memory: random.pick(Setting.memories),
            disk: random.pick(["1GiB", "4MiB"]),
            bulk: random.once(in: 10) ? 40_000 : 0,
            isGated: random.once(in: 2),
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
            if kinds.contains(.settle), random.once(in: 3) { steps.append(.settle) }
        }
        return steps
    }

    private mutating func next() -> [Step] {
        let kind = pickKind()
        guard kinds.contains(kind) else { return [] }
        switch kind {
        case .read, .forcedRead, .conditionalRead, .head, .range, .raw, .heldRead, .brokenRead, .laggingList,
            .agedResponse,
            .staleResponse:
            return [.ask(read(kind))]
        case .write, .heldWrite, .silentWrite, .partialWrite, .lostWrite, .failedWrite, .create, .delete, .writeByName:
            return [.ask(write(kind))]
        case .overtakenRead: return overtakenRead()
        case .polledList: return polledList()
        case .shrinkingList: return shrinkingList()
        case .secludedList: return secludedList()
        case .heldCommit: return heldCommit()
        case .knownInPart: return knownInPart()
        case .doubtfulName: return doubtfulName()
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
        case ..<310: return .read
        case ..<320: return .secludedList
        case ..<328: return .partialWrite
        case ..<340: return .heldCommit
        case ..<345: return .knownInPart
        case ..<350: return .doubtfulName
        case ..<365: return .shrinkingList
        case ..<380: return .overtakenRead
        case ..<395: return .polledList
        case ..<405: return .writeByName
        case ..<430: return .forcedRead
        case ..<470: return .conditionalRead
        case ..<490: return .head
        case ..<510: return .range
        case ..<530: return .raw
        case ..<600: return .heldRead
        case ..<630: return .brokenRead
        case ..<660: return .laggingList
        case ..<680: return .agedResponse
        case ..<700: return .staleResponse
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
}
