import CachePolicy
package import EventLoops
import HTTPSemantics
import HTTPServer
import Settings
import Store

/// Serves the requests of one worker: hits at once, everything else through `ProxyCore`.
///
/// A hit takes `received` → `hit` → `connection.respond`, synchronously on the worker's loop. Its allocations do not grow with
/// the body. Any step that meets something unusual (a range, a condition, a view, a dirty response …) leaves the request to
/// `ProxyCore`, which handles every case.
package final class ProxyHandler: HTTPHandler {
    private let proxy: ProxyCore
    private let configuration: CurrentConfiguration
    private let cache: ResponseCache
    private let loop: EventLoop
    private let metrics: WorkerMetrics
    private let interceptor: (any ExchangeInterceptor)?
    private let requests: RequestLog
    // Exclusivity is not checked, because every hit uses all of these: nothing that they call comes back to this handler.
    @exclusivity(unchecked) private var cacheKey = CacheKeyBuilder()
    /// The hits since the last one that was counted in `TopLists`, and when the next one is in any case, on the loop's clock.
    @exclusivity(unchecked) private var unsampled = 0
    @exclusivity(unchecked) private var sampleDue: UInt64 = 0
    @exclusivity(unchecked) private var variable = SmallBuffer(capacity: 512)
    @exclusivity(unchecked) private var reading: (tick: UInt64, seconds: Int64) = (0, 0)

    /// How often the configuration had been replaced when its upstreams were taken.
    @exclusivity(unchecked) private var replacements: Int
    private var upstreams: [ProxiedUpstream]
    /// The site of each entrance, and the one used last.
    private var sites: [ObjectIdentifier: Site] = [:]
    private var latest: (entrance: Entrance, site: Site)?

    package init(proxy: ProxyCore, loop: EventLoop, metrics: WorkerMetrics, interceptor: (any ExchangeInterceptor)?) {
        (self.interceptor, self.proxy) = (interceptor, proxy)
        configuration = proxy.configuration
        replacements = configuration.replacements
        upstreams = configuration.value.upstreams
        cache = proxy.cache
        requests = proxy.requests
        (self.loop, self.metrics) = (loop, metrics)
    }

    func received(_ request: borrowing RequestHead, on connection: HTTPConnection) {
        if configuration.replacements != replacements { takeConfiguration() }
        let site = site(at: connection.entrance)
        if let name = IncomingDelivery.name(in: request.path) { return deliver(request, name, site, connection) }
        let position = site.position(for: request.path)
        switch site.check(request, at: position) {
        case .allowed, .allowedOrigin: break
        case .preflight(let origin):
            let fields = site.cors(at: position).preflightFields(for: origin, request: request.owned().fields)
            connection.respond(status: 204, fields: fields)
            return record(request, connection, status: 204, outcome: .bypass)
        case .refused(let refusal): return refuse(.guarded(refusal), request, connection)
        }
        // `OPTIONS *` asks about this server, not about a resource (RFC 9110 §9.3.7).
        if request.form == .asterisk {
            connection.respond(status: 204, fields: ["Allow": "GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE"])
            return record(request, connection, status: 204, outcome: .bypass)
        }
        guard let position else {
            let path = String(decoding: request.path, as: UTF8.self)
            let prefixes = site.upstreams.prefix(20).map(\.settings.prefix)
            return refuse(.noUpstream(path: path, prefixes: prefixes), request, connection)
        }
        let upstream = site.upstreams[position]
        // A TRACE response would echo the credentials (RFC 9110 §9.3.8).
        if request.method == .trace { return refuse(.traceRefused, request, connection) }
        do {
            try cacheKey.read(request, upstream, cache.store.hasher)
        } catch { return refuse(error, request, connection) }
        if let interceptor, interceptor.isActive {
            if request.method == .get, !request.hasBody, replay(request, upstream, connection, interceptor) { return }
        } else if request.method == .get || request.method == .head, !request.hasBody,
            hit(request, upstream, connection)
        {
            return
        }
        handOver(request, upstream, connection)
    }

    private func takeConfiguration() {
        replacements = configuration.replacements
        upstreams = configuration.value.upstreams
        (sites, latest) = ([:], nil)
    }

    private func site(at entrance: Entrance) -> Site {
        if let latest, latest.entrance === entrance { return latest.site }
        let site = sites[ObjectIdentifier(entrance)] ?? Site(entrance, upstreams: upstreams)
        sites[ObjectIdentifier(entrance)] = site
        latest = (entrance, site)
        return site
    }

    private func refuse(_ problem: ProblemDocument, _ request: borrowing RequestHead, _ connection: HTTPConnection) {
        var fields = problem.fields
        fields.append("Cache-Control", "no-store")
        fields.append("Cache-Status", problem.cacheStatus.text)
        connection.respond(problem, fields: fields)
        record(request, connection, status: problem.status, outcome: .error, problem: problem)
    }

    /// Counts and records a request that matches no upstream or is not sent on.
    ///
    /// It is unknown which of its parameters are credentials, so none is recorded.
    private func record(
        _ request: borrowing RequestHead,
        _ connection: HTTPConnection,
        status: Int,
        outcome: Outcome,
        problem: ProblemDocument? = nil
    ) {
        metrics.count(outcome)
        let path = String(decoding: request.path, as: UTF8.self).split(separator: "/", omittingEmptySubsequences: false)
            .map { $0.contains(";") ? $0.prefix { $0 != ";" } + ";…" : $0 }
        var served = ServedRequest(
            client: ClientAddress(peer: connection.peer, at: connection.entrance.address),
            method: String(decoding: request.methodBytes, as: UTF8.self),
            url: path.joined(separator: "/") + (request.query == nil ? "" : "?…"),
            upstream: nil
        )
        served.time = RequestClock.wall
        (served.status, served.outcome) = (status, outcome)
        if let problem {
            if request.method != .head { served.bytes = problem.bytes.count }
            served.cacheStatus = problem.cacheStatus
        }
        requests.record(served)
    }

    // MARK: The hit

    /// Serves a request from memory if it needs only a plain, fresh, clean response.
    private func hit(_ request: borrowing RequestHead, _ upstream: ProxiedUpstream, _ connection: HTTPConnection)
        -> Bool
    {
        let started = requests.recordsHits(at: loop.now) ? RequestClock.nanoseconds : nil
        guard !cacheKey.isLive, let directives = Self.plainDirectives(request) else { return false }
        let credentials = cacheKey.credentialsDigest(upstream, cache.store.hasher)
        guard let principal = proxy.principals.recognise(credentials) else { return false }
        let digest = cacheKey.digest(upstream, principal: principal, cache.store.hasher)
        guard let responses = cache.memory.responses(at: digest) else { return false }
        let now = seconds()
        for ready in responses {
            guard ready.upstream === upstream, ready.key.principal == principal, ready.isClean,
                !ready.isDoubtDue(at: now), ready.isGood(for: request),
                !ready.isForSameOtherFields
                    || ready.otherFields == proxy.principals.otherFields(cacheKey.otherLines),
                case .fresh(let age, let timeToLive) = ready.policy.reuse(at: now, for: directives)
            else { continue }
            let status = respond(ready, age: age, timeToLive: timeToLive, now: now, to: request, connection)
            unsampled += 1
            if started != nil || isSampleDue {
                let cacheStatus = CacheStatus.hit(timeToLive: timeToLive, details: ready.details(nil))
                recordHit(ready, status, cacheStatus, digest, request, connection, since: started)
            }
            return true
        }
        return false
    }

    /// Whether an unwatched hit is counted nevertheless, for all since the last one.
    private var isSampleDue: Bool { unsampled >= RequestLog.sampleSize || loop.now >= sampleDue }

    /// Seconds of the store's clock, read anew when the loop's coarse clock has moved.
    private func seconds() -> Int64 {
        if reading.tick != loop.now { reading = (loop.now, cache.seconds) }
        return reading.seconds
    }

    private func respond(
        _ ready: ReadyResponse,
        age: Int64,
        timeToLive: Int64,
        now: Int64,
        to request: borrowing RequestHead,
        _ connection: HTTPConnection
    ) -> Int {
        ready.entry.recordUse()
        variable.clear()
        var (headCount, notModifiedCount): (Int?, Int?)
        if let heads = ready.withoutRateLimit, let newest = ready.upstream.newestRateLimit {
            let (lines, areNewer) = newest.lines(for: ready.key.principal, heads.resource)
            variable.append(lines)
            if areNewer { (headCount, notModifiedCount) = (heads.headCount, heads.notModifiedCount) }
        }
        withUnsafeTemporaryAllocation(byteCount: HitFields.capacity, alignment: 8) { room in
            let count = HitFields.write(age: age, timeToLive: timeToLive, into: room)
            variable.append(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(room)[..<count]))
        }
        variable.append(ready.hitDetail)
        variable.append("\r\n\r\n")
        ready.response.isComposed ? metrics.composed.add() : metrics.hits.add()
        let isConditional = request.has(.ifNoneMatch) || request.has(.ifModifiedSince)
        guard isConditional, ready.isNotModified(request, now: now) else {
            connection.respond(head: ready.head, upTo: headCount, variable: variable, body: ready.body)
            return ready.response.status
        }
        let head = ready.notModifiedHead
        connection.respond(head: head, upTo: notModifiedCount, variable: variable, body: [], headOnly: true)
        return 304
    }

    /// Notes a hit from memory; without its start, it is a sample that stands for all that were not noted.
    private func recordHit(
        _ ready: ReadyResponse,
        _ status: Int,
        _ cacheStatus: CacheStatus,
        _ digest: Digest128,
        _ request: borrowing RequestHead,
        _ connection: HTTPConnection,
        since started: UInt64?
    ) {
        var served = ServedRequest(
            client: ClientAddress(peer: connection.peer, at: connection.entrance.address),
            method: request.method == .head ? "HEAD" : "GET",
            url: ready.upstream.clientURL(ofURL: ready.key.url),
            upstream: ready.upstream.name
        )
        served.cacheStatus = cacheStatus
        (served.status, served.key) = (status, digest)
        served.outcome = ready.response.isComposed ? .composed : .hit
        if request.method != .head, status != 304, status != 204 { served.bytes = ready.body.count }
        served.principal = proxy.principals.label(of: ready.key.principal)
        served.program = request[.userAgent].flatMap(ClientProgram.name)
        let url = ready.key.url
        let (path, query) = (ready.upstream.redactedRoute(ofURL: url), ProxiedUpstream.query(ofURL: url))
        served.route = ready.upstream.routePath(method: served.method, path: path, query: query)
        let counters = proxy.metrics.upstream(ready.upstream.name)
        guard let started else {
            requests.top.count(served, weight: unsampled)
            counters.count(served, weight: unsampled, isTimed: false)
            (unsampled, sampleDue) = (0, loop.now + RequestLog.sampleTime)
            return
        }
        unsampled -= 1
        counters.count(served, isTimed: false)
        let elapsed = RequestClock.nanoseconds - started
        served.time = RequestClock.wall - Int64(elapsed / 1_000)
        served.seconds = Double(elapsed) / 1_000_000_000
        requests.record(served)
    }

    /// The directives of `Cache-Control`; nil if the request needs the full path.
    private static func plainDirectives(_ request: borrowing RequestHead) -> RequestDirectives? {
        // An upstream's Cache-Status list, an origin's CORS fields and parts of a body are handled by `ProxyCore`, and so are
        // fields that `Connection` keeps from the upstream.
        guard !request.namesFieldsInConnection,
            !request.has(.range), !request.has(.larderView), !request.has(.larderLive), !request.has(.larderPosition),
            !request.has(.pragma), !request.has(.ifMatch), !request.has(.ifUnmodifiedSince), !request.has(.ifRange),
            !request.has(.origin), !request.has(.via) || !Via.isLoop(request.owned().fields)
        else { return nil }
        guard let value = request[.cacheControl] else { return RequestDirectives.none }
        guard request.count(of: .cacheControl) == 1 else { return nil }
        var directives = RequestDirectives()
        directives.read(cacheControl: value)
        return directives
    }

    // MARK: Replay

    /// Serves the response of a recording, if it is kept ready.
    private func replay(
        _ request: borrowing RequestHead,
        _ upstream: ProxiedUpstream,
        _ connection: HTTPConnection,
        _ interceptor: any ExchangeInterceptor
    ) -> Bool {
        guard !request.has(.larderSession), !request.has(.ifNoneMatch), !request.has(.ifModifiedSince),
            Self.plainDirectives(request) != nil, !cacheKey.isLive
        else { return false }
        let digest = cacheKey.digest(upstream, principal: .anonymous, cache.store.hasher)
        guard let ready = interceptor.ready(at: digest), ready.isGood(for: request) else { return false }
        let started = requests.recordsHits(at: loop.now) ? RequestClock.nanoseconds : nil
        metrics.hits.add()
        variable.clear()
        variable.append(RecordedResponse.variableFields)
        connection.respond(head: ready.head, variable: variable, body: ready.body)
        unsampled += 1
        if started != nil || isSampleDue {
            let status = RecordedResponse.cacheStatus
            recordHit(ready, ready.response.status, status, digest, request, connection, since: started)
        }
        return true
    }

    // MARK: Webhooks

    /// Hands a request to a webhook over; no credential but its signature counts.
    private func deliver(_ request: borrowing RequestHead, _ name: String, _ site: Site, _ connection: HTTPConnection) {
        let started = RequestClock.nanoseconds
        let known = site.webhook(named: name)
        if case .refused(let refusal) = site.check(request, at: known?.position) {
            return refuse(.guarded(refusal), request, connection)
        }
        guard let (webhook, position) = known, let signature = site.upstreams[position].settings.webhookSignature else {
            return refuse(.webhookUnknown(name), request, connection)
        }
        guard request.method == .post else {
            let method = String(decoding: request.methodBytes, as: UTF8.self)
            return refuse(.webhookMethod(method), request, connection)
        }
        var message = request.owned()
        let reply = connection.deferReply(request, &message)
        let delivery = IncomingDelivery(
            message: message,
            webhook: webhook,
            signature: signature,
            upstream: site.upstreams[position],
            client: ClientAddress(peer: message.peer, at: connection.entrance.address),
            started: started
        )
        proxy.accept(delivery, reply)
    }

    // MARK: Everything else

    private func handOver(_ request: borrowing RequestHead, _ upstream: ProxiedUpstream, _ connection: HTTPConnection) {
        let started = RequestClock.nanoseconds
        var incoming: IncomingRequest
        do {
            incoming = try IncomingRequest(request, upstream, cacheKey, cache.store.hasher)
        } catch { return refuse(error, request, connection) }
        let reply = connection.deferReply(request, &incoming.message)
        let note = RequestNote(incoming, at: connection.entrance.address, started: started, proxy)
        incoming.note = note
        if upstream.settings.validateAcross == .etag { incoming.group = connection.entrance.group }
        reply.observe(note)
        guard let interceptor, interceptor.isActive else { return proxy.accept(incoming, reply) }
        interceptor.received(incoming, reply, proxy)
    }
}
