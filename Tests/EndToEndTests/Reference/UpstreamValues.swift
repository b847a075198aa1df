/// The upstream's own values at one moment.
struct UpstreamValues: ValueSource {
    let holdings: Holdings
    let scope: Scope
    let page: Page
    let style: Style
    var slip: Slip?

    private func datum(_ member: String, of ref: Ref, at place: String = "") -> Datum {
        if let slip, slip.applies(to: member, of: ref, at: place) { return .text("slip \(slip.number)") }
        if member == "score" {
            guard case .search(let query) = page else { return .null }
            return .number(ref.id + query)
        }
        return scope.translated(holdings[ref]?[member] ?? .null, member)
    }

    func spellings(_ member: String, of ref: Ref, isStranger: Bool, at place: String) -> Alternatives {
        [style.spell(datum(member, of: ref, at: place))]
    }

    func relation(_ member: String, of ref: Ref) -> Datum { datum(member, of: ref) }
    func pinned(_ member: String, of ref: Ref) -> Datum { datum(member, of: ref) }

    /// Every member of every object that a page shows, and those on which it disagrees with itself, by place.
    func everything(on page: Page, listed: [Int], isDated: Bool) -> (shown: [Ref: [String: Shown]], slips: Slips) {
        var (shown, slips): ([Ref: [String: Shown]], Slips) = ([:], [:])
        let roots = page.subject.map { [$0] } ?? listed.map { Ref(kind: page.kind, id: $0) }
        for ref in roots { note(ref, page.shape(dated: isDated), at: "", &shown, &slips) }
        return (shown, slips.filter { Set($0.value.values.map(\.datum)).count > 1 })
    }

    private func note(
        _ ref: Ref,
        _ shape: [Field],
        at place: String,
        _ shown: inout [Ref: [String: Shown]],
        _ slips: inout Slips
    ) {
        if shown[ref] == nil { shown[ref] = [:] }
        for field in shape {
            let datum = datum(field.name, of: ref, at: place)
            switch field {
            case .id: continue
            case .plain:
                let value = Shown(datum: datum, spelling: style.spell(datum))
                shown[ref]?[field.name] = value
                if let slip, slip.ref == ref, slip.member == field.name { slips[slip, default: [:]][place] = value }
            case .bare, .one, .many, .keyed: shown[ref]?[field.name] = Shown(datum: datum, spelling: "")
            }
            switch field {
            case .one(_, let inner):
                if let id = datum.one { note(Ref(kind: .user, id: id), inner, at: ref.place(field), &shown, &slips) }
            case .many(_, let inner):
                for id in datum.many { note(Ref(kind: .label, id: id), inner, at: ref.place(field), &shown, &slips) }
            case .keyed(_, let inner):
                for (key, id) in datum.keyed {
                    note(Ref(kind: .user, id: id), inner, at: ref.place(field, key), &shown, &slips)
                }
            case .id, .plain, .bare: continue
            }
        }
    }
}

extension Scope {
    /// A value as the upstream says it in the scope's language.
    func translated(_ datum: Datum, _ member: String) -> Datum {
        guard case .text(let text) = datum, Kind.translated.contains(member), !language.isEmpty else { return datum }
        return .text("\(text) (\(language))")
    }
}

/// What a response that disagrees with itself shows of a member, by place.
typealias Slips = [Slip: [String: Shown]]

extension Ref {
    /// Where the object stands that a field of this one leads to.
    func place(_ field: Field, _ key: String = "") -> String { "\(self).\(field.name)\(key)" }
}
