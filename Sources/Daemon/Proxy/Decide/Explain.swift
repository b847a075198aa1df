package import CachePolicy
import EventLoops
package import HTTPSemantics
import Mapping
import Settings
package import Store

/// A request as the proxy would serve it now, with what is stored for it.
package struct ExplainedRequest: Sendable {
    package let request: ProxyRequest
    /// The name of its principal, and whether that has made a request before.
    package let principal: (label: String, isKnown: Bool)
    /// What it would get in each mode.
    package let online: Plan
    package let offline: Plan
    /// How long it would wait first, until a limit of the upstream is reset; nil if it would not.
    package let pause: Duration?
    /// Whether the response of another machine is served in place of the upstream's, if there is one.
    package let mayBeShared: Bool
    /// The request that would go upstream, if one would.
    package let inquiry: Plan.Inquiry?
    /// For a stream: what it shows in each mode; nil for any other request.
    package let stream: (online: ExplainedStream, offline: ExplainedStream)?
    package let selected: ReadyResponse?
    /// The mapped view of its object, made of what is known of it, if no response is stored.
    package let assembled: ReadyResponse?
    package let variants: [StoredVariant]
    /// What is stored for the URL for any principal and context.
    package let documents: [DocumentOfURL]
    /// The latest response to the URL that was not stored, if it is remembered.
    package let unstored: NotStoredReasons.Note?
    package let mode: Mode
    /// In seconds of the store's clock.
    package let now: Int64
}

/// What a stream shows when it begins.
package struct ExplainedStream: Sendable {
    /// Whether the client has seen its end already, so that it gets 204 and stays away.
    package let isOver: Bool
    /// How the stored response is shown; nil if it is not.
    package let use: CacheUse?
    /// Why the upstream is not asked now; nil if it is.
    package let problem: ProblemDocument?
    package let cacheStatus: CacheStatus
}

extension ProxyCore {
    /// Explains what would happen to a request: looks up and plans as for one that is served.
    ///
    /// Nothing is fetched, marked as used or put into memory, and no principal is created.
    package func explain(_ incoming: IncomingRequest) async throws(StoreError) -> ExplainedRequest {
        let (principal, label) = try await principals.find(incoming.credentials, of: incoming.upstream)
        let request = makeRequest(incoming, of: principal ?? .nobody)
        let documents = try await cache.store.documents(ofURL: request.key.url, upstream: request.key.upstream)
        let (offline, found) = await plan(request, mode: .offline, admits: false)
        let variants = try await cache.variants(under: request)
        let planned = await plan(request, mode: .online, admits: false).plan
        let pause = planned.pause
        let online = pause == nil ? planned : planned.unheld
        let (shownOnline, shownOffline) = (try await shown(online, to: request), try await shown(offline, to: request))
        var (inquiry, stream): (Plan.Inquiry?, (ExplainedStream, ExplainedStream)?) = (shownOnline.inquiry, nil)
        if let live = incoming.live {
            let (online, asked) = explained(live, request, found.whole, mode: .online)
            inquiry = asked
            stream = (online, explained(live, request, found.whole, mode: .offline).stream)
        }
        return ExplainedRequest(
            request: request,
            principal: (label, principal != nil),
            online: shownOnline,
            offline: shownOffline,
            pause: pause,
            mayBeShared: fleet.map { search(for: shared(request, incoming, $0), planned) != nil } ?? false,
            inquiry: inquiry,
            stream: stream,
            selected: found.whole,
            assembled: found.assembled,
            variants: variants,
            documents: documents.compactMap {
                var document = $0
                guard let stored = cache.current(document.stored), stored.status != 206 else { return nil }
                document.stored = stored
                return document
            },
            unstored: fetches.notStored[request.key],
            mode: modes.current,
            now: now
        )
    }

    /// What a stream shows first, as `opening` and its first look have it, and what it asks the upstream.
    private func explained(_ live: LiveMode, _ request: ProxyRequest, _ found: ReadyResponse?, mode: Mode)
        -> (stream: ExplainedStream, Plan.Inquiry)
    {
        let plan = planWithoutHold(request, LookUpResult(whole: found), mode)
        let inquiry = inquiry(ofStream: request, plan, found)
        if case .over = live {
            let status = CacheStatus.refused("live-over")
            return (ExplainedStream(isOver: true, use: nil, problem: nil, cacheStatus: status), inquiry)
        }
        let shown = found.flatMap { ready in plan.useByStream(of: ready, now: now).map { (ready, $0) } }
        let refusal = refusal(of: request, plan, mode)
        let problem = refusal ?? fetches.hold(on: inquiry, isForClient: false)?.problem(request)
        let status = openingStatus(refusal, shown)
        return (ExplainedStream(isOver: false, use: shown?.1, problem: problem, cacheStatus: status), inquiry)
    }

    /// The plan with the received bytes, which the raw view of a composed response shows.
    private func shown(_ plan: Plan, to request: ProxyRequest) async throws(StoreError) -> Plan {
        func view(of ready: ReadyResponse, _ plan: (ReadyResponse) -> Plan) async throws(StoreError) -> Plan {
            guard ready.needsReceivedBytes(in: request.view) else { return plan(ready) }
            guard let shown = try await cache.inView(of: request, ready)
            else { return .ask(Plan.Inquiry(request.asking(because: .receivedBytesGone))) }
            return plan(shown)
        }
        switch plan {
        case .serve(let ready, let use, let reason): return try await view(of: ready) { .serve($0, use, reason) }
        case .serveAndRefresh(let ready, let use, let reason, let inquiry):
            return try await view(of: ready) { .serveAndRefresh($0, use, reason, inquiry) }
        case .held(let hold, let wanted, let instead):
            let shown = try await shown(instead, to: request)
            // The upstream, which has the bytes, is not asked.
            return .held(hold, wanted, instead: shown.inquiry == nil ? shown : .refuse(.receivedBytesGone))
        case .ask, .write, .refuse, .refuseAndExpire: return plan
        }
    }
}

/// One variant of a document, from memory or disk.
package struct StoredVariant: Sendable {
    package var ready: ReadyResponse
    package var isInMemory: Bool
    /// Nil until it is committed.
    package var document: DocumentID?
    package var isDirty: Bool
    package var objects: Int
}

extension ResponseCache {
    /// All variants under a request's key; nothing is put into memory or marked as used.
    fileprivate func variants(under request: ProxyRequest) async throws(StoreError) -> [StoredVariant] {
        var variants = (memory.responses(at: request.digest) ?? []).filter { $0.key == request.key }.map { ready in
            StoredVariant(
                ready: ready,
                isInMemory: true,
                document: ready.stored?.document,
                isDirty: !ready.isClean,
                objects: ready.stored?.objects.count ?? 0
            )
        }
        let documents = store.mayHave(request.digest) ? try await store.documents(at: request.key) : []
        for (document, response) in current(documents, for: request) {
            let known = variants.firstIndex { $0.ready.response.selection == response.selection }
            // As for any request, a response in memory precedes the disk unless it is dirty.
            if let known, !variants[known].isDirty { continue }
            let variant = StoredVariant(
                ready: ReadyResponse(response, digest: request.digest, upstream: request.upstream, base: request.base),
                isInMemory: known != nil,
                document: document.id,
                isDirty: known != nil || response.isOutdated,
                objects: document.objects.count
            )
            if let known { variants[known] = variant } else { variants.append(variant) }
        }
        return variants
    }
}

extension ProxiedUpstream {
    /// The names of a request's fields and parameters that identify the principal, with reasons.
    package func credentials(in request: Request) -> [(name: String, reason: String)] {
        var found: [(name: String, reason: String)] = []
        if let credential = settings.credential { found.append(("credential (\(credential.header))", "Larder's own")) }
        func add(_ name: String, _ reason: PrincipalFields.Reason?) {
            if let reason, !found.contains(where: { $0.name == name }) { found.append((name, "\(reason)")) }
        }
        for line in request.fields.lines { add(line.lowercasedName, principal.reason(forField: line.name)) }
        let target = Array(request.target.utf8)
        for (parameter, reason) in principal.parameters(in: target) {
            let name = FieldSyntax.lowercased(TargetNormaliser.unescaped(target[parameter.name]))
            add("?" + String(decoding: name, as: UTF8.self), reason)
        }
        return found
    }

    /// The names of its `OtherFields`.
    package func otherFields(in request: Request) -> [String] {
        var names: [String] = []
        for line in request.fields.withoutHopByHop().lines where role(of: line) == .other {
            if !names.contains(line.lowercasedName) { names.append(line.lowercasedName) }
        }
        return names
    }
}
