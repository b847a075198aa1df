/// One column of the SQL view of a model: what to call it and where its value is.
public struct ViewColumn: Sendable, Equatable {
    /// Where the value of a column is found.
    public indirect enum Source: Sendable, Equatable {
        /// A plain value at this SQLite JSON path (`$."user"."login"`) of the object's payload.
        case value(path: String)
        /// At this path: a reference literal (text beginning with U+0001, see `Reference`), a bare identity or null.
        case one(path: String, model: String)
        /// At this path: an array of reference literals and bare identities.
        case many(path: String, model: String)
        /// A value of the object that the relation at `path` points to: a column source of `model`.
        ///
        /// Where the related object has no identity it is embedded, and `inner` is found below `path` in the same payload.
        case derived(path: String, model: String, inner: Source)
    }

    /// What the column is to the model; one that is the identity and a property at once is the former.
    public enum Role: Sendable, Equatable { case identity, key, property }

    /// The column's name: the property's, or one made from the key path.
    ///
    /// Unique in the view whatever the case.
    public var name: String
    /// What it is to the model.
    public var role: Role
    /// Where its value is.
    public var source: Source
}

extension Models {
    /// Column names that every view has; no column made here has one of them.
    public static let reservedColumns = ["upstream", "principal", "context", "json"]

    /// The columns of a model's view: identity first, then keys, then properties; empty for an unknown model.
    public func columns(of model: String) -> [ViewColumn] {
        guard let index = index(of: model) else { return [] }
        let declaration = declarations[index]
        var columns = ColumnList()
        for (names, role) in [(declaration.identity, ViewColumn.Role.identity), (declaration.keys, .key)] {
            for name in names {
                let property = declaration.properties.first { $0.name == name }
                guard let path = KeyPathSyntax.components(of: property?.from ?? name) else { continue }
                columns.add(property?.name ?? path.joined(separator: "_"), role, path, source(path[...], in: index))
            }
        }
        for property in declaration.properties {
            guard let path = KeyPathSyntax.components(of: property.from) else { continue }
            columns.add(property.name, .property, path, source(path[...], in: index))
        }
        return columns.columns
    }

    /// Where a key path of a model leads, relations on the way followed.
    private func source(_ path: ArraySlice<String>, in model: Int) -> ViewColumn.Source {
        var node = compiled[model].root
        for (offset, name) in path.enumerated() {
            guard let child = tree.child(of: node, named: name) else { break }
            node = child
            let relation = tree.nodes[node].relation
            guard relation >= 0 else { continue }
            let here = KeyPathSyntax.sqlitePath(path.prefix(offset + 1))
            let target = declarations[Int(relation)].name
            if offset + 1 == path.count {
                return tree.nodes[node].isMany ? .many(path: here, model: target) : .one(path: here, model: target)
            }
            // Arrays are not crossed by a key path.
            if tree.nodes[node].isMany { break }
            let inner = source(path.dropFirst(offset + 1), in: Int(relation))
            return .derived(path: here, model: target, inner: inner)
        }
        return .value(path: KeyPathSyntax.sqlitePath(path))
    }
}

/// Columns while they are collected: each name and each key path once.
private struct ColumnList {
    private(set) var columns: [ViewColumn] = []
    private var names = Set(Models.reservedColumns)
    private var paths: Set<[String]> = []

    mutating func add(_ name: String, _ role: ViewColumn.Role, _ path: [String], _ source: ViewColumn.Source) {
        guard paths.insert(path).inserted else { return }
        var name = String(
            decoding: name.utf8.map { Models.isNameByte($0) ? $0 : UInt8(ascii: "_") },
            as: UTF8.self
        )
        while !names.insert(name.lowercased()).inserted { name += "_" }
        columns.append(ViewColumn(name: name, role: role, source: source))
    }
}
