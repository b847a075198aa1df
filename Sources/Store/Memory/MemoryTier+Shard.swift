internal import Synchronization

/// The answers of one shard, and the ring that its hand goes round.
extension MemoryTier.Shard {
    /// Puts an answer in the place of the one with its variant; returns what had to go for it, nil where that one stays.
    mutating func put(
        _ answer: Response,
        at digest: Digest128,
        insteadOf mayGo: @Sendable (Response) -> Bool
    ) -> [Response]? {
        var list = answers[digest] ?? []
        var gone: [Response] = []
        if let index = list.firstIndex(where: { $0.variant == answer.variant && $0.key == answer.key }) {
            guard mayGo(list[index]) else { return nil }
            gone.append(list.remove(at: index))
        } else if list.count >= MemoryTier.variantLimit,
            let oldest = list.indices.min(by: { slot(list[$0]) < slot(list[$1]) })
        {
            // Look-ups walk the list.
            gone.append(list.remove(at: oldest))
        }
        list.insert(answer, at: list.firstIndex { $0.precedence <= answer.precedence } ?? list.endIndex)
        answers[digest] = list
        for answer in gone { vacate(answer) }
        answer.residence.slot.store(ring.count, ordering: .relaxed)
        ring.append(answer)
        return gone
    }

    /// Places in the ring are given in the order of arrival.
    private func slot(_ answer: Response) -> Int { answer.residence.slot.load(ordering: .relaxed) }

    mutating func vacate(_ answer: Response) {
        let slot = self.slot(answer)
        guard ring.indices.contains(slot), ring[slot] === answer else { return }
        ring[slot] = nil
        vacancies += 1
        if vacancies > 64, vacancies * 2 > ring.count { compact() }
    }

    /// The next answer that had its second chance, in one turn of the hand; it stays where it is.
    mutating func victim() -> Response? {
        for _ in 0..<ring.count {
            if hand >= ring.count { hand = 0 }
            defer { hand += 1 }
            guard let answer = ring[hand] else { continue }
            if answer.residence.isUsed.exchange(false, ordering: .relaxed) { continue }
            return answer
        }
        return nil
    }

    private mutating func compact() {
        var kept: [Response?] = []
        kept.reserveCapacity(ring.count - vacancies)
        var newHand = 0
        for (index, answer) in ring.enumerated() {
            if index == hand { newHand = kept.count }
            guard let answer else { continue }
            answer.residence.slot.store(kept.count, ordering: .relaxed)
            kept.append(answer)
        }
        ring = kept
        hand = newHand
        vacancies = 0
    }
}
