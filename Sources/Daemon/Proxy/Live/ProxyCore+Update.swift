import CachePolicy
import EventLoops
import HTTPSemantics
import Logging
import Settings
import Store

/// What the streams on a document are to be sent, as far as it is known.
extension ProxyCore {
    /// What a GET would be answered, as far as that is known.
    func update(
        _ decision: Decision,
        _ shown: Shown?,
        _ outcome: LiveInquiry.Outcome?,
        failure: ProblemDocument?,
        of document: LiveDocument
    ) -> LiveDocument.Update? {
        let isFresh = if case .answer = decision { true } else { false }
        if let shown, isFresh || !(outcome?.isUnkept ?? false) {
            // What a write has outdated is not sent, even if it is still there.
            guard !document.isInvalid else { return nil }
            return update(LiveEvent(.changed, shown.ready, as: shown.cacheUse, now: now), shown)
        }
        switch outcome {
        case nil: return nil
        case .failed(let problem, let answer): return update(LiveEvent(failure: problem, age: nil, answer))
        case .answered(var event, let isKept):
            if isKept, isOvertaken(document, decision) { return nil }
            if document.demand.upstream.settings.cookies != .replay { event.fields?.remove("set-cookie") }
            return update(event)
        case .served(let ready, let cacheUse, _, _):
            if let failure { return update(LiveEvent(failure: failure, age: nil)) }
            if outcome?.isUnkept != true, isOvertaken(document, decision) { return nil }
            return update(LiveEvent(.changed, ready, as: cacheUse, now: now))
        }
    }

    /// Whether something newer is known than the upstream's word, which a GET now would learn by asking again.
    ///
    /// What was known before the upstream was asked does not count: a GET is answered with its word, even if newer values are
    /// known of what that shows and it cannot be put together from them.
    private func isOvertaken(_ document: LiveDocument, _ decision: Decision) -> Bool {
        guard document.isOvertaken, case .ask(_, let stored?) = decision else { return false }
        return stored.answer.form == .outdated
    }

    func update(_ event: LiveEvent, _ shown: Shown? = nil) -> LiveDocument.Update {
        // The body of an error says when and where it happened; that is no other error.
        let body = event.problem == nil ? event.body?.pieces ?? [] : []
        return LiveDocument.Update(
            event: event,
            content: cache.store.hasher.digest(event.description, body: body),
            isStored: shown != nil,
            isCommitted: shown?.isCommitted ?? false,
            policy: shown?.ready.policy,
            variant: shown?.ready.answer.selection.bytes ?? []
        )
    }

    /// The number that a state is sent under; nil where the store can give none, or not yet.
    func number(for update: LiveDocument.Update, of document: LiveDocument) async -> Int64? {
        let store = cache.store
        let digest = document.demand.digest
        // A number would come behind the commit that takes so long.
        if !update.isCommitted, cache.commits.contains(digest) { return nil }
        var subject = Array("\(digest.low) \(digest.high) \(document.demand.view) ".utf8)
        subject += update.variant
        do {
            let sequence = try await store.tell(
                store.hasher.digest(subject),
                // Of what the store does not keep, it keeps no trace either.
                content: update.isCommitted ? update.content : nil
            )
            return store.publicSequence(sequence)
        } catch {
            log.error("an event could not be numbered", metadata: ["error": "\(error)"])
            return nil
        }
    }

    /// Why the outcome of a question is not the upstream's word.
    func problem(in outcome: LiveInquiry.Outcome, for document: LiveDocument) -> ProblemDocument? {
        switch outcome {
        case .failed(let problem, _): return problem
        case .served(_, .heldBack, _, _):
            // It may have ended this very moment.
            let pause =
                fetches.pauses.pause(for: document.demand, now: loop.now)
                ?? UpstreamPause(status: 503, scope: .document, until: loop.now)
            let upstream = document.demand.upstream.name
            return .heldBack(pause, seconds: pause.secondsLeft(at: loop.now), upstream: upstream)
        case .served, .answered: return nil
        }
    }
}
