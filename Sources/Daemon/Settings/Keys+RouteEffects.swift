import HTTPSemantics
import Mapping
import Yams

/// Which object a path names, and which other paths a write to it makes outdated.
extension RouteDraft {
    static let effects: [ConfigKey<RouteDraft>] = [
        ConfigKey(
            "object",
            .named(.text, name: "login"),
            example: "{ login: login }",
            "Members of the object whose values are in the path: the model's member, then the name of the capture."
        ) { node, draft, reader in
            guard let pairs = reader.pairs(node, wanted: "members of the model, each with a capture of the path") else {
                return
            }
            for (key, place, value) in pairs {
                guard let capture = reader.text(value, wanted: "the name of a capture") else { continue }
                draft.route.object.append(.init(key: key, capture: capture))
                draft.objectPlaces.append(place)
            }
        },
        .boolean(
            "deletes",
            \.route.deletes,
            """
            Whether a DELETE with a 2xx response deletes the object. false: it only changes the object, and its response is \
            read like that of any other write.
            """
        ),
        ConfigKey(
            "invalidates",
            .list(.text),
            fallback: "[]",
            example: "[\"users/{login}/**\", search/users]",
            """
            Patterns of further paths whose responses become outdated by a write (POST, PUT, PATCH, DELETE) to this one, for \
            all clients and queries; {name} is what the capture of that name matched.
            """
        ) { node, draft, reader in
            let patterns = reader.texts(node, wanted: "a list of path patterns in quotes") ?? []
            draft.invalidates = patterns.map { ($0.text, $0.place) }
        },
    ]

    mutating func checkPattern(_ reader: inout ConfigReader) {
        guard let path else { return }
        let pattern: RoutePattern
        do {
            pattern = try RoutePattern(path)
        } catch {
            reader.error(places["path"], error.description)
            return
        }
        for (binding, place) in zip(route.object, objectPlaces)
        where !pattern.names.contains(where: { $0.name == binding.capture }) {
            let known = pattern.names.map(\.name)
            let meant =
                known.isEmpty
                ? "it has none; write {\(binding.capture)} there" : "it has \(known.joined(separator: ", "))"
            reader.error(place, "\"\(path)\" has no capture \"\(binding.capture)\"; \(meant)")
        }
        if !route.deletes, let method = route.declaration.method, method != "DELETE" {
            reader.error(
                places["deletes"],
                "\"deletes\" applies to DELETE, but the rule to \(method); remove \"method\" or \"deletes\""
            )
        }
        checkInvalidated(by: pattern, &reader)
    }

    /// Reads the patterns of what a write invalidates, whose captures are those of the route.
    private mutating func checkInvalidated(by pattern: RoutePattern, _ reader: inout ConfigReader) {
        if let place = invalidates.first?.place {
            if let method = route.declaration.method, MethodFacts.isSafe(method) {
                reader.error(
                    place,
                    "\"invalidates\" applies to writes, but the rule to \(method); remove \"method\" or \"invalidates\""
                )
            }
            if let status, !status.mayBeSuccess {
                reader.error(
                    place,
                    "a write with such a response has changed nothing, so nothing is invalidated; remove \"status\" or \"invalidates\""
                )
            }
        }
        for (text, place) in invalidates {
            do {
                let invalidated = try RoutePattern(text)
                let known = pattern.names.map(\.name)
                if let unknown = invalidated.names.first(where: { !known.contains($0.name) })?.name {
                    let meant = known.isEmpty ? "it has none" : "it has \(known.joined(separator: ", "))"
                    reader.error(
                        place,
                        "\"\(path ?? "")\" has no capture \"\(unknown)\"; \(meant). Write \"*\" for any component"
                    )
                }
                route.invalidates.append(invalidated)
            } catch {
                reader.error(place, error.description)
            }
        }
    }
}
