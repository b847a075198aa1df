import GRDB
import Mapping

/// The SQL views for users: two for each declared model with an identity.
///
/// `MODEL` has a row for each object of each principal and context. `MODEL_current` has one row for each identity: the object
/// that changed last, of any principal and context.
struct Views {
    private let definitions: [(name: String, sql: String)]

    init(models: [String: Models]) {
        let all = models.sorted { $0.key < $1.key }.flatMap { upstream, models in
            models.declarations.map { (upstream: upstream, models: models, declaration: $0) }
        }
        .filter { $0.models.hasIdentity($0.declaration.name) }
        let count = Dictionary(grouping: all) { $0.declaration.name.lowercased() }.mapValues(\.count)
        let named = all.map { entry in
            let model = entry.declaration.name
            let isAmbiguous = (count[model.lowercased()] ?? 0) > 1
            return (entry, name: isAmbiguous ? "\(UpstreamKey.name(of: entry.upstream))_\(model)" : model)
        }
        var taken: Set<String> = []
        // A model may have the name of another one's second view.
        definitions = [Scope.all, .current].flatMap { scope in
            named.compactMap { entry, name in
                let name = name + scope.suffix
                guard taken.insert(name.lowercased()).inserted else { return nil }
                let view = ViewDefinition(
                    model: entry.declaration,
                    upstream: entry.upstream,
                    models: entry.models,
                    scope: scope
                )
                return (name, view.sql(named: name))
            }
        }
    }

    /// Replaces the file's views by these, if they differ.
    func install(in database: Database, hasher: KeyHasher) throws {
        let text = definitions.map(\.sql).joined(separator: ";\n")
        let digest = Int64(bitPattern: hasher.content(Array(text.utf8)))
        guard try Meta.views.integer(in: database) != digest else { return }
        let existing = try Query(database, "SELECT name FROM sqlite_schema WHERE type = 'view'").all { $0.string(0) }
        for name in existing { try database.execute(sql: "DROP VIEW \(SQLText.quoted(name))") }
        for definition in definitions { try database.execute(sql: definition.sql) }
        try Meta.views.set(digest, in: database)
    }

    /// The objects that a view shows.
    enum Scope {
        /// The objects of every principal and context.
        case all
        /// For each identity, the object that changed last.
        case current

        var suffix: String { self == .current ? "_current" : "" }
    }

    /// The object's JSON; NULL if SQLite's parser does not accept it, so that no row fails a query.
    ///
    /// The check is here and not in the join: so a query that needs no JSON, such as a count, reads none.
    fileprivate static func payload(_ object: String, _ version: String) -> String {
        let json = "coalesce(\(object).merged, \(version).payload)"
        return "CASE WHEN json_valid(\(json)) THEN \(json) END"
    }
}

/// Builds the SQL of one view.
private struct ViewDefinition {
    let model: ModelDeclaration
    let upstream: String
    let models: Models
    let scope: Views.Scope

    func sql(named name: String) -> String {
        """
        CREATE VIEW \(SQLText.quoted(name)) AS SELECT
          \(columns.joined(separator: ",\n  "))
        FROM _names m
        JOIN _names u ON u.text = \(SQLText.literal(upstream))
        JOIN _scopes s ON s.upstream = u.id
        JOIN _collections c ON c.scope = s.id AND c.model = m.id
        JOIN _objects o ON o.collection = c.id
        JOIN _principals p ON p.id = s.principal
        JOIN _names x ON x.id = s.context
        LEFT JOIN _versions v ON v.id = o.version
        WHERE m.text = \(SQLText.literal(models.objectName(of: model.name))) AND o.deleted IS NULL\(latest)\(choice)
        """
    }

    private var columns: [String] {
        let columns = models.columns(of: model.name)
        let isSingle = columns.count { $0.role == .identity && $0.source != .identity } == 1
        var names = Set((columns.map(\.name) + Models.reservedColumns).map { $0.lowercased() })
        var lines = [
            "\(SQLText.literal(UpstreamKey.name(of: upstream))) AS upstream", "p.label AS principal",
            "x.text AS context",
        ]
        for column in columns {
            // This value is found by the index, and is equal to references. The strict form of a string has quotes.
            let isRow = column.role == .identity && isSingle && !models.distinguishesTypes(model.name)
            let value =
                column.source == .identity || isRow
                ? "o.identity"
                : ViewExpression(payload: Views.payload("o", "v"), scope: "s.id").value(of: column.source)
            let conversion = ViewConversion(column.conversion, coerces: column.coerces)
            if case .computed(let sql) = conversion {
                lines.append("(SELECT \(sql) FROM (SELECT \(value) AS t)) AS \(SQLText.quoted(column.name))")
            }
            var name = column.name
            if conversion != .checked {
                name += "_raw"
                while !names.insert(name.lowercased()).inserted { name += "_" }
            }
            lines.append("\(value) AS \(SQLText.quoted(name))")
        }
        if model.sharesAll { lines.append("\(ViewExpression.plain(Views.payload("o", "v"))) AS json") }
        return lines
    }

    /// The condition by which a view shows each identity once; empty for one that shows all objects.
    private var latest: String {
        guard scope == .current else { return "" }
        // One look-up in the index for each other principal and context that has objects of the model.
        return """

              AND NOT EXISTS (
                SELECT 1 FROM _scopes s1
                JOIN _collections c1 ON c1.scope = s1.id AND c1.model = c.model AND c1.id <> c.id
                JOIN _objects o1 ON o1.collection = c1.id AND o1.identity = o.identity
                WHERE s1.upstream = s.upstream AND o1.deleted IS NULL AND (o1.changed, o1.id) > (o.changed, o.id))
            """
    }

    /// The condition by which an object of a cluster belongs to this concrete model; empty if nothing decides it.
    private var choice: String {
        guard let (_, conditions) = models.choiceConditions(of: model.name), let own = conditions.last else {
            return ""
        }
        let expression = ConditionExpression(payload: Views.payload("o", "v"))
        let others = conditions.dropLast().map { $0.map(expression.text) ?? "1" }
        let wanted = own.map(expression.text) ?? "1"
        return ([wanted] + others.map { "NOT \($0)" }).map { "\n  AND \($0)" }.joined()
    }
}

/// Builds the SQL for a column's value, given the SQL for the object's JSON and scope.
private struct ViewExpression {
    let payload: String
    let scope: String
    var depth = 0
    /// The SQLite JSON path in which paths begin: that of an object embedded in the payload.
    var base = "$"

    func value(of source: ViewColumn.Source) -> String {
        switch source {
        case .value(let path): extract(path)
        case .document(let path): Self.plain(extract(path))
        case .one(let path, _): one(path)
        case .many(let path, _): many(path)
        case .keyed(let path, _): keyed(path)
        // The identity is in the row itself; only the object's own column uses it.
        case .identity: "NULL"
        case .elements(let path, let inner): elements(path, inner)
        case .object(let parts):
            "json_object(\(parts.map { "\(SQLText.literal($0.name)), \(json(of: $0.source))" }.joined(separator: ", ")))"
        case .derived(let path, let model, let source): derived(source, through: path, to: model)
        case .first(let sources): "coalesce(\(sources.map(value).joined(separator: ", ")))"
        }
    }

    /// The value as a part of other JSON.
    private func json(of source: ViewColumn.Source) -> String {
        switch source {
        case .many, .keyed, .elements, .object: "json(\(value(of: source)))"
        case .document(let path), .one(let path, _):
            "CASE WHEN \(type(path)) IN ('object', 'array') THEN json(\(value(of: source))) ELSE \(value(of: source)) END"
        case .value, .identity, .derived, .first: value(of: source)
        }
    }

    private func full(_ path: String) -> String { base + path.dropFirst() }

    private func extract(_ path: String) -> String {
        "json_extract(\(payload), \(SQLText.literal(full(path))))"
    }

    private func type(_ path: String) -> String {
        "json_type(\(payload), \(SQLText.literal(full(path))))"
    }

    private func one(_ path: String) -> String {
        "CASE \(type(path)) WHEN 'text' THEN \(identity(in: extract(path))) "
            + "WHEN 'integer' THEN \(extract(path)) WHEN 'real' THEN \(extract(path)) "
            + "WHEN 'object' THEN \(Self.plain(extract(path))) END"
    }

    private func many(_ path: String) -> String {
        each(path, of: "array", "json_group_array(\(Self.member(identity(in: "e.value"))))")
    }

    private func keyed(_ path: String) -> String {
        each(path, of: "object", "json_group_object(e.key, \(Self.member(identity(in: "e.value"))))")
    }

    /// An element or member that names an object, or is an object without an identity.
    private static func member(_ identity: String) -> String {
        "CASE e.type WHEN 'text' THEN \(identity) WHEN 'integer' THEN e.value WHEN 'real' THEN e.value "
            + "WHEN 'object' THEN json(\(plain("e.value"))) END"
    }

    /// The result computed from the elements or members of a container; NULL for another type of value.
    private func each(_ path: String, of type: String, _ result: String) -> String {
        "CASE \(self.type(path)) WHEN '\(type)' THEN (SELECT \(result) "
            + "FROM json_each(\(payload), \(SQLText.literal(full(path)))) e) END"
    }

    private func elements(_ path: String, _ inner: ViewColumn.Source) -> String {
        // Only objects have members; json_extract fails for other values.
        let element = ViewExpression(
            payload: "(CASE e.type WHEN 'object' THEN e.value END)",
            scope: scope,
            depth: depth
        )
        return each(path, of: "array", "json_group_array(\(element.json(of: inner)))")
    }

    private func derived(_ source: ViewColumn.Source, through path: String, to model: String) -> String {
        let (o, v, c, m) = ("o\(depth)", "v\(depth)", "c\(depth)", "m\(depth)")
        let target = ViewExpression(payload: Views.payload(o, v), scope: scope, depth: depth + 1)
        let embedded = ViewExpression(payload: payload, scope: scope, depth: depth + 1, base: full(path))
        return
            "CASE \(type(path)) WHEN 'object' THEN \(embedded.value(of: source)) ELSE (SELECT \(target.value(of: source)) FROM _names \(m) "
            + "JOIN _collections \(c) ON \(c).scope = \(scope) AND \(c).model = \(m).id "
            + "JOIN _objects \(o) ON \(o).collection = \(c).id AND \(o).identity = \(one(path)) "
            + "LEFT JOIN _versions \(v) ON \(v).id = \(o).version "
            + "WHERE \(m).text = \(SQLText.literal(model))) END"
    }

    /// JSON, or any other value, with identities in place of references.
    static func plain(_ value: String) -> String {
        // The steps alternate: up to the next reference, then over it. An integer is written without quotes.
        let mark = #"'"\u0001'"#
        let word = #"substr(tail, 1, instr(tail, '"') - 1)"#
        let number = "CAST(CAST(\(word) AS INTEGER) AS TEXT) = \(word)"
        return """
            (SELECT CASE WHEN typeof(t) = 'text' AND instr(t, \(mark)) THEN (
              WITH RECURSIVE parts(head, tail, within) AS (
                SELECT '', t, 0
                UNION ALL
                SELECT
                  CASE WHEN NOT within THEN head || substr(tail, 1, instr(tail, \(mark)) - 1)
                    WHEN \(number) THEN head || \(word) ELSE head || '"' END,
                  CASE WHEN NOT within THEN substr(tail, instr(tail, \(mark)) + instr(substr(tail, instr(tail, \(mark))), ':'))
                    WHEN \(number) THEN substr(tail, instr(tail, '"') + 1) ELSE tail END,
                  NOT within
                FROM parts WHERE within OR instr(tail, \(mark)))
              SELECT head || tail FROM parts WHERE NOT within AND NOT instr(tail, \(mark))) ELSE t END
            FROM (SELECT \(value) AS t))
            """
    }

    /// The identity in a reference literal or a plain text, as in the object's row.
    private func identity(in text: String) -> String {
        let name =
            "CASE WHEN substr(\(text), 1, 1) = char(1) "
            + "THEN substr(\(text), instr(\(text), ':') + 1) ELSE \(text) END"
        return "(SELECT CASE WHEN CAST(CAST(t AS INTEGER) AS TEXT) = t THEN CAST(t AS INTEGER) ELSE t END "
            + "FROM (SELECT \(name) AS t))"
    }
}

/// Builds the SQL for a condition on an object's JSON.
private struct ConditionExpression {
    let payload: String

    /// The SQL of a condition; its value is never NULL.
    func text(_ condition: Condition) -> String {
        switch condition {
        case .has(let member): "(\(type(member)) IS NOT NULL)"
        case .member(let member, let values):
            "(" + (["0"] + values.map { equals(member, $0) }).joined(separator: " OR ") + ")"
        case .all(let conditions): "(" + (["1"] + conditions.map(text)).joined(separator: " AND ") + ")"
        case .any(let conditions): "(" + (["0"] + conditions.map(text)).joined(separator: " OR ") + ")"
        case .not(let condition): "NOT \(text(condition))"
        }
    }

    private func equals(_ member: String, _ value: [UInt8]) -> String {
        let json = "json(\(SQLText.literal(String(decoding: value, as: UTF8.self))))"
        // Both sides are compared as JSON values, so that types are compared too.
        return "(\(type(member)) IS json_type(\(json)) AND \(extract(member)) IS json_extract(\(json), '$'))"
    }

    private func type(_ member: String) -> String { "json_type(\(payload), \(path(member)))" }

    private func extract(_ member: String) -> String { "json_extract(\(payload), \(path(member)))" }

    private func path(_ member: String) -> String {
        SQLText.literal(Models.sqlitePath(of: member) ?? "$.\"\"")
    }
}

/// Quotes names and texts for SQL.
enum SQLText {
    static func literal(_ text: String) -> String { "'\(text.replacing("'", with: "''"))'" }

    static func quoted(_ name: String) -> String { "\"\(name.replacing("\"", with: "\"\""))\"" }
}
