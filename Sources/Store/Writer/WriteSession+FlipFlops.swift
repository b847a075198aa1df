import GRDB
import Mapping

/// Members on which the answers of two routes disagree again and again: no longer moved between these.
extension WriteSession {
    /// Looks at what an answer changed of an object; warns of what does not move between two routes from now on.
    func note(_ changes: [MemberChange], of record: ObjectRecord, upstream: String) throws -> [MappingWarning] {
        var warnings: [MappingWarning] = []
        for change in changes {
            let member = FlipFlops.Member(object: record.id, member: change.member)
            let (old, new) = (change.old.observation, change.new.observation)
            // A write, a date of modification, or one route that shows both: it has changed.
            guard old.route != 0, new.route != 0, old.route != new.route, !change.isModified else {
                flipFlops.forget(member)
                continue
            }
            let isSettled = flipFlops.note(
                member,
                from: FlipFlops.Shown(route: old.route, value: hasher.content(change.old.value)),
                to: FlipFlops.Shown(route: new.route, value: hasher.content(change.new.value))
            )
            guard isSettled else { continue }
            let model = try names.collection(record.collection, in: database).model
            let separation = Separations.Separation(
                model: model,
                member: change.member,
                between: old.route,
                and: new.route
            )
            if let warning = try separate(separation, upstream: upstream) { warnings.append(warning) }
        }
        return warnings
    }

    /// Stops a member from moving between two routes.
    ///
    /// - Returns: the warning to record; nil if the pair was separated before.
    private func separate(_ separation: Separations.Separation, upstream: String) throws -> MappingWarning? {
        guard let declaration = models[upstream]?.models.declaration(of: separation.model),
            models[upstream]?.composer.separations.insert(separation) == true
        else { return nil }
        outcome.separations.append((upstream, separation))
        try query("INSERT OR REPLACE INTO _separations VALUES (?, ?, ?, ?, ?, ?, ?)").run(
            .string(upstream),
            .string(separation.model),
            .string(separation.member),
            .integer(separation.lower),
            .integer(separation.higher),
            .integer(digest(of: declaration)),
            .integer(clock.now())
        )
        let lower = try names.pattern(of: separation.lower, in: database)
        let higher = try names.pattern(of: separation.higher, in: database)
        let path = declaration.keyPath(of: separation.member)
        let local = (declaration.local + [path]).joined(separator: ", ")
        return MappingWarning(
            .flipFlop,
            "Write \"local: [\(local)]\" under the model \(separation.model): the routes \"\(lower)\" and \"\(higher)\" disagree about \(path) again and again, though nothing was written. It does not move between these two any more; declared local, it moves nowhere.",
            model: separation.model,
            property: path
        )
    }

    /// Takes up what was found out before, unless the model is declared otherwise since.
    func restoreSeparations() throws {
        var rows: [(upstream: String, separation: Separations.Separation, declared: Int64)] = []
        try query("SELECT upstream, model, member, lower, higher, declared FROM _separations").each { row in
            let separation = Separations.Separation(
                model: row.string(1),
                member: row.string(2),
                between: row.integer(3),
                and: row.integer(4)
            )
            rows.append((row.string(0), separation, row.integer(5)))
        }
        for (upstream, separation, declared) in rows {
            if let declaration = models[upstream]?.models.declaration(of: separation.model),
                digest(of: declaration) == declared
            {
                models[upstream]?.composer.separations.insert(separation)
            } else {
                // What was asked for may be done; if it is not, it is found out anew, and said again.
                let member = separation.member
                let path =
                    models[upstream]?.models.declaration(of: separation.model)?.keyPath(of: member)
                    ?? member.replacing("/", with: ".")
                try query("DELETE FROM _warnings WHERE kind = ? AND subject = ?")
                    .run(.string(MappingWarning.Kind.flipFlop.rawValue), .string("\(separation.model).\(path)"))
                try query(
                    "DELETE FROM _separations WHERE upstream = ? AND model = ? AND member = ? AND lower = ? AND higher = ?"
                ).run(
                    .string(upstream),
                    .string(separation.model),
                    .string(separation.member),
                    .integer(separation.lower),
                    .integer(separation.higher)
                )
            }
        }
    }

    /// Of all that decides which members move; the order of declaration does not count.
    private func digest(of declaration: ModelDeclaration) -> Int64 {
        let properties = declaration.properties.map { "\($0.name)=\($0.from)" }.sorted()
        let parts = [
            properties, declaration.local.sorted(), declaration.identity,
            ["\(declaration.sharesAll)", declaration.modified ?? ""],
        ]
        return Int64(
            bitPattern: hasher.content(
                Array(parts.map { $0.joined(separator: "\u{0}") }.joined(separator: "\u{1}").utf8)
            )
        )
    }
}
