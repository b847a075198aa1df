import Foundation

/// What a response served from the cache shows, read without knowing how it came about.
struct Served {
    /// One place in which a response shows a member.
    struct Spot: Hashable {
        let ref: Ref
        let member: String
        let place: String
    }

    private(set) var listed: [Int] = []
    private(set) var values: [Spot: Datum] = [:]

    /// Nil where it is not what the page looks like.
    init?(_ json: Any?, page: Page, isDated: Bool) {
        let shape = page.shape(dated: isDated)
        if let subject = page.subject {
            guard take(json, shape, of: subject.kind, at: "") == subject.id else { return nil }
            return
        }
        let items = (json as? [String: Any])?["items"] ?? json
        for item in items as? [Any] ?? [] {
            guard let id = take(item, shape, of: page.kind, at: "") else { return nil }
            listed.append(id)
        }
    }

    /// Takes an object and those in it, and gives its identity.
    private mutating func take(_ json: Any?, _ shape: [Field], of kind: Kind, at place: String) -> Int? {
        guard let object = json as? [String: Any], let id = object["id"] as? Int else { return nil }
        let ref = Ref(kind: kind, id: id)
        for field in shape where field.name != "id" {
            guard let json = object[field.name], let datum = take(json, field, of: ref) else { return nil }
            values[Spot(ref: ref, member: field.name, place: place)] = datum
        }
        return id
    }

    private mutating func take(_ json: Any, _ field: Field, of ref: Ref) -> Datum? {
        switch field {
        case .id: return nil
        case .plain:
            if let text = json as? String { return .text(text) }
            if let number = json as? Int { return .number(number) }
            return json is NSNull ? .null : nil
        case .bare: return json is NSNull ? .one(nil) : (json as? Int).map { .one($0) }
        case .one(_, let shape):
            if json is NSNull { return .one(nil) }
            return take(json, shape, of: .user, at: ref.place(field)).map { .one($0) }
        case .many(_, let shape):
            guard let items = json as? [Any] else { return nil }
            let ids = items.compactMap { take($0, shape, of: .label, at: ref.place(field)) }
            return ids.count == items.count ? .many(ids) : nil
        case .keyed(_, let shape):
            guard let items = json as? [String: Any] else { return nil }
            var ids: [String: Int] = [:]
            for (key, item) in items { ids[key] = take(item, shape, of: .user, at: ref.place(field, key)) }
            return ids.count == items.count ? .keyed(ids) : nil
        }
    }
}

/// The values that were served, in the shape of the response that is stored: what is not declared, and what means the
/// same, is spelled as that spells it (laws 1, 5 and 7).
struct ServedValues: ValueSource {
    let served: Served
    let received: Received
    let setting: Setting

    func fate(of ref: Ref) -> Fate {
        received.page.subject == nil && ref.kind == .issue && setting.onDelete == .remove
            && !served.listed.contains(ref.id) ? .removed : .shown
    }

    func spellings(_ member: String, of ref: Ref, isStranger: Bool, at place: String) -> Alternatives {
        let own = isStranger ? nil : received.shown(member, of: ref, at: place)
        // Only declared members move, and what is not known is not made up (law 6).
        if setting.undeclared.contains(member) { return own.map { [$0.spelling] } ?? [] }
        guard let datum = served.values[Served.Spot(ref: ref, member: member, place: place)] else { return [] }
        return own?.datum == datum ? own.map { [$0.spelling] } ?? [] : Style.spellings(of: datum)
    }

    func relation(_ member: String, of ref: Ref) -> Datum {
        served.values[Served.Spot(ref: ref, member: member, place: "")] ?? .null
    }

    func pinned(_ member: String, of ref: Ref) -> Datum { received.shown[ref]?[member]?.datum ?? .null }
}
