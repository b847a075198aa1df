import Basics
import GRDB

/// The ids of upstreams, contexts, models, scopes and collections, and the labels of principals, cached for the writer.
struct NameTable {
    struct Scope: Hashable {
        var upstream: UpstreamKey
        var principal: PrincipalID
        var context: String

        init(of write: CompletedWrite) {
            self.init(upstream: write.upstream, principal: write.principal, context: write.context)
        }

        /// The scope of responses under a key that vary by nothing else.
        init(of key: CacheKey) { self.init(upstream: key.upstream, principal: key.principal, context: key.context) }

        init(upstream: UpstreamKey, principal: PrincipalID, context: String) {
            (self.upstream, self.principal, self.context) = (upstream, principal, context)
        }

        /// The key of a document with an object of this scope.
        func key(ofURL url: String) -> CacheKey {
            CacheKey(upstream: upstream, principal: principal, context: ObjectContext.key(of: context), url: url)
        }

        /// Whether responses under a key belong to it, whatever else they vary by.
        func isOfKey(_ key: CacheKey) -> Bool {
            upstream == key.upstream && principal == key.principal
                && ObjectContext.key(of: context).utf8.elementsEqual(key.context.utf8)
        }
    }

    private struct Collection: Hashable {
        var scope: ScopeID
        var model: String
    }

    // Clients choose contexts freely.
    private static let maximumNames = 8192

    private var names = BoundedTable<String, Int64>(limit: maximumNames)
    private var scopes = BoundedTable<Scope, ScopeID>(limit: maximumNames)
    private var scopesByID = BoundedTable<ScopeID, Scope>(limit: maximumNames)
    private var collections = BoundedTable<Collection, CollectionID>(limit: maximumNames)
    private var collectionsByID = BoundedTable<CollectionID, (scope: ScopeID, model: String)>(limit: maximumNames)
    private var labels = BoundedTable<PrincipalID, String>(limit: maximumNames)

    mutating func forget() { self = NameTable() }

    /// The id of a scope, created if needed.
    ///
    /// - Parameter new: the id for a new scope. SQLite itself would reuse the id of a forgotten scope, for which memory may
    ///   still have marks.
    mutating func scope(_ scope: Scope, orNew new: ScopeID, in database: Database) throws -> ScopeID {
        if let id = scopes[scope] { return id }
        let upstream = try name(scope.upstream.rawValue, in: database)
        let context = try name(scope.context, in: database)
        try database.query("INSERT OR IGNORE INTO _scopes (id, upstream, principal, context) VALUES (?, ?, ?, ?)")
            .run(new, upstream, scope.principal, context)
        let found = "SELECT id FROM _scopes WHERE upstream = ? AND principal = ? AND context = ?"
        let id = ScopeID(rawValue: try written(try database.query(found).integer(upstream, scope.principal, context)))
        scopes[scope] = id
        scopesByID[id] = scope
        return id
    }

    mutating func scope(_ id: ScopeID, in database: Database) throws -> Scope {
        if let scope = scopesByID[id] { return scope }
        let scope = try database.query(
            """
            SELECT u.text, s.principal, x.text FROM _scopes s
            JOIN _names u ON u.id = s.upstream JOIN _names x ON x.id = s.context WHERE s.id = ?
            """
        ).first(id) { Scope(upstream: $0.upstream(0), principal: $0.id(1), context: $0.string(2)) }
        guard let scope else { throw StoreError.corrupt("scope \(id) is missing") }
        scopes[scope] = id
        scopesByID[id] = scope
        return scope
    }

    mutating func collection(scope: ScopeID, model: String, in database: Database) throws -> CollectionID {
        let key = Collection(scope: scope, model: model)
        if let id = collections[key] { return id }
        let model = try name(model, in: database)
        try database.query("INSERT OR IGNORE INTO _collections (scope, model) VALUES (?, ?)").run(scope, model)
        let found = "SELECT id FROM _collections WHERE scope = ? AND model = ?"
        let id = CollectionID(rawValue: try written(try database.query(found).integer(scope, model)))
        collections[key] = id
        return id
    }

    mutating func collection(_ id: CollectionID, in database: Database) throws -> (scope: ScopeID, model: String) {
        if let known = collectionsByID[id] { return known }
        let sql = "SELECT c.scope, m.text FROM _collections c JOIN _names m ON m.id = c.model WHERE c.id = ?"
        let found = try database.query(sql).first(id) { (scope: $0.id(0, as: ScopeID.self), model: $0.string(1)) }
        guard let found else { throw StoreError.corrupt("collection \(id) is missing") }
        collectionsByID[id] = found
        return found
    }

    mutating func label(of principal: PrincipalID, in database: Database) throws -> String? {
        if let label = labels[principal] { return label }
        let label = try database.query("SELECT label FROM _principals WHERE id = ?").first(principal) { $0.string(0) }
        labels[principal] = label
        return label
    }

    private mutating func name(_ text: String, in database: Database) throws -> Int64 {
        if let id = names[text] { return id }
        try database.query("INSERT OR IGNORE INTO _names (text) VALUES (?)").run(text)
        let id = try written(try database.query("SELECT id FROM _names WHERE text = ?").integer(text))
        names[text] = id
        return id
    }

    private func written(_ id: Int64?) throws -> Int64 {
        guard let id else { throw StoreError.corrupt("a row just written is not there") }
        return id
    }
}

/// The context of a response's objects: that of its key, and what else the response varies by.
///
/// Responses of one key that differ by a `Vary` field show separate representations of their objects, as two languages
/// do (law 5). The text is the key's context, an empty line, which a key's context never contains, and the rest.
struct ObjectContext {
    let text: String

    init(key: String, selectedBy: String) { text = selectedBy.isEmpty ? key : "\(key)\n\n\(selectedBy)" }

    /// The SQL condition for `context` being that of responses under a key with the context `parameter`.
    static func isOfKey(_ context: String, _ parameter: String) -> String {
        "(\(context) = \(parameter) OR substr(\(context), 1, length(\(parameter)) + 2) = \(parameter) || char(10, 10))"
    }

    /// The key's part of a context.
    static func key(of text: String) -> String {
        let bytes = Array(text.utf8)
        guard bytes.count > 1, let end = (0..<bytes.count - 1).first(where: { bytes[$0] == 10 && bytes[$0 + 1] == 10 })
        else { return text }
        return String(decoding: bytes[..<end], as: UTF8.self)
    }
}
