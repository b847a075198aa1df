/// The upstream's own values at one moment.
struct UpstreamValues: ValueSource {
    let holdings: Holdings
    let scope: Scope
    let page: Page
    let style: Style

    private func datum(_ member: String, of ref: Ref) -> Datum {
        if member == "score" {
            guard case .search(let query) = page else { return .null }
            return .number(ref.id + query)
        }
        let datum = holdings[ref]?[member] ?? .null
        guard case .text(let text) = datum, Kind.translated.contains(member), !scope.language.isEmpty else {
            return datum
        }
        return .text("\(text) (\(scope.language))")
    }

    func spellings(_ member: String, of ref: Ref, isStranger: Bool) -> Alternatives {
        [style.spell(datum(member, of: ref))]
    }

    func relation(_ member: String, of ref: Ref) -> Datum { datum(member, of: ref) }
    func pinned(_ member: String, of ref: Ref) -> Datum { datum(member, of: ref) }

    /// Every member of every object that a page shows.
    func everything(on page: Page, listed: [Int], isDated: Bool) -> [Ref: [String: Shown]] {
        var shown: [Ref: [String: Shown]] = [:]
        let roots = page.subject.map { [$0] } ?? listed.map { Ref(kind: page.kind, id: $0) }
        for ref in roots { note(ref, page.shape(dated: isDated), &shown) }
        return shown
    }

    private func note(_ ref: Ref, _ shape: [Field], _ shown: inout [Ref: [String: Shown]]) {
        if shown[ref] == nil { shown[ref] = [:] }
        for field in shape {
            let datum = datum(field.name, of: ref)
            switch field {
            case .id: continue
            case .plain: shown[ref]?[field.name] = Shown(datum: datum, spelling: style.spell(datum))
            case .bare, .one, .many, .keyed: shown[ref]?[field.name] = Shown(datum: datum, spelling: "")
            }
            switch field {
            case .one(_, let inner): if let id = datum.one { note(Ref(kind: .user, id: id), inner, &shown) }
            case .many(_, let inner): for id in datum.many { note(Ref(kind: .label, id: id), inner, &shown) }
            case .keyed(_, let inner): for id in datum.keyed.values { note(Ref(kind: .user, id: id), inner, &shown) }
            case .id, .plain, .bare: continue
            }
        }
    }
}
