import Mapping

/// The request that deleted an object, or made its state unknown.
public struct MarkSource: Sendable, Hashable {
    /// The method; nil for a write that was under way when the daemon ended.
    public var method: String?
    /// The path without the query; nil if it is not known.
    public var path: String?

    /// Names a request; an empty text means unknown.
    init(method: String, path: String) {
        self.method = method.isEmpty ? nil : method
        self.path = path.isEmpty ? nil : path
    }

    // MARK: Stored form

    /// The stored text, such as `PATCH /users/1`.
    var text: String { "\(method ?? "") \(path ?? "")" }

    init(text: String) {
        let parts = text.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
        self.init(method: String(parts[0]), path: parts.count > 1 ? String(parts[1]) : "")
    }
}

/// The objects recently written to or deleted, for responses to requests sent before that.
///
/// A response may show an object that the store did not know at the time of the write, or has forgotten since. The marks are in
/// memory: the requests die with the process, and no stored document shows the object, or its row would have the mark. After a
/// restart, a list that lags behind a deletion is trusted, as it would be without Larder. The number is bounded: if there are
/// too many marks, all are dropped at once, and a ban blocks responses to requests sent until then.
struct RecentMarks {
    private struct Key: Hashable {
        let upstream: String
        let model: String
        /// The identity, or the value of a key.
        let value: String
        let isKey: Bool
        /// The scope of the object; nil for every scope.
        let scope: ScopeID?
    }

    private struct Mark {
        let mark: ObjectMark
        let source: MarkSource
        /// A scope for which the mark does not hold, because the write's own response shows more.
        let exception: ScopeID?
    }

    private static let limit = 65_536

    private var marks: [Key: Mark] = [:]
    private var newest: Int64 = .min

    /// Adds a mark.
    ///
    /// - Returns: the time of the newest mark if all had to be dropped; responses to earlier requests must then be blocked.
    ///
    /// - Parameters:
    ///   - scope: the scope of the object. Nil for every scope except `exception`.
    mutating func add(
        _ mark: ObjectMark,
        by source: MarkSource,
        to object: BoundObject,
        upstream: String,
        scope: ScopeID?,
        exception: ScopeID? = nil
    ) -> Int64? {
        var forgotten: Int64?
        if marks.count >= Self.limit {
            forgotten = newest
            marks = [:]
        }
        let names = object.identity.map { [($0, false)] } ?? object.keys.map { ($0, true) }
        for (value, isKey) in names {
            let key = Key(upstream: upstream, model: object.model, value: value, isKey: isKey, scope: scope)
            if let known = marks[key] {
                if known.mark.time > mark.time { continue }
                keep(known, of: key, for: exception)
            }
            marks[key] = Mark(mark: mark, source: source, exception: exception)
        }
        newest = max(newest, mark.time)
        return forgotten
    }

    /// Keeps the old mark for a scope for which the new one does not hold.
    private mutating func keep(_ known: Mark, of key: Key, for exception: ScopeID?) {
        guard key.scope == nil, let exception, known.exception != exception else { return }
        let own = Key(upstream: key.upstream, model: key.model, value: key.value, isKey: key.isKey, scope: exception)
        if let newer = marks[own], newer.mark.time >= known.mark.time { return }
        marks[own] = Mark(mark: known.mark, source: known.source, exception: nil)
    }

    /// Weakens a tombstone, because the object was shown again under one of these names.
    ///
    /// Older responses are still outdated, but the object exists.
    mutating func weaken(
        tombstoneAt time: Int64,
        of identity: String,
        keys: [String],
        model: String,
        upstream: String,
        scope: ScopeID
    ) {
        for (value, isKey) in [(identity, false)] + keys.map({ ($0, true) }) {
            let key = Key(upstream: upstream, model: model, value: value, isKey: isKey, scope: scope)
            guard let known = marks[key], known.mark == .tombstone(time) else { continue }
            marks[key] = Mark(mark: .unobserved(time), source: known.source, exception: known.exception)
        }
    }

    /// Removes the marks of a model's objects, or of all objects, in some scopes.
    ///
    /// - Parameter isOfEverybody: whether marks for every scope are removed too, for one upstream or for all.
    mutating func forget(
        model: String?,
        identity: String?,
        upstream: String?,
        scopes: Set<ScopeID>,
        isOfEverybody: Bool
    ) {
        marks = marks.filter { key, _ in
            guard key.scope.map(scopes.contains) ?? isOfEverybody, upstream.map({ $0 == key.upstream }) ?? true else {
                return true
            }
            return model.map { $0 != key.model } ?? false || identity.map { key.isKey || $0 != key.value } ?? false
        }
    }

    /// Whether a mark may be newer than a response; false for nearly all responses.
    func mayConcern(_ observation: Observation, lag: Lag) -> Bool {
        newest != .min && observation.start - max(lag.lists, lag.details) <= newest
    }

    /// The newest mark of an object, found by its name or its keys, and the request that caused it.
    func mark(
        of name: ObjectName,
        keys: [String],
        upstream: String,
        scope: ScopeID
    ) -> (mark: ObjectMark, source: MarkSource)? {
        var found: (mark: ObjectMark, source: MarkSource)?
        func look(_ value: String, isKey: Bool) {
            for wanted in [scope, nil] {
                let key = Key(upstream: upstream, model: name.model, value: value, isKey: isKey, scope: wanted)
                guard let known = marks[key], known.exception != scope else { continue }
                if found.map({ known.mark.time > $0.mark.time }) ?? true { found = (known.mark, known.source) }
            }
        }
        look(name.identity, isKey: false)
        for key in keys { look(key, isKey: true) }
        return found
    }
}
