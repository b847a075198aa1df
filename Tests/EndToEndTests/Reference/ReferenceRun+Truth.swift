import Foundation
import TestSupport

/// The law of knowledge, by what was true: what is served from the cache was true at some time, and not before what was
/// served before.
extension ReferenceRun {
    /// A body served from the cache, looked at as a rendering of one of the responses that may be stored.
    enum Judgement {
        /// It is one, and shows these facts as they first were in these states.
        case sound([ReadLog.Fact: Int])
        case wrong(String)

        var facts: [ReadLog.Fact: Int]? { if case .sound(let facts) = self { facts } else { nil } }
    }

    /// - Parameters:
    ///   - log: what had been seen when it was asked for.
    ///   - mayContradict: whether a response that disagrees with itself may be shown as it came.
    ///   - isInDoubt: whether it says that it may be older than what was passed on.
    ///   - isSubstitute: whether it stands in for an error: objects that are not known are shown as received (law 6).
    ///   - client: the program that asked for it.
    func judge(
        _ body: String,
        as received: Received,
        since log: ReadLog,
        mayContradict: Bool = true,
        isInDoubt: Bool = true,
        isSubstitute: Bool = false,
        client: String = ""
    ) -> Judgement {
        guard received.hasObjects else {
            return body == received.body ? .sound([:]) : .wrong("it is not as it was received")
        }
        let json = try? JSONSerialization.jsonObject(with: Data(body.utf8))
        guard let served = Served(json, page: received.page, isDated: received.isDated) else {
            return .wrong("it is not what \(received.page.target) looks like")
        }
        var renderer = Renderer(
            received.page,
            received.style,
            isDated: received.isDated,
            listed: received.listed,
            source: ServedValues(served: served, received: received, setting: setting)
        )
        renderer.run()
        guard renderer.isKnown else { return .wrong("it shows what nobody can know") }
        guard matches(body[...].utf8, renderer.pieces[...]) else {
            return .wrong(
                """
                it is
                    \(body)
                  its values in the shape received are
                    \(renderer.pieces.map { $0.joined(separator: "|") }.joined())
                """
            )
        }
        var facts: [ReadLog.Fact: Int] = [:]
        let states = reference.state.withLock { $0.states(of: received.scope.principal) }
        let members = Dictionary(grouping: served.values.filter { !setting.undeclared.contains($0.key.member) }) {
            ReadLog.Fact(received.scope, $0.key.ref, $0.key.member)
        }
        for (fact, shown) in members {
            var shown = shown
            if mayContradict, received.isContradictory(fact.member, of: fact.ref) {
                // Kept as it came until something newer is known.
                shown.removeAll { received.shown(fact.member, of: fact.ref, at: $0.key.place)?.datum == $0.value }
            }
            // While the upstream is away, what is not known is as received (law 6): an object that leads to another is not known
            // if that is not.
            if isSubstitute, !received.page.isFlat || log.isWritten(fact.ref, in: fact.scope) {
                shown.removeAll { received.shown(fact.member, of: fact.ref, at: $0.key.place)?.datum == $0.value }
            }
            guard let value = shown.first?.value else { continue }
            guard shown.allSatisfy({ $0.value == value }) else {
                return .wrong("it shows two values of \(fact.member) of \(fact.ref)")
            }
            func isTrue(_ state: Holdings) -> Bool { state.shows(value, as: fact) }
            let isKept = setting.onDelete == .keep && states.last?[fact.ref] == nil
            // What has one source is not in doubt.
            let isInDoubt = isInDoubt && !hasOneSource(fact)
            // What is known from a response for another program only is asked for, and cannot be shown if that fails (law 4).
            let isWithheld = isSubstitute && isInDoubt && isShownApart(fact, from: client)
            // While the upstream is away, what a write left unknown is as it was known before (law 3).
            let isUnseen = isSubstitute && log.isWritten(fact.ref, in: fact.scope)
            let floor = log.floor(of: fact, isKept: isKept || isUnseen, isInDoubt: isInDoubt, isWithheld: isWithheld)
            guard let state = states.indices.dropFirst(floor).first(where: { isTrue(states[$0]) }) else {
                return .wrong(explanation(of: value, fact, states.lastIndex(where: isTrue), floor, states, log))
            }
            facts[fact] = state
        }
        guard received.page.kind == .issue, setting.onDelete != .keep else { return .sound(facts) }
        for id in received.page.subject.map({ [$0.id] }) ?? received.listed {
            let ref = Ref(kind: .issue, id: id)
            let isShown = received.page.subject != nil || served.listed.contains(id)
            if isSubstitute, isShown { continue }
            let fact = ReadLog.Fact.existence(received.scope, ref)
            let floor = log.floor(of: fact)
            guard let state = states.indices.dropFirst(floor).first(where: { (states[$0][ref] != nil) == isShown })
            else { return .wrong("\(ref) is \(isShown ? "shown" : "left out"), as it was before state \(floor)") }
            facts[fact] = state
        }
        return .sound(facts)
    }

    private func explanation(
        of value: Datum,
        _ fact: ReadLog.Fact,
        _ last: Int?,
        _ floor: Int,
        _ states: [Holdings],
        _ log: ReadLog
    ) -> String {
        let what = "\(fact.member) of \(fact.ref) is \(value)"
        guard let last else { return "\(what), which it never was" }
        let seen = states[floor][fact.ref]?[fact.member].map { "\($0)" } ?? "gone"
        return
            "\(what), as it was up to state \(last), after state \(floor) was seen by \(log.origin(of: fact)): \(seen)"
    }

    /// Notes what a write of a principal has changed: what it was before is not served to that principal any more.
    ///
    /// - Parameter isByName: whether its target was found by its name, which Larder must have received.
    func noteChanges(by exchange: ReferenceExchange, of ref: Ref, isByName: Bool) {
        let states = reference.state.withLock { $0.states(of: exchange.key.scope.principal) }
        let state = exchange.revision
        guard state > 0, states.indices.contains(state) else { return }
        let (old, new) = (states[state - 1][ref], states[state][ref])
        // A document may go on showing what is deleted.
        if new == nil, setting.onDelete == .keep { return }
        for language in Scope.languages {
            let scope = Scope(principal: exchange.key.scope.principal, language: language)
            let name = ReadLog.Fact(scope, ref, "login")
            if isByName, setting.bulk > 0 || !seen.isReceived(old?["login"], of: name) { continue }
            var facts: [ReadLog.Fact: Int] = [:]
            for member in Set([old, new].compactMap(\.self).flatMap(\.keys)) where old?[member] != new?[member] {
                facts[ReadLog.Fact(scope, ref, member)] = state
            }
            if (old == nil) != (new == nil) { facts[.existence(scope, ref)] = state }
            seen.note(written: facts)
            durablySeen.note(written: facts)
        }
    }
}
