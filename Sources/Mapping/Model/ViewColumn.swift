/// One column of a model's SQL view: its name and the source of its value.
public struct ViewColumn: Sendable, Equatable {
    /// Where the value of a column is found.
    public indirect enum Source: Sendable, Equatable {
        /// A plain value at this SQLite JSON path of the object's payload.
        case value(path: String)
        /// A value at this path that contains declared objects, so it may contain reference literals.
        case document(path: String)
        /// A related object at this path, or an array or an object of such.
        ///
        /// It is a reference literal (see `Reference`), a bare identity, an object without an identity, or null.
        case relation(path: String, arity: Arity)
        case identity
        /// The values that `inner` gives for each element of the array at `path`.
        case elements(path: String, inner: Source)
        case reference([Source])
        case object([Part])
        /// A column source of `model`, of the object that the relation at `path` refers to or that is embedded there.
        case derived(path: String, model: String, inner: Source)
        /// The first of these that is present: the spellings of one member.
        case first([Source])
    }

    /// One member of the object that a column shows.
    public struct Part: Sendable, Equatable {
        public var name: String
        public var source: Source
    }

    /// The role of a column in its model; a property that is also the identity counts as identity.
    public enum Role: Sendable, Equatable { case identity, key, property }

    /// Unique in the view, regardless of case.
    public var name: String
    public var role: Role
    public var source: Source
    public var conversion: ConversionDeclaration?
    /// Whether values of other types are converted too (`coerce`).
    public var coerces = false
}

extension Models {
    /// Names of columns that every view has; no column of a model uses them.
    public static let reservedColumns = ["upstream", "principal", "context", "json"]

    /// Whether objects of this model have an identity; all others stay within the objects that show them.
    public func hasIdentity(_ model: String) -> Bool { index(of: model).map { compiled[$0].hasIdentity } ?? false }

    /// Whether the value of one member is the whole identity.
    public func isIdentityOneMember(of model: String) -> Bool {
        index(of: model).map { compiled[$0].hasOwnIdentity && compiled[$0].reading.identity.count == 1 } ?? false
    }

    /// Whether the number 7 and the string "7" identify different objects of this model.
    public func distinguishesTypes(_ model: String) -> Bool {
        index(of: model).map { compiled[$0].distinguishesTypes } ?? false
    }

    /// The SQLite JSON path of a key path; nil if it is malformed or crosses an array.
    public static func sqlitePath(of path: String) -> String? {
        KeyPathSyntax.steps(of: path)?.names.map { KeyPathSyntax.sqlitePath($0) }
    }

    /// The columns of a model's view: the whole identity, its members, the keys, then the properties that SQL can show.
    ///
    /// Empty for an unknown model. A concrete model of a cluster includes the columns of its base. A column has the
    /// name of the property that reads its value, or else the member names joined by underscores.
    public func columns(of model: String) -> [ViewColumn] {
        guard let index = index(of: model) else { return [] }
        let model = compiled[index]
        var columns = ColumnList()
        if model.hasIdentity { columns.add(ViewColumn("identity", .identity, .identity), at: [.name("@")]) }
        let identity = zip(model.identityNames, model.reading.identity).map { ($0, $1, ViewColumn.Role.identity) }
        for (name, part, role) in identity + model.reading.keys.map({ ($0.name, $0.part, .key) }) {
            let paths = part.paths.map { $0.map(PathStep.name) }
            guard let source = source(of: paths, in: index) else { continue }
            let property =
                model.members.first { $0.declaration.name == name }
                ?? model.members.first { $0.spellings.contains { steps(of: $0) == paths[0] } }
            let title =
                property.flatMap { $0.index == nil ? nil : $0.declaration.name }
                ?? part.paths[0].joined(separator: "_")
            // References are compared with the identity, so it is not converted.
            let declaration = role == .key ? property?.declaration : nil
            columns.add(ViewColumn(title, role, source, of: declaration), at: paths[0])
        }
        for member in model.members where member.index != nil {
            let property = member.declaration
            let paths = member.spellings.compactMap(steps)
            if !property.parts.isEmpty {
                let source = source(ofPartsOf: property, in: index)
                columns.add(ViewColumn(property.name, .property, source), at: [.name("@" + property.name)])
            } else if let path = paths.first, let source = source(of: paths, in: index) {
                columns.add(ViewColumn(property.name, .property, source, of: property), at: path)
            }
        }
        return columns.columns
    }

    /// The conditions that decide whether an object of a cluster belongs to one of its concrete models, in the order in
    /// which they are tried; nil if nothing decides it.
    ///
    /// The object belongs to the model if the last one holds and none before it does.
    public func choiceConditions(of model: String) -> [Condition?]? {
        guard let index = index(of: model) else { return nil }
        let root = compiled[index].objectName
        guard root != model, let base = self.index(of: root),
            let position = declarations[base].choices.firstIndex(where: { $0.model == model })
        else { return nil }
        let sources = compiled[base].declaration.sources(compiled[base].members)
        return declarations[base].choices[...position].map { $0.condition?.spelled(by: sources) }
    }

    /// The steps to a member; nil for a malformed key path or a value from the surroundings.
    private func steps(of path: String) -> [PathStep]? {
        ContextValue.isSpelled(path) ? nil : KeyPathSyntax.steps(of: path)
    }

    /// The source for the spellings of one member; nil if SQL cannot follow any of them.
    private func source(of spellings: [[PathStep]], in model: Int) -> ViewColumn.Source? {
        let sources = spellings.compactMap { source($0[...], in: model) }
        return sources.count > 1 ? .first(sources) : sources.first
    }

    /// The source of a value that is combined from parts: for a reference, the identity of its object.
    private func source(ofPartsOf property: PropertyDeclaration, in model: Int) -> ViewColumn.Source {
        let parts = property.parts.compactMap { part in
            steps(of: part.from).flatMap { source($0[...], in: model) }
                .map { ViewColumn.Part(name: part.name, source: $0) }
        }
        guard let related = (property.relation.flatMap { index(of: $0.model) }) else { return .object(parts) }
        let sources = compiled[related].declaration.sources(compiled[related].members)
        return .reference(
            compiled[related].identityNames.compactMap { name in
                parts.first { sources($0.name)[0] == sources(name)[0] }?.source
            }
        )
    }

    /// The source for a key path of a model, following relations; nil if SQL cannot follow it.
    private func source(_ path: ArraySlice<PathStep>, in model: Int) -> ViewColumn.Source? {
        var node: Int? = compiled[model].root
        var names: [String] = []
        for (offset, step) in path.enumerated() {
            let rest = path.dropFirst(offset + 1)
            guard case .name(let name) = step else {
                // The values within elements are read element by element. Nested arrays are beyond a column.
                guard let inner = rest.names, let node, tree.nodes[node].relation < 0 else { return nil }
                let source = elementSource(inner, under: Int(tree.nodes[node].element))
                return .elements(path: KeyPathSyntax.sqlitePath(names), inner: source)
            }
            names.append(name)
            node = node.flatMap { tree.child(of: $0, named: name) }
            guard let place = node.map({ tree.nodes[$0] }), place.relation >= 0 else { continue }
            let here = KeyPathSyntax.sqlitePath(names)
            let target = compiled[Int(place.relation)]
            if rest.isEmpty { return .relation(path: here, arity: place.arity ?? .many) }
            // A key path does not lead through several objects, so there is never a value.
            guard place.arity == .one else { return nil }
            if target.hasIdentity {
                let inner = source(rest, in: Int(place.relation))
                return inner.map { .derived(path: here, model: target.objectName, inner: $0) }
            }
            // The object is always embedded in the same payload.
            node = target.root
        }
        return plain(path: KeyPathSyntax.sqlitePath(names), at: node)
    }

    /// The source of a value that is not a relation itself.
    private func plain(path: String, at node: Int?) -> ViewColumn.Source {
        node.map(containsRelation) ?? false ? .document(path: path) : .value(path: path)
    }

    /// Whether any object is declared below a node.
    private func containsRelation(_ node: Int) -> Bool {
        let place = tree.nodes[node]
        let below = tree.children(of: place) + (place.element >= 0 ? [Int(place.element)] : [])
        return below.contains { tree.nodes[$0].relation >= 0 || containsRelation($0) }
    }

    /// The source for a path within an element of an array.
    private func elementSource(_ names: [String], under element: Int) -> ViewColumn.Source {
        let path = KeyPathSyntax.sqlitePath(names)
        let root = element < 0 ? nil : element
        let node = names.reduce(root) { node, name in node.flatMap { tree.child(of: $0, named: name) } }
        guard let node, tree.nodes[node].relation >= 0 else { return plain(path: path, at: node) }
        return .relation(path: path, arity: .one)
    }
}

/// Collects columns, each name and each key path once.
private struct ColumnList {
    private(set) var columns: [ViewColumn] = []
    private var names = Set(Models.reservedColumns)
    private var paths: Set<[PathStep]> = []

    mutating func add(_ column: ViewColumn, at path: [PathStep]) {
        guard paths.insert(path).inserted else { return }
        var column = column
        column.name = Models.sanitised(column.name)
        while !names.insert(column.name.lowercased()).inserted { column.name += "_" }
        columns.append(column)
    }
}

extension ViewColumn {
    /// A column with what a property declares about its value.
    fileprivate init(_ name: String, _ role: Role, _ source: Source, of property: PropertyDeclaration? = nil) {
        self.init(name: name, role: role, source: source)
        guard let property, property.relation == nil else { return }
        (conversion, coerces) = (property.conversion, property.coerces)
    }
}
