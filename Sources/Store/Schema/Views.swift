import GRDB
import Mapping

/// The SQL views for users: two for each declared model with an identity.
///
/// `MODEL` has a row for each object of each principal and context. `MODEL_current` has one row for each identity: the object
/// that changed last, of any principal and context.
struct Views {
    private let definitions: [(name: String, sql: String)]

    init(models: [UpstreamKey: Models]) {
        let all = models.sorted { $0.key < $1.key }.flatMap { upstream, models in
            models.declarations.map { (upstream: upstream, models: models, declaration: $0) }
        }.filter { $0.models.hasIdentity($0.declaration.name) }
        let count = Dictionary(grouping: all) { $0.declaration.name.lowercased() }.mapValues(\.count)
        let named = all.map { entry in
            let model = entry.declaration.name
            let isAmbiguous = (count[model.lowercased()] ?? 0) > 1
            return (entry, name: isAmbiguous ? "\(entry.upstream.name)_\(model)" : model)
        }
        let views = named.map { entry, name in
            let view = ViewDefinition(model: entry.declaration, upstream: entry.upstream, models: entry.models)
            return (name, sql: view.sql(named: name), current: view.currentSQL(of: name))
        }
        // A model may have the name of another one's view.
        var taken: Set = [Self.objects]
        let own = views.filter { taken.insert($0.0.lowercased()).inserted }
        definitions =
            [(Self.objects, Self.objectsSQL)] + own.map { ($0.0, $0.sql) }
            + own.map { ("\($0.0)_current", $0.current) }.filter { taken.insert($0.0.lowercased()).inserted }
    }

    /// Replaces the file's views by these, if they differ.
    func install(in database: Database, hasher: KeyHasher) throws {
        let text = definitions.map(\.sql).joined(separator: ";\n")
        let digest = Int64(bitPattern: hasher.contentHash(Array(text.utf8)))
        guard try Meta.views.integer(in: database) != digest else { return }
        let existing = try database.query("SELECT name FROM sqlite_schema WHERE type = 'view'").all { $0.string(0) }
        for name in existing { try database.execute(sql: "DROP VIEW \(SQLText.quoted(name))") }
        for definition in definitions { try database.execute(sql: definition.sql) }
        try Meta.views.set(digest, in: database)
    }

    /// The internal view that all others read: SQLite makes one query of both, and evaluates only the columns that it needs.
    static let objects = "_known_objects"

    private static let objectsSQL = """
        CREATE VIEW \(objects) AS SELECT
          u.text AS origin, m.text AS model, s.id AS scope, p.label AS principal, x.text AS context,
          o.id AS object, o.identity AS identity, o.changed AS changed, o.deleted AS deleted,
          \(payload) AS json
        FROM _names m
        JOIN _names u
        JOIN _scopes s ON s.upstream = u.id
        JOIN _collections c ON c.scope = s.id AND c.model = m.id
        JOIN _objects o ON o.collection = c.id
        JOIN _principals p ON p.id = s.principal
        JOIN _names x ON x.id = s.context
        LEFT JOIN _versions v ON v.id = o.version
        """

    /// The object's JSON; NULL if SQLite's parser does not accept it, so that no row fails a query.
    ///
    /// The check is here and not in the join: so a query that needs no JSON, such as a count, reads none.
    private static let payload = {
        let json = "coalesce(o.merged, v.payload)"
        return "CASE WHEN json_valid(\(json)) THEN \(json) END"
    }()
}

private struct ViewDefinition {
    let model: ModelDeclaration
    let upstream: UpstreamKey
    let models: Models

    func sql(named name: String) -> String {
        """
        CREATE VIEW \(SQLText.quoted(name)) AS SELECT
          \(columns.joined(separator: ",\n  "))
        FROM \(Views.objects) o
        WHERE \(ownObjects)\(choice)
        """
    }

    /// The view that shows each identity once: of its objects, the one that changed last.
    func currentSQL(of name: String) -> String {
        // One look-up in the index for each principal and context that has objects of the model.
        """
        CREATE VIEW \(SQLText.quoted("\(name)_current")) AS SELECT v.* FROM \(SQLText.quoted(name)) v
        WHERE (v.principal, v.context) = (
          SELECT o.principal, o.context FROM \(Views.objects) o WHERE \(ownObjects) AND o.identity = v.identity
          ORDER BY o.changed DESC, o.object DESC LIMIT 1)
        """
    }

    private var ownObjects: String {
        let object = models.objectName(of: model.name)
        return
            "o.origin = \(SQLText.literal(upstream.rawValue)) AND o.model = \(SQLText.literal(object)) AND o.deleted IS NULL"
    }

    private var columns: [String] {
        let columns = models.columns(of: model.name)
        let isSingle = models.isIdentityOneMember(of: model.name)
        var names = Set((columns.map(\.name) + Models.reservedColumns).map { $0.lowercased() })
        var lines = [
            "\(SQLText.literal(upstream.name)) AS upstream", "o.principal", "o.context",
        ]
        for column in columns {
            // This value is found by the index, and is equal to references. The strict form of a string has quotes.
            let isRow = column.role == .identity && isSingle && !models.distinguishesTypes(model.name)
            let value =
                column.source == .identity || isRow
                ? "o.identity"
                : ViewExpression(object: "o").value(of: column.source)
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
        if model.sharesAll { lines.append("\(ViewExpression.plain("o.json")) AS json") }
        return lines
    }

    /// The condition by which an object of a cluster belongs to this concrete model; empty if nothing decides it.
    private var choice: String {
        guard let conditions = models.choiceConditions(of: model.name), let own = conditions.last else { return "" }
        let expression = ConditionExpression(payload: "o.json")
        let others = conditions.dropLast().map { $0.map(expression.text) ?? "1" }
        let wanted = own.map(expression.text) ?? "1"
        return ([wanted] + others.map { "NOT \($0)" }).map { "\n  AND \($0)" }.joined()
    }
}

/// Builds the SQL for a column's value.
private struct ViewExpression {
    /// The name of the row of `Views.objects`.
    let object: String
    /// The SQL for the JSON, which may be a part of the row's.
    let payload: String
    var depth = 0
    /// The SQLite JSON path in which paths begin: that of an object embedded in the payload.
    var base = "$"

    init(object: String, payload: String? = nil, depth: Int = 0) {
        (self.object, self.depth) = (object, depth)
        self.payload = payload ?? "\(object).json"
    }

    func value(of source: ViewColumn.Source) -> String {
        switch source {
        case .value(let path): extract(path)
        case .document(let path): Self.plain(extract(path))
        case .relation(let path, .one): one(path)
        case .relation(let path, .many): many(path)
        case .relation(let path, .keyed): keyed(path)
        // The identity is in the row itself; only the object's own column uses it.
        case .identity: "NULL"
        case .elements(let path, let inner): elements(path, inner)
        case .reference(let parts): reference(parts)
        case .object(let parts):
            "json_object(\(parts.map { "\(SQLText.literal($0.name)), \(json(of: $0.source))" }.joined(separator: ", ")))"
        case .derived(let path, let model, let source): derived(source, through: path, to: model)
        case .first(let sources): "coalesce(\(sources.map(value).joined(separator: ", ")))"
        }
    }

    /// The value as a part of other JSON.
    private func json(of source: ViewColumn.Source) -> String {
        switch source {
        case .relation(_, .many), .relation(_, .keyed), .elements, .object: "json(\(value(of: source)))"
        case .document(let path), .relation(let path, .one):
            "CASE WHEN \(type(path)) IN ('object', 'array') THEN json(\(value(of: source))) ELSE \(value(of: source)) END"
        case .value, .identity, .reference, .derived, .first: value(of: source)
        }
    }

    private func reference(_ parts: [ViewColumn.Source]) -> String {
        guard parts.count > 1 else { return parts.first.map(value) ?? "NULL" }
        return parts.map { #"replace(replace(\#(value(of: $0)), '\', '\\'), ':', '\:')"# }
            .joined(separator: " || ':' || ")
    }

    private func full(_ path: String) -> String { base + path.dropFirst() }

    private func extract(_ path: String) -> String { "json_extract(\(payload), \(SQLText.literal(full(path))))" }

    private func type(_ path: String) -> String { "json_type(\(payload), \(SQLText.literal(full(path))))" }

    private func one(_ path: String) -> String {
        "CASE \(type(path)) WHEN 'text' THEN \(Self.identity(in: extract(path))) "
            + "WHEN 'integer' THEN \(extract(path)) WHEN 'real' THEN \(extract(path)) "
            + "WHEN 'object' THEN \(Self.plain(extract(path))) END"
    }

    private func many(_ path: String) -> String { each(path, of: "array", "json_group_array(\(Self.member))") }

    private func keyed(_ path: String) -> String {
        each(path, of: "object", "json_group_object(e.key, \(Self.member))")
    }

    /// An element or member that names an object, or is an object without an identity.
    private static let member =
        "CASE e.type WHEN 'text' THEN \(identity(in: "e.value")) WHEN 'integer' THEN e.value WHEN 'real' THEN e.value "
        + "WHEN 'object' THEN json(\(plain("e.value"))) END"

    /// The result computed from the elements or members of a container; NULL for another type of value.
    private func each(_ path: String, of type: String, _ result: String) -> String {
        "CASE \(self.type(path)) WHEN '\(type)' THEN (SELECT \(result) "
            + "FROM json_each(\(payload), \(SQLText.literal(full(path)))) e) END"
    }

    private func elements(_ path: String, _ inner: ViewColumn.Source) -> String {
        // Only objects have members; json_extract fails for other values.
        let member = "(CASE e.type WHEN 'object' THEN e.value END)"
        let element = ViewExpression(object: object, payload: member, depth: depth)
        return each(path, of: "array", "json_group_array(\(element.json(of: inner)))")
    }

    private func derived(_ source: ViewColumn.Source, through path: String, to model: String) -> String {
        let row = "o\(depth)"
        let target = ViewExpression(object: row, depth: depth + 1)
        var embedded = self
        (embedded.depth, embedded.base) = (depth + 1, full(path))
        return
            "CASE \(type(path)) WHEN 'object' THEN \(embedded.value(of: source)) ELSE (SELECT \(target.value(of: source)) "
            + "FROM \(Views.objects) \(row) WHERE \(row).scope = \(object).scope AND \(row).model = \(SQLText.literal(model)) "
            + "AND \(row).identity = \(one(path))) END"
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
    private static func identity(in text: String) -> String {
        "(SELECT CASE WHEN CAST(CAST(t AS INTEGER) AS TEXT) = t THEN CAST(t AS INTEGER) ELSE t END FROM (SELECT "
            + "CASE WHEN substr(r, 1, 1) = char(1) THEN substr(r, instr(r, ':') + 1) ELSE r END AS t FROM (SELECT \(text) AS r)))"
    }
}

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

    private func path(_ member: String) -> String { SQLText.literal(Models.sqlitePath(of: member) ?? "$.\"\"") }
}

/// Quotes names and texts for SQL.
enum SQLText {
    static func literal(_ text: String) -> String { "'\(text.replacing("'", with: "''"))'" }

    static func quoted(_ name: String) -> String { "\"\(name.replacing("\"", with: "\"\""))\"" }
}

/// How a view shows a property's value with its declared conversion.
///
/// SQL computes it when the view is read. The SQL has the value as `t`. The result is NULL for a value that the conversion does
/// not accept; the raw column still has that value.
enum ViewConversion: Equatable {
    /// The value unchanged: the conversion only checks it.
    case checked
    /// The value computed by this SQL, beside the raw one.
    case computed(String)
    /// The raw value alone: SQLite has no function for this conversion.
    case unavailable

    init(_ declaration: ConversionDeclaration?, coerces: Bool) {
        switch declaration {
        case nil: self = .checked
        case .named(let name): self = Self.builtIn(name, coerces: coerces)
        case .date(.unixSeconds):
            self = .computed(Self.time("\(coerces ? Self.number : Self.plainNumber), 'unixepoch'"))
        case .date(.unixMilliseconds):
            self = .computed(Self.time("\(coerces ? Self.number : Self.plainNumber) / 1000.0, 'unixepoch'"))
        case .date(.pattern): self = .unavailable
        case .number(let grouping, let decimal): self = .computed(Self.number(grouping: grouping, decimal: decimal))
        case .values(let pairs, let fallback, _): self = Self.values(pairs, fallback, coerces: coerces)
        case .arrayOf(let inner), .dictionaryOf(let inner):
            self = Self(inner, coerces: false) == .checked && !coerces ? .checked : .unavailable
        case .chain(let links): self = Self.chain(links, coerces: coerces)
        case .firstOf(let alternatives): self = Self.firstOf(alternatives.map { Self($0, coerces: coerces) })
        case .oneWay(let inner, _): self = Self(inner, coerces: coerces)
        }
    }

    private static func builtIn(_ name: String, coerces: Bool) -> ViewConversion {
        switch name {
        case "date": .computed(timestamp)
        case "decimal": .computed(number)
        case "integer" where coerces:
            .computed(
                "(SELECT CASE WHEN n = CAST(n AS INTEGER) THEN CAST(n AS INTEGER) END FROM (SELECT \(number) AS n))"
            )
        case "boolean" where coerces: .computed(boolean)
        case "boolean", "integer", "string", "url", "uuid": .checked
        default: .unavailable
        }
    }

    private static func chain(_ links: [ConversionDeclaration], coerces: Bool) -> ViewConversion {
        let effects = links.map { ViewConversion($0, coerces: false) }.filter { $0 != .checked }
        guard let only = effects.first else { return links.count > 1 && coerces ? .unavailable : .checked }
        return effects.count == 1 && !coerces ? only : .unavailable
    }

    /// The first of several results that is not NULL.
    private static func firstOf(_ alternatives: [ViewConversion]) -> ViewConversion {
        let results = alternatives.compactMap { if case .computed(let sql) = $0 { sql } else { nil } }
        guard results.count == alternatives.count else {
            return alternatives.allSatisfy { $0 == .checked } ? .checked : .unavailable
        }
        return .computed(results.count > 1 ? "coalesce(\(results.joined(separator: ", ")))" : results[0])
    }

    // MARK: SQL

    /// UTC to the second, so that the order of the texts is the order of their times.
    private static func time(_ arguments: String) -> String { "strftime('%Y-%m-%dT%H:%M:%SZ', \(arguments))" }

    /// RFC 3339, without the other forms that SQLite accepts: a date without a time, `now`, a number.
    private static let timestamp: String = {
        let (two, four) = ("[0-9][0-9]", "[0-9][0-9][0-9][0-9]")
        let form = "\(four)-\(two)-\(two)[Tt ]\(two):\(two):\(two)*"
        // The day is checked separately: SQLite counts 31 days in each month.
        return "CASE WHEN typeof(t) = 'text' AND t GLOB '\(form)' AND (t GLOB '*[Zz]' OR t GLOB '*[-+]\(two):\(two)') "
            + "AND date(substr(t, 1, 10), '+0 days') = substr(t, 1, 10) "
            + "THEN \(time("substr(t, 1, 10) || 'T' || substr(t, 12)")) END"
    }()

    private static let plainNumber = "CASE WHEN typeof(t) IN ('integer', 'real') THEN t END"

    /// A number, or a text that is spelled like one.
    private static let number =
        "CASE typeof(t) WHEN 'integer' THEN t WHEN 'real' THEN t WHEN 'text' THEN \(number(in: "t", "-+.eE0-9")) END"

    /// The JSON number in a text.
    private static func number(in text: String, _ characters: String) -> String {
        "CASE WHEN \(text) NOT GLOB '*[^\(characters)]*' AND json_valid(\(text)) THEN json_extract(\(text), '$') END"
    }

    /// The number in a text with groups of three digits, or none, and an optional decimal separator.
    private static func number(grouping: String, decimal: String) -> String {
        let (group, point) = (SQLText.literal(grouping), SQLText.literal(decimal))
        let whole = "CASE instr(t, \(point)) WHEN 0 THEN t ELSE substr(t, 1, instr(t, \(point)) - 1) END"
        var accepted = "typeof(t) = 'text'"
        if grouping != ".", decimal != "." { accepted += " AND t NOT GLOB '*.*'" }
        var plain = "t"
        if !grouping.isEmpty {
            plain = "replace(t, \(group), '')"
            accepted +=
                " AND (instr(t, \(group)) = 0 OR replace(printf('%,d', CAST(replace(\(whole), \(group), '') AS INTEGER)), ',', "
                + "\(group)) = \(whole) AND instr(substr(t, length(\(whole)) + 1), \(group)) = 0)"
        }
        plain = "replace(\(plain), \(point), '.')"
        return "CASE WHEN \(accepted) THEN (SELECT \(number(in: "n", "-.0-9")) FROM (SELECT \(plain) AS n)) END"
    }

    /// The words that `coerce` accepts for true and false.
    private static let boolean =
        "CASE WHEN t IN (0, 1) THEN t WHEN typeof(t) = 'text' THEN CASE "
        + "WHEN lower(t) IN ('true', 't', 'yes', 'y', 'on', '1') THEN 1 "
        + "WHEN lower(t) IN ('false', 'f', 'no', 'n', 'off', '0') THEN 0 END END"

    private static func values(_ pairs: [ConversionDeclaration.Pair], _ fallback: [UInt8]?, coerces: Bool)
        -> ViewConversion
    {
        guard fallback != nil || pairs.contains(where: { $0.wire != $0.mapped }) else { return .checked }
        // An absent value is NULL as well, and must not be converted.
        let lines = pairs.filter { $0.wire != Array("null".utf8) }.map {
            " WHEN \(json($0.wire)) THEN \(json($0.mapped))"
        }
        guard !lines.isEmpty else { return .unavailable }
        let rest = fallback.map { " ELSE CASE WHEN t IS NOT NULL THEN \(json($0)) END" } ?? ""
        let value = coerces && pairs.allSatisfy(\.isString) ? "CAST(t AS TEXT)" : "t"
        return .computed("CASE \(value)\(lines.joined())\(rest) END")
    }

    private static func json(_ value: [UInt8]) -> String {
        "json_extract(\(SQLText.literal(String(decoding: value, as: UTF8.self))), '$')"
    }
}
