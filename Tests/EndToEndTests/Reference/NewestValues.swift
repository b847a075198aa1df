/// The values of a stored answer, each at its newest.
struct NewestValues: ValueSource {
    let received: Received
    let moment: Moment
    let knowledge: Knowledge
    /// Whether what is in dispute by one reading of law 3 stays as the answer showed it.
    var isLenient = false

    func fate(of ref: Ref) -> Fate { knowledge.fate(of: ref, at: moment, shown: received.shown[ref] ?? [:]) }

    func spellings(_ member: String, of ref: Ref, isStranger: Bool, at place: String) -> Alternatives {
        if isStranger { return strange(member, of: ref) }
        guard let own = received.shown(member, of: ref, at: place) else {
            preconditionFailure("\(received.page) never showed \(ref)")
        }
        // Only declared members move (law 5).
        guard !knowledge.setting.undeclared.contains(member),
            case .value(let datum, let spellings) = knowledge.newest(member, of: ref)
        else { return [own.spelling] }
        if case .disputed = newest(member, of: ref) { return spellings.union([own.spelling]).sorted() }
        // Only what is newer says more than an answer that disagrees with itself.
        if received.isContradictory(member, of: ref),
            !knowledge.isKnown(member, of: ref, since: moment, leniently: isLenient)
        {
            return [own.spelling]
        }
        // What is merely spelled differently changes nothing (law 7).
        return datum == own.datum ? [own.spelling] : spellings.sorted()
    }

    /// An object that the answer did not show there: all of it must be known (law 6).
    private func strange(_ member: String, of ref: Ref) -> Alternatives {
        guard !knowledge.setting.undeclared.contains(member),
            case .value(_, let spellings) = newest(member, of: ref)
        else {
            return []
        }
        return spellings.sorted()
    }

    func relation(_ member: String, of ref: Ref) -> Datum {
        guard case .value(let datum, _) = newest(member, of: ref) else { return pinned(member, of: ref) }
        return datum
    }

    private func newest(_ member: String, of ref: Ref) -> Known {
        let strictly = knowledge.newest(member, of: ref)
        guard isLenient, case .disputed = knowledge.newest(member, of: ref, leniently: true) else { return strictly }
        return .disputed
    }

    func pinned(_ member: String, of ref: Ref) -> Datum { received.shown[ref]?[member]?.datum ?? .null }
}
