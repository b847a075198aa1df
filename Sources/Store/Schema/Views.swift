import GRDB
import Mapping

/// The SQL views for users: one for each declared model.
struct Views {
    private let definitions: [(name: String, sql: String)]

    init(models: [String: Models]) {
        let all = models.sorted { $0.key < $1.key }.flatMap { upstream, models in
            models.declarations.map { (upstream: upstream, models: models, declaration: $0) }
        }
        let count = Dictionary(grouping: all) { $0.declaration.name.lowercased() }.mapValues(\.count)
        var taken: Set<String> = []
        definitions = all.compactMap { entry in
            let model = entry.declaration.name
            let isAmbiguous = (count[model.lowercased()] ?? 0) > 1
            let name = isAmbiguous ? "\(UpstreamKey.name(of: entry.upstream))_\(model)" : model
            guard taken.insert(name.lowercased()).inserted else { return nil }
            let sql = Self.definition(of: entry.declaration, named: name, upstream: entry.upstream, in: entry.models)
            return (name, sql)
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

    private static func definition(
        of model: ModelDeclaration,
        named name: String,
        upstream: String,
        in models: Models
    ) -> String {
        let columns = models.columns(of: model.name)
        let identities = columns.count { $0.role == .identity }
        var lines = [
            "\(SQLText.literal(UpstreamKey.name(of: upstream))) AS upstream", "p.label AS principal",
            "x.text AS context",
        ]
        for column in columns {
            // The row's identity is an integer if references to it are integers, so that the two can be joined.
            let expression =
                column.source == .identity || column.role == .identity && identities == 1
                ? "o.identity"
                : ViewExpression(payload: payload("o", "v"), scope: "s.id", depth: 0).value(of: column.source)
            lines.append("\(expression) AS \(SQLText.quoted(column.name))")
        }
        if model.sharesAll { lines.append("\(payload("o", "v")) AS json") }
        return """
            CREATE VIEW \(SQLText.quoted(name)) AS SELECT
              \(lines.joined(separator: ",\n  "))
            FROM _names m
            JOIN _names u ON u.text = \(SQLText.literal(upstream))
            JOIN _scopes s ON s.upstream = u.id
            JOIN _collections c ON c.scope = s.id AND c.model = m.id
            JOIN _objects o ON o.collection = c.id
            JOIN _principals p ON p.id = s.principal
            JOIN _names x ON x.id = s.context
            LEFT JOIN _versions v ON v.id = o.version AND json_valid(coalesce(o.merged, v.payload))
            WHERE m.text = \(SQLText.literal(models.objectName(of: model.name))) AND o.deleted IS NULL\(choice(of: model.name, in: models))
            """
    }

    /// The condition by which an object of a cluster belongs to this concrete model; empty if nothing decides it.
    private static func choice(of model: String, in models: Models) -> String {
        guard let (_, conditions) = models.choiceConditions(of: model), let own = conditions.last else { return "" }
        let payload = payload("o", "v")
        let others = conditions.dropLast().map { $0.map { ConditionExpression(payload: payload).text($0) } ?? "1" }
        let wanted = own.map { ConditionExpression(payload: payload).text($0) } ?? "1"
        return ([wanted] + others.map { "NOT \($0)" }).map { "\n  AND \($0)" }.joined()
    }

    /// The object's JSON; NULL if SQLite's parser does not accept it, so that no row fails a query.
    fileprivate static func payload(_ object: String, _ version: String) -> String {
        "CASE WHEN \(version).id IS NOT NULL THEN coalesce(\(object).merged, \(version).payload) END"
    }
}

/// The SQL for a column's value, given the SQL for the object's JSON and scope.
private struct ViewExpression {
    let payload: String
    let scope: String
    let depth: Int

    func value(of source: ViewColumn.Source) -> String {
        switch source {
        case .value(let path): extract(path)
        case .one(let path, _): one(path)
        case .many(let path, _): many(path)
        case .keyed(let path, _): keyed(path)
        // In the row itself; only the object's own column uses it.
        case .identity: "NULL"
        case .elements(let path, let inner): elements(path, inner)
        case .object(let parts):
            "json_object(\(parts.map { "\(SQLText.literal($0.name)), \(value(of: $0.source))" }.joined(separator: ", ")))"
        case .derived(let path, let model, let source): derived(source, through: path, to: model)
        case .first(let sources): "coalesce(\(sources.map(value).joined(separator: ", ")))"
        }
    }

    private func extract(_ path: String) -> String {
        "json_extract(\(payload), \(SQLText.literal(path)))"
    }

    private func type(_ path: String) -> String {
        "json_type(\(payload), \(SQLText.literal(path)))"
    }

    private func one(_ path: String) -> String {
        "CASE \(type(path)) WHEN 'text' THEN \(identity(in: extract(path))) "
            + "WHEN 'integer' THEN \(extract(path)) WHEN 'real' THEN \(extract(path)) END"
    }

    private func many(_ path: String) -> String {
        each(path, of: "array", "json_group_array(\(Self.member(identity(in: "e.value"))))")
    }

    private func keyed(_ path: String) -> String {
        each(path, of: "object", "json_group_object(e.key, \(Self.member(identity(in: "e.value"))))")
    }

    /// An element or member that names an object.
    private static func member(_ identity: String) -> String {
        "CASE e.type WHEN 'text' THEN \(identity) WHEN 'integer' THEN e.value WHEN 'real' THEN e.value END"
    }

    /// What is made of the elements or members of a container; NULL where another value stands.
    private func each(_ path: String, of type: String, _ result: String) -> String {
        "CASE \(self.type(path)) WHEN '\(type)' THEN (SELECT \(result) "
            + "FROM json_each(\(payload), \(SQLText.literal(path))) e) END"
    }

    private func elements(_ path: String, _ inner: ViewColumn.Source) -> String {
        // Only objects have members; json_extract fails for other values.
        let element = ViewExpression(
            payload: "(CASE e.type WHEN 'object' THEN e.value END)",
            scope: scope,
            depth: depth
        )
        return each(path, of: "array", "json_group_array(\(element.value(of: inner)))")
    }

    private func derived(_ source: ViewColumn.Source, through path: String, to model: String) -> String {
        let (o, v, c, m) = ("o\(depth)", "v\(depth)", "c\(depth)", "m\(depth)")
        let target = ViewExpression(payload: Views.payload(o, v), scope: scope, depth: depth + 1)
        return "(SELECT \(target.value(of: source)) FROM _names \(m) "
            + "JOIN _collections \(c) ON \(c).scope = \(scope) AND \(c).model = \(m).id "
            + "JOIN _objects \(o) ON \(o).collection = \(c).id AND \(o).identity = \(one(path)) "
            + "LEFT JOIN _versions \(v) ON \(v).id = \(o).version "
            + "AND json_valid(coalesce(\(o).merged, \(v).payload)) "
            + "WHERE \(m).text = \(SQLText.literal(model)))"
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

/// The SQL for a condition on an object's JSON.
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
        // Both sides as JSON values, so that types are compared too.
        return "(\(type(member)) IS json_type(\(json)) AND \(extract(member)) IS json_extract(\(json), '$'))"
    }

    private func type(_ member: String) -> String { "json_type(\(payload), \(path(member)))" }

    private func extract(_ member: String) -> String { "json_extract(\(payload), \(path(member)))" }

    private func path(_ member: String) -> String {
        SQLText.literal(Models.sqlitePath(of: member) ?? "$.\"\"")
    }
}

/// Names and texts as SQL spells them.
enum SQLText {
    static func literal(_ text: String) -> String { "'\(text.replacing("'", with: "''"))'" }

    static func quoted(_ name: String) -> String { "\"\(name.replacing("\"", with: "\"\""))\"" }
}
