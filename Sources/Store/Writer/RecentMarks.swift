import Mapping

/// The objects recently written to or deleted, for responses to requests sent before that.
///
/// A response may show an object that the store did not know at the time of the write, or has forgotten since.
/// Responses that lag do so after a restart, too; so each transaction writes the marks that it has changed into the
/// file. The number is bounded: if there are too many marks, all are dropped at once, and a ban blocks responses to
/// requests sent until then.
struct RecentMarks {
    private struct Key: Hashable {
        let upstream: UpstreamKey
        let model: String
        let value: String
        let isKey: Bool
        /// The scope of the object; nil for every scope.
        let scope: ScopeID?
    }

    private struct Mark {
        let mark: ObjectMark
        /// The principal that wrote; `.nobody` for a mark of one scope only.
        let writer: PrincipalID
        let source: MarkSource
        /// A scope for which the mark does not hold, because the write's own response shows more.
        let exception: ScopeID?

        func with(_ mark: ObjectMark, exception: ScopeID?) -> Mark {
            Mark(mark: mark, writer: writer, source: source, exception: exception)
        }
    }

    private static let maximumMarks = 65_536

    private var marks: [Key: Mark] = [:]
    private var newest: Int64 = .min
    /// The keys whose marks have changed since the last commit.
    private var unwritten: Set<Key> = []

    private mutating func set(_ mark: Mark?, for key: Key) {
        marks[key] = mark
        unwritten.insert(key)
    }

    /// Adds a mark for a scope of the object, or for every scope except `exception`.
    ///
    /// - Returns: the time of the newest mark if all had to be dropped; responses to earlier requests must then be
    ///   blocked.
    mutating func add(
        _ mark: ObjectMark,
        of writer: PrincipalID,
        by source: MarkSource,
        to object: BoundObject,
        _ upstream: UpstreamKey,
        _ scope: ScopeID?,
        except exception: ScopeID?
    ) -> Int64? {
        var forgotten: Int64?
        if marks.count >= Self.maximumMarks {
            forgotten = newest
            unwritten.formUnion(marks.keys)
            marks = [:]
        }
        let names = object.identity.map { [($0, false)] } ?? object.keys.map { ($0, true) }
        for (value, isKey) in names {
            let key = Key(upstream: upstream, model: object.model, value: value, isKey: isKey, scope: scope)
            if let known = marks[key] {
                if known.mark.time > mark.time { continue }
                retain(known, of: key, for: exception)
            }
            set(Mark(mark: mark, writer: writer, source: source, exception: exception), for: key)
        }
        newest = max(newest, mark.time)
        return forgotten
    }

    /// Retains the old mark for a scope for which the new one does not hold.
    private mutating func retain(_ known: Mark, of key: Key, for exception: ScopeID?) {
        guard key.scope == nil, let exception, known.exception != exception else { return }
        let own = Key(upstream: key.upstream, model: key.model, value: key.value, isKey: key.isKey, scope: exception)
        if let newer = marks[own], newer.mark.time >= known.mark.time { return }
        set(known.with(known.mark, exception: nil), for: own)
    }

    /// Weakens a tombstone, because the object was shown again under one of these names; older responses are still
    /// outdated.
    mutating func weaken(
        tombstoneAt time: Int64,
        of identity: String,
        keys: [String],
        model: String,
        upstream: UpstreamKey,
        scope: ScopeID
    ) {
        for (value, isKey) in [(identity, false)] + keys.map({ ($0, true) }) {
            let key = Key(upstream: upstream, model: model, value: value, isKey: isKey, scope: scope)
            guard let known = marks[key], known.mark == .tombstone(time) else { continue }
            set(known.with(.unobserved(time, isReused: true), exception: known.exception), for: key)
        }
    }

    /// Removes the marks of a model's objects, or of all objects, in some scopes.
    ///
    /// - Parameter isOfEverybody: whether marks for every scope are removed too, for one upstream or for all.
    mutating func forget(
        model: String?,
        identity: String?,
        upstream: UpstreamKey?,
        scopes: Set<ScopeID>,
        isOfEverybody: Bool
    ) {
        func isConcerned(_ key: Key) -> Bool {
            (key.scope.map(scopes.contains) ?? isOfEverybody) && upstream.map { $0 == key.upstream } ?? true
                && model.map { $0 == key.model } ?? true && identity.map { !key.isKey && $0 == key.value } ?? true
        }
        for key in marks.keys where isConcerned(key) { set(nil, for: key) }
    }

    /// Whether a mark may be newer than a response; false for nearly all responses.
    func mayConcern(_ observation: Observation, lag: Lag) -> Bool {
        newest != .min && observation.start - max(lag.lists, lag.details) <= newest
    }

    /// The newest mark of an object, found by its name or its keys, the request that caused it, and who made that.
    func mark(of name: ObjectName, keys: [String], upstream: UpstreamKey, scope: ScopeID)
        -> (mark: ObjectMark, source: MarkSource, writer: PrincipalID)?
    {
        var found: (mark: ObjectMark, source: MarkSource, writer: PrincipalID)?
        func look(_ value: String, isKey: Bool) {
            for wanted in [scope, nil] {
                let key = Key(upstream: upstream, model: name.model, value: value, isKey: isKey, scope: wanted)
                guard let known = marks[key], known.exception != scope else { continue }
                if found.map({ known.mark.time > $0.mark.time }) ?? true {
                    found = (known.mark, known.source, known.writer)
                }
            }
        }
        look(name.identity, isKey: false)
        for key in keys { look(key, isKey: true) }
        return found
    }
}

extension RecentMarks {
    /// The marks in a store's file; those that no response can be older than are removed from it.
    init(in session: WriterSession) throws {
        self.init()
        let lag = session.models.values.map { max($0.lag.lists, $0.lag.details) }.max() ?? 0
        try session.query("DELETE FROM _recent_marks WHERE time < ?").run(session.clock.now() - lag)
        try session.query("SELECT * FROM _recent_marks").each { row in
            let (isKey, scope) = (row.integer(3) == 1, row.integer(4) == 0 ? nil : row.id(4, as: ScopeID.self))
            let (upstream, model) = (row.upstream(0), row.string(1))
            let key = Key(upstream: upstream, model: model, value: row.string(2), isKey: isKey, scope: scope)
            let (time, kind) = (row.integer(5), row.integer(6))
            marks[key] = Mark(
                mark: kind == 1 ? .tombstone(time) : .unobserved(time, isOwn: kind & 2 != 0, isReused: kind & 4 != 0),
                writer: row.id(7),
                source: MarkSource(text: row.string(8)),
                exception: row.isNull(9) ? nil : row.id(9)
            )
            newest = max(newest, time)
        }
    }

    /// Writes what has changed since the last commit.
    func write(in session: WriterSession) throws {
        for key in unwritten {
            let scope = key.scope ?? ScopeID.zero
            guard let mark = marks[key] else {
                try session.query(
                    """
                    DELETE FROM _recent_marks
                    WHERE upstream = ? AND model = ? AND value = ? AND is_key = ? AND scope = ?
                    """
                ).run(key.upstream, key.model, key.value, key.isKey ? 1 : 0, scope)
                continue
            }
            let kind = (mark.mark.isTombstone ? 1 : 0) + (mark.mark.isOwn ? 2 : 0) + (mark.mark.isReused ? 4 : 0)
            try session.query("INSERT OR REPLACE INTO _recent_marks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)").run(
                values: [
                    key.upstream, key.model, key.value, key.isKey ? 1 : 0, scope, mark.mark.time, kind, mark.writer,
                    mark.source.text, mark.exception,
                ])
        }
    }

    /// Notes that the transaction is committed to which `write` belonged.
    mutating func committed() { unwritten = [] }

    /// The same marks for a file that has none of them.
    func unwrittenAll() -> RecentMarks {
        var all = self
        all.unwritten = Set(marks.keys)
        return all
    }
}
