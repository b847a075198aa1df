import Dispatch
public import Mapping

/// Applies the effects of writes (law 10).
extension ObjectStore {
    /// Stores the objects in a write's response, and invalidates what the write may have changed.
    ///
    /// Returns after the commit. It goes ahead of queued responses, because these are older, whenever they are stored. It
    /// waits for them only if one of them may be needed to identify the written object. If there is no room for the
    /// response's objects, they are marked as changed instead. For a pattern, a reader first compares the URL of every
    /// document of the upstream; the matching documents are removed in slices, so that other jobs get their turn.
    @discardableResult
    public func complete(_ write: CompletedWrite) async throws(StoreError) -> WriteCompletion {
        try await removeDocumentsOfPatterns(write.invalidation)
        let prepared = await prepare(write)
        do {
            return try await complete(write, prepared)
        } catch {
            guard write.observation != nil else { throw error }
            var unobserved = write
            unobserved.observation = nil
            return try await complete(unobserved, prepared)
        }
    }

    private func complete(_ write: CompletedWrite, _ body: PreparedBody?) async throws(StoreError) -> WriteCompletion {
        let queued = core.queuedResponses
        return try await submitAhead(as: .write, bytes: write.observation?.body.count ?? 0) { session, isAhead in
            let subject = write.observation?.subject
            let prepared = body.map { session.current($0, of: subject, upstream: write.upstream) }
            if isAhead, try !session.mayGoAhead(write, prepared, of: queued) { return nil }
            let completion = try session.complete(write, prepared)
            if let shown = write.observation {
                try session.warn(completion.warnings, about: shown.rule, url: shown.url, at: session.clock.now())
            }
            return completion
        }
    }

    private func prepare(_ write: CompletedWrite) async -> PreparedBody? {
        guard let observation = write.observation else { return nil }
        return await withCheckedContinuation { continuation in
            writeResponses.async { [core] in
                let prepared = core.prepare(observation.subject, upstream: write.upstream)
                core.examine(observation.subject, prepared, upstream: write.upstream)
                continuation.resume(returning: prepared)
            }
        }
    }

    /// Has the writer run a job ahead of everything queued; if it returns nil, it runs again after everything queued earlier.
    private func submitAhead<Value: Sendable>(
        as kind: Job.Kind,
        bytes: Int = 0,
        _ work: @escaping @Sendable (WriterSession, _ isAhead: Bool) throws -> Value?
    ) async throws(StoreError) -> Value {
        let core = core
        let early: Value? = try await result { done in
            core.submit(kind, .express, bytes: bytes, { try work($0, true) }, done: done)
        }
        if let early { return early }
        let late: Value? = try await result { done in
            submit(kind, .prompt, bytes: bytes, { try work($0, false) }, done: done)
        }
        guard let value = late else { preconditionFailure("behind the queue there is nothing to wait for") }
        return value
    }

    func removeDocumentsOfPatterns(_ invalidation: Invalidation) async throws(StoreError) {
        guard !invalidation.patterns.isEmpty else { return }
        let last = try await core.commit(.invalidation, .express) { session in
            session.bans.banPatterns(of: invalidation, knownAt: session.clock.now())
            return session.numbers.document
        }
        var rest = try await core.read { try invalidation.documentsOfPatterns(until: last, in: $0) }[...]
        while !rest.isEmpty {
            let slice = Array(rest.prefix(512))
            rest = rest.dropFirst(slice.count)
            try await core.commit(.invalidation, .express) { session in
                for id in slice { try session.deleteDocument(id) }
            }
        }
    }

    /// Records that a retrieval did not find an object; like `complete`, it goes ahead of queued responses.
    ///
    /// Returns after the commit, or while another process holds it up.
    public func commit(_ absence: ObservedAbsence) async throws(StoreError) {
        let queued = core.queuedResponses
        try await unlessBlocked { [self] () async throws(StoreError) in
            _ = try await submitAhead(as: .absence) { session, isAhead -> Void? in
                if isAhead, try !session.mayGoAhead(absence, of: queued) { return nil }
                return try session.write(absence)
            }
        }
    }
}

/// A write whose response has arrived, or never will.
public struct CompletedWrite: Sendable {
    /// The effect on the written object.
    public enum Effect: Sendable, Equatable {
        /// The write may have changed everything that its response does not show.
        case changed
        case deleted
        /// The object did not exist, so nothing has changed.
        case absent
    }

    var upstream: UpstreamKey
    var principal: PrincipalID
    var context: String
    public var path: String
    /// The request's method; empty if the daemon ended before the response arrived.
    public var method = ""
    /// When the response was complete, or Larder stopped waiting for it.
    public var time: Int64
    var effect: Effect
    /// The object that the path identifies, by its route.
    var bound: BoundObject?
    /// The objects that the path may name, as far as anybody can guess; they count if nothing else says which object it is.
    public var supposed: [BoundObject] = []
    /// The path of the object that the write acts on, if it is not the target.
    public var actionPath: String?
    /// The response; nil if it shows no objects.
    public var observation: ReceivedObservation?
    /// Paths whose documents are removed.
    public var paths: Set<String> = []
    /// Paths whose documents are removed unless the models declare how a deletion shows in them.
    public var collections: [String] = []
    /// Patterns of further paths whose documents are removed.
    public var patterns: [InvalidationPattern] = []
    /// The mark that was made before the request was sent.
    public var suspect: SuspectID?
    /// Whether the path is that of a collection, in which the write may have created an object.
    public var isCreation = false

    /// Describes a write.
    public init(
        upstream: UpstreamKey,
        principal: PrincipalID,
        context: String,
        path: String,
        time: Int64,
        effect: Effect = .changed,
        bound: BoundObject? = nil
    ) {
        (self.upstream, self.principal, self.context, self.path) = (upstream, principal, context, path)
        (self.time, self.effect, self.bound) = (time, effect, bound)
    }

    /// What it makes outdated, besides what the store finds out.
    public var invalidation: Invalidation { Invalidation(of: upstream, paths: paths, patterns: patterns, at: time) }

    public var boundObjects: [BoundObject] { bound.map { [$0] } ?? supposed }
}

/// What completing a write in the store has changed.
public struct WriteCompletion: Sendable, Equatable {
    /// Further paths whose documents were removed: those of collections and of a created object.
    public var removed: [String] = []
    /// The objects that it has changed, as far as they are known.
    public var objects: [BoundObject] = []
    /// What its response has shown, for other machines; nil if nothing, or if values are not shared.
    public var shown: SharedObservation?
    var warnings: [MappingWarning] = []

    /// Describes a write of which the store has found out nothing else.
    public init(objects: [BoundObject] = []) { self.objects = objects }
}

/// A response that shows that an object does not exist: a 404 or 410 to a GET.
public struct ObservedAbsence: Sendable {
    var key: CacheKey
    public var method = "GET"
    var bound: BoundObject?
    /// When its request was sent, minus `Age`.
    var start: Int64

    /// The object, if the path alone identifies it; a query may ask for something other than the object itself.
    var named: BoundObject? { key.url.utf8.contains(UInt8(ascii: "?")) ? nil : bound }

    /// Describes a response.
    public init(key: CacheKey, bound: BoundObject?, start: Int64) {
        (self.key, self.bound, self.start) = (key, bound, start)
    }
}
