/// What a client asks of Larder, and what the upstream does should it be asked.
struct Ask: Hashable, Sendable {
    /// Names the request upstream, and those steps that finish it.
    let number: Int
    var method = "GET"
    let page: Page
    let scope: Scope
    var plan = ResponsePlan()
    var edit: Edit?
    /// The user is found by its name.
    var isByName = false
    /// The program that asks, by a field that is not known to be harmless.
    var client = ""
    var isForced = false
    /// Only what is stored is wanted.
    var isOnlyIfCached = false
    /// With the ETags that the clients have got for it.
    var isConditional = false
    var isRaw = false
    var range: Range<Int>?
    /// The range is wanted only of a body that the client has a tag of.
    var isIfRange = false

    var key: Key { Key(page: page, scope: scope) }
    var isWrite: Bool { edit != nil }

    /// The fields that say who asks, and for what form.
    var fields: FieldLines { scope.fields + (client.isEmpty ? [:] : ["X-Client": client]) }
}

/// One step of a history.
enum Step: Hashable, Sendable {
    case ask(Ask)
    /// Lets a held response go.
    case finish(Int)
    /// Lets a held response go, and others read while its commit is held: before it, or before memory has it.
    case finishDuring(Int, [Ask], isCommitted: Bool)
    /// Something changes behind Larder's back.
    case change(String, Edit)
    /// Larder takes in what it was told.
    case settle
    case restart
    case kill
    case clean
}

/// What can happen in a history.
///
/// What a law asks for that the daemon does not do yet stays out of `enabled`; whoever builds it puts it in.
enum StepKind: String, CaseIterable, Sendable {
    case read, forcedRead, conditionalRead, head, range, raw, heldRead
    case brokenRead, laggingList, agedResponse, staleResponse
    case write, heldWrite, silentWrite, partialWrite, lostWrite, failedWrite, create, delete, writeByName
    /// What a list shows changes while the upstream is asked whether the list holds.
    case overtakenRead
    /// Several clients poll a list that changes.
    case polledList
    /// A list is polled whose objects nothing else shows.
    case secludedList
    /// What a list shows is deleted.
    case shrinkingList
    /// Clients read while a commit is on its way into memory.
    case heldCommit
    /// The upstream fails while what a list shows is known but for one object.
    case knownInPart
    /// A user is written to by a name that is in doubt.
    case doubtfulName
    case change, changeOfStructure, creationBehind, deletionBehind
    case settle, restart, kill, clean

    static let enabled: Set<StepKind> = Set(allCases)
}

extension Step: CustomStringConvertible {
    var description: String {
        switch self {
        case .ask(let ask): ask.description
        case .finish(let number): "finish #\(number)"
        case .finishDuring(let number, let readers, let isCommitted):
            "finish #\(number), and \(isCommitted ? "after" : "before") its commit, which is held\n"
                + readers.map { "    \($0)" }.joined(separator: "\n")
        case .change(let principal, let edit):
            "behind Larder's back, of \(principal.isEmpty ? "nobody" : principal): \(edit)"
        case .settle: "settle"
        case .restart: "restart"
        case .kill: "kill -9"
        case .clean: "clean all"
        }
    }
}

extension Ask: CustomStringConvertible {
    var description: String {
        var text = "#\(number) \(method) \(page.target) as \(scope)"
        if isByName { text += ", by its name" }
        if !client.isEmpty { text += ", X-Client: \(client)" }
        if isForced { text += ", no-cache" }
        if isOnlyIfCached { text += ", only-if-cached" }
        if isConditional { text += ", If-None-Match" }
        if isRaw { text += ", raw" }
        if let range { text += ", bytes=\(range.lowerBound)-\(range.upperBound - 1)" }
        if isIfRange { text += ", If-Range" }
        if let edit { text += ": \(edit)" }
        return text + "; if asked, the upstream \(plan)"
    }
}

extension Edit: CustomStringConvertible {
    var description: String {
        switch self {
        case .change(let ref, let member, let number): "\(member) of \(ref) becomes \(number)"
        case .create(let ref, let number): "\(ref) is made (\(number))"
        case .delete(let ref): "\(ref) is deleted"
        }
    }
}

extension ResponsePlan: CustomStringConvertible {
    var description: String {
        var parts: [String] = []
        switch ending {
        case .whole: parts.append("answers")
        case .error(let isDone): parts.append(isDone ? "fails, having done it" : "fails")
        case .cut: parts.append("breaks off")
        case .lost: parts.append("resets the connection, having done it")
        case .partial: parts.append("answers without what was written")
        case .empty: parts.append("answers without a body")
        }
        if isHeld { parts.append(isMadeLate ? "when finished" : "later, with what is there now") }
        if behind > 0 { parts.append("\(behind) changes behind") }
        if control != .plain { parts.append(control.rawValue) }
        if !isFresh { parts.append(isServedStale ? "stale-while-revalidate" : "stale") }
        if let slip { parts.append("shows another \(slip.member) of \(slip.ref) in some places") }
        if age > 0 { parts.append("Age \(age)") }
        parts.append("style \(style), " + ["no ETag", "strong ETag", "weak ETag"][tag])
        return parts.joined(separator: ", ")
    }
}
