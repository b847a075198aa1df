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
        /// At this path: an object whose members are reference literals and bare identities.
        case keyed(path: String, model: String)
        /// The whole identity as text.
        case identity
        /// Of each element of the array at `path`, what `inner` finds in it.
        case elements(path: String, inner: Source)
        /// An object made of several values.
        case object([Part])
        /// A value of the object that the relation at `path` points to: a column source of `model`.
        ///
        /// Where the related object has no identity it is embedded, and `inner` is found below `path` in the same payload.
        case derived(path: String, model: String, inner: Source)
        /// The first of these that is there: the spellings of one member.
        case first([Source])
    }

    /// One member of an object made of several values.
    public struct Part: Sendable, Equatable {
        /// Its name.
        public var name: String
        /// Where its value is.
        public var source: Source
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

    /// The SQLite JSON path of a key path; nil for what is none.
    public static func sqlitePath(of path: String) -> String? {
        KeyPathSyntax.steps(of: path)?.names.map { KeyPathSyntax.sqlitePath($0) }
    }

    /// The columns of a model's view: identity first, then keys, then properties; empty for an unknown model.
    ///
    /// Of a concrete model of a cluster, those of its base as well.
    public func columns(of model: String) -> [ViewColumn] {
        guard let index = index(of: model) else { return [] }
        let declaration = clusters.effective(index)
        let sources = PropertySources(declaration.properties)
        var columns = ColumnList()
        if compiled[index].hasIdentity, !compiled[index].hasOwnIdentity {
            columns.add("identity", .identity, [.name("@")], .identity)
        }
        for (names, role) in [(declaration.identity, ViewColumn.Role.identity), (declaration.keys, .key)] {
            for name in names {
                let property = declaration.properties.first { $0.name == name }
                let spellings = sources[name]
                guard let path = steps(of: spellings[0]), let names = path.names else { continue }
                guard let source = source(of: spellings, in: index) else { continue }
                columns.add(property?.name ?? names.joined(separator: "_"), role, path, source)
            }
        }
        var shown: Set<String> = []
        for property in declaration.properties where shown.insert(property.name).inserted {
            if !property.parts.isEmpty {
                let parts = property.parts.compactMap { part in
                    steps(of: part.from).flatMap { source($0[...], in: index) }.map {
                        ViewColumn.Part(name: part.name, source: $0)
                    }
                }
                columns.add(property.name, .property, [.name("@" + property.name)], .object(parts))
            } else if let path = steps(of: property.from),
                let source = source(of: sources[property.name], in: index)
            {
                columns.add(property.name, .property, path, source)
            }
        }
        return columns.columns
    }

    /// The condition under which an object of a cluster is of one of its concrete models; nil: nothing decides it.
    ///
    /// In the order in which they are tried: it is of a model if the last condition holds and none before it does.
    public func choiceConditions(of model: String) -> (base: String, conditions: [Condition?])? {
        guard let index = index(of: model) else { return nil }
        let root = compiled[index].objectName
        guard root != model, let base = self.index(of: root),
            let position = declarations[base].choices.firstIndex(where: { $0.model == model })
        else { return nil }
        let properties = PropertySources(clusters.effective(base).properties)
        return (root, declarations[base].choices[...position].map { $0.condition?.spelled(by: properties) })
    }

    /// The steps to a member; nil for what is no key path, such as a value from around the object.
    private func steps(of path: String) -> [PathStep]? {
        ContextValue.isSpelled(path) ? nil : KeyPathSyntax.steps(of: path)
    }

    /// Where the spellings of one member lead; nil where SQL cannot follow any.
    private func source(of spellings: [String], in model: Int) -> ViewColumn.Source? {
        let sources = spellings.compactMap { steps(of: $0).flatMap { source($0[...], in: model) } }
        return sources.count > 1 ? .first(sources) : sources.first
    }

    /// Where a key path of a model leads, relations on the way followed; nil where SQL cannot follow it.
    private func source(_ path: ArraySlice<PathStep>, in model: Int) -> ViewColumn.Source? {
        var node = compiled[model].root
        var names: [String] = []
        var isDeclared = true
        for (offset, step) in path.enumerated() {
            let rest = path.dropFirst(offset + 1)
            guard case .name(let name) = step else {
                // What lies in the elements is looked at element by element; two arrays deep is beyond a column.
                guard rest.names != nil, isDeclared, tree.nodes[node].relation < 0 else { return nil }
                let here = KeyPathSyntax.sqlitePath(names)
                return .elements(path: here, inner: elementSource(rest, under: Int(tree.nodes[node].element)))
            }
            names.append(name)
            guard isDeclared, let child = tree.child(of: node, named: name) else {
                isDeclared = false
                continue
            }
            node = child
            let relation = tree.nodes[node].relation
            guard relation >= 0 else { continue }
            let here = KeyPathSyntax.sqlitePath(names)
            let target = compiled[Int(relation)].objectName
            if rest.isEmpty { return related(tree.nodes[node].arity, path: here, model: target) }
            // Arrays are not crossed by a key path.
            guard tree.nodes[node].arity == .one else {
                isDeclared = false
                continue
            }
            return source(rest, in: Int(relation)).map { .derived(path: here, model: target, inner: $0) }
        }
        return .value(path: KeyPathSyntax.sqlitePath(names))
    }

    /// Where a path leads within an element of an array.
    private func elementSource(_ path: ArraySlice<PathStep>, under element: Int) -> ViewColumn.Source {
        var node = element
        var names: [String] = []
        for case .name(let name) in path {
            names.append(name)
            if node >= 0 { node = tree.child(of: node, named: name) ?? -1 }
        }
        let here = KeyPathSyntax.sqlitePath(names)
        guard node >= 0, tree.nodes[node].relation >= 0 else { return .value(path: here) }
        let target = compiled[Int(tree.nodes[node].relation)].objectName
        return .one(path: here, model: target)
    }

    private func related(_ arity: PathTree.Arity, path: String, model: String) -> ViewColumn.Source {
        switch arity {
        case .one: .one(path: path, model: model)
        case .many, .either: .many(path: path, model: model)
        case .keyed: .keyed(path: path, model: model)
        }
    }
}

extension ArraySlice<PathStep> {
    /// The member names; nil if the path crosses an array.
    fileprivate var names: [String]? { Array(self).names }
}

/// Columns while they are collected: each name and each key path once.
private struct ColumnList {
    private(set) var columns: [ViewColumn] = []
    private var names = Set(Models.reservedColumns)
    private var paths: Set<[PathStep]> = []

    mutating func add(_ name: String, _ role: ViewColumn.Role, _ path: [PathStep], _ source: ViewColumn.Source) {
        guard paths.insert(path).inserted else { return }
        var name = String(
            decoding: name.utf8.map { Models.isNameByte($0) ? $0 : UInt8(ascii: "_") },
            as: UTF8.self
        )
        while !names.insert(name.lowercased()).inserted { name += "_" }
        columns.append(ViewColumn(name: name, role: role, source: source))
    }
}
