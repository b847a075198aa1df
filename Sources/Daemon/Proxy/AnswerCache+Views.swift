import Store
import Synchronization

/// Answers in other views, and for other addresses, than the one that a hit finds.
extension AnswerCache {
    /// The response in the view and for the address of a demand; nil if the raw view is wanted and its bytes are gone.
    ///
    /// Reads the bytes as received from the store where memory has the composed ones.
    func inView(of demand: Demand, _ ready: ReadyAnswer) async throws(StoreError) -> ReadyAnswer? {
        guard ready.needsReceivedBytes(in: demand.view) else { return shown(ready, to: demand) }
        guard let body = try await store.received(ready.document.load(ordering: .relaxed)) else { return nil }
        var answer = ready.answer
        answer.body = body
        answer.form = .received
        return ReadyAnswer(answer, digest: demand.digest, upstream: demand.upstream, base: demand.base)
            .shown(to: demand)
    }

    /// The answer in the view and for the address of a demand.
    ///
    /// Made once, and kept in memory beside the answer that it was made of, within the same bound. It is good for as long
    /// as that one is: another one takes its place.
    func shown(_ ready: ReadyAnswer, to demand: Demand) -> ReadyAnswer {
        guard ready.needsRendering(for: demand) else { return ready }
        let digest = ready.residence.digest.besides
        if let kept = memory.answers(at: digest)?.first(where: { $0.isMade(of: ready, for: demand) }) {
            kept.residence.noteUse()
            return kept
        }
        // Beside what is not kept nothing is; parts are cut out of the bytes that they were received as.
        let isKept = memory.answers(at: ready.residence.digest)?.contains { $0 === ready } == true
        guard isKept, ready.answer.status != 206 else { return ready.shown(to: demand) }
        let shown = ReadyAnswer(
            ready.answer,
            digest: digest,
            upstream: ready.upstream,
            base: demand.base,
            view: demand.view,
            source: ready.residence
        )
        memory.insert(shown, at: digest)
        return shown
    }
}

extension ReadyAnswer {
    /// Whether a view cannot be made of this response: the raw view shows what was received, not what was composed.
    func needsReceivedBytes(in view: View) -> Bool { view == .raw && answer.form == .composed }

    /// Whether it was made of another one for what a demand wants.
    fileprivate func isMade(of ready: ReadyAnswer, for demand: Demand) -> Bool {
        source === ready.residence && view == demand.view && base.map { $0 == demand.base } ?? true
    }
}

extension Digest128 {
    /// Where answers made of those under this digest are found: in a place that no request leads to.
    fileprivate var besides: Digest128 { Digest128(low: ~low, high: ~high) }
}
