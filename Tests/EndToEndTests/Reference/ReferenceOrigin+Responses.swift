extension ReferenceOrigin.State {
    mutating func apply(_ edit: Edit, _ principal: String) {
        guard var holdings = holdings[principal] else { return }
        past[principal, default: []].append((holdings, ContinuousClock.now))
        edit.apply(to: &holdings)
        self.holdings[principal] = holdings
    }

    /// Everything that was ever true of a principal's objects, the present last.
    func states(of principal: String) -> [Holdings] {
        (past[principal] ?? []).map(\.holdings) + (holdings[principal].map { [$0] } ?? [])
    }

    /// How often a principal's objects have changed: the place of the present among the states.
    func revision(of principal: String) -> Int { past[principal]?.count ?? 0 }

    /// What there is of a principal, or what there was so many changes ago, or fewer where that is too long ago.
    private func holdings(of principal: String, behind: Int, limit: Duration) -> Holdings {
        let past = past[principal] ?? []
        let oldest = ContinuousClock.now - limit
        let index = max(past.count - behind, past.firstIndex { $0.end > oldest } ?? past.count)
        return index < past.count ? past[index].holdings : holdings[principal] ?? Holdings(of: principal)
    }

    /// The page that a target stands for; a user's name may have changed hands since it was sent.
    func page(_ target: String, of principal: String) -> Page? {
        guard target.hasPrefix(Page.names) else { return Page(target: target) }
        let name = Datum.text(String(target.dropFirst(Page.names.count)))
        return holdings[principal]?.all(.user).first {
            holdings[principal]?[Ref(kind: .user, id: $0)]?["login"] == name
        }
        .map { .user($0) }
    }

    /// A page as the upstream shows it now; nil where there is none.
    ///
    /// - Parameter omitted: a member of its subject that it does not show.
    func page(_ key: Key, _ plan: ResponsePlan, number: Int, without omitted: String? = nil) -> Received? {
        let isList = key.page.subject == nil
        let limit = plan.age > 0 ? .seconds(plan.age) : isList ? lag.limit : .zero
        let present = self.holdings[key.scope.principal] ?? Holdings(of: key.scope.principal)
        var holdings = holdings(of: key.scope.principal, behind: plan.behind, limit: limit)
        if let subject = key.page.subject {
            if present[subject] == nil { return nil }
            // Nothing that says it is not there is old.
            if holdings[subject] == nil { holdings = present }
        }
        let style = Style(number: plan.style)
        var values = UpstreamValues(holdings: holdings, scope: key.scope, page: key.page, style: style)
        let listed = key.page.listed(in: holdings)
        values.slip = plan.slip
        // Where it says the same in all places, that is no mistake but another truth.
        if values.everything(on: key.page, listed: listed, isDated: isDated).slips.isEmpty { values.slip = nil }
        var renderer = Renderer(key.page, style, isDated: isDated, listed: listed, source: values)
        renderer.omitted = omitted
        renderer.run()
        let body = renderer.pieces.map { $0[0] }.joined()
        var plainValues = UpstreamValues(holdings: holdings, scope: key.scope, page: key.page, style: Style(number: 0))
        plainValues.slip = values.slip
        var plain = Renderer(key.page, Style(number: 0), isDated: isDated, listed: listed, source: plainValues)
        plain.run()
        let meaning = plain.pieces.map { $0[0] }.joined()
        let etag: String? =
            switch plan.tag {
            case 1: "\"s\(hash(body + key.description))\""
            case 2: "W/\"w\(hash(meaning + key.description))\""
            default: nil
            }
        var (shown, slips) = values.everything(on: key.page, listed: listed, isDated: isDated)
        if let omitted, let subject = key.page.subject { shown[subject]?[omitted] = nil }
        return Received(
            number: number,
            page: key.page,
            scope: key.scope,
            style: style,
            isDated: isDated,
            listed: listed,
            shown: shown,
            slips: slips,
            body: body,
            etag: etag,
            hasLifetime: plan.isFresh,
            control: plan.control,
            age: plan.age,
            isServedStale: !plan.isFresh && plan.isServedStale && plan.age < 3600
        )
    }

    /// Answers a request, and does what it asks for.
    mutating func make(_ number: Int, _ request: Origin.Request, _ plan: ResponsePlan) -> OriginResponse {
        exchanges[number].ending = plan.ending
        exchanges[number].isMade = true
        exchanges[number].made = revision(of: exchanges[number].key.scope.principal)
        let key = exchanges[number].key
        let isWrite = request.method != "GET" && request.method != "HEAD"
        if isWrite, let edit = plans[exchanges[number].step]?.edit {
            if plan.ending != .error(isDone: false) {
                apply(edit, key.scope.principal)
                exchanges[number].revision = revision(of: key.scope.principal)
            }
            return respondToWrite(number, edit, plan)
        }
        switch plan.ending {
        case .error:
            exchanges[number].status = 500
            return .json(#"{"message":"broken"}"#, ["Cache-Control": "no-store"], status: 500)
        case .lost: return .reset
        case .whole, .partial, .cut, .empty: break
        }
        guard let received = page(key, plan, number: number) else {
            exchanges[number].status = 404
            // Too short to break off.
            exchanges[number].ending = .whole
            let body = #"{"message":"Not Found"}"#
            exchanges[number].received = .absent(key, number: number, body: body)
            return .json(body, ["Cache-Control": "max-age=0"], status: 404)
        }
        exchanges[number].received = received
        if let etag = received.etag, request["If-None-Match"]?.contains(etag) == true {
            exchanges[number].status = 304
            // Nothing that could break off.
            exchanges[number].ending = .whole
            return .notModified(fields(received, plan))
        }
        exchanges[number].status = 200
        let answer = OriginResponse.json(received.body, fields(received, plan))
        guard plan.ending == .cut, request.method == "GET" else { return answer }
        guard case .send(let head) = answer.steps[0], case .send(let body) = answer.steps[1] else { return answer }
        return OriginResponse(steps: [.send(head), .send(Array(body.prefix(body.count / 2))), .reset])
    }

    private mutating func respondToWrite(_ number: Int, _ edit: Edit, _ plan: ResponsePlan) -> OriginResponse {
        let subject = Page(of: edit.ref)
        let key = Key(page: subject, scope: exchanges[number].key.scope)
        switch plan.ending {
        case .error:
            exchanges[number].status = 500
            return .json(#"{"message":"broken"}"#, status: 500)
        case .lost: return .reset
        case .whole, .partial, .cut, .empty: break
        }
        let omitted: String? = if case .change(_, let member, _) = edit, plan.ending == .partial { member } else { nil }
        guard plan.ending != .empty, let received = page(key, plan, number: number, without: omitted) else {
            exchanges[number].status = 204
            return .empty(204)
        }
        exchanges[number].received = received
        let isNew = exchanges[number].method == "POST"
        exchanges[number].status = isNew ? 201 : 200
        return .json(received.body, isNew ? ["Location": subject.target] : [:], status: isNew ? 201 : 200)
    }

    private func fields(_ received: Received, _ plan: ResponsePlan) -> FieldLines {
        var fields: FieldLines = [
            "Cache-Control": plan.isFresh
                ? plan.control.rawValue : plan.isServedStale ? "max-age=0, stale-while-revalidate=3600" : "max-age=0",
            "Vary": "Accept-Language",
        ]
        if plan.age > 0 { fields.append("Age", "\(plan.age)") }
        if let etag = received.etag { fields.append("ETag", etag) }
        return fields
    }

    private func hash(_ text: String) -> String {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return String(hash, radix: 16)
    }
}

extension Received {
    /// What is said of something that is not there.
    static func absent(_ key: Key, number: Int, body: String) -> Received {
        Received(
            number: number,
            page: key.page,
            scope: key.scope,
            style: Style(number: 0),
            isDated: false,
            listed: [],
            shown: [:],
            body: body,
            etag: nil,
            hasLifetime: false,
            hasObjects: false
        )
    }
}
