import Foundation
import Mapping

/// How fast recorded responses are taken apart by the models and routes of a preset.
enum Presets {
    /// What of a preset bears on that, as `run` reads it out of its YAML.
    private struct Preset: Decodable {
        var models: [Model]
        var routes: [Route]

        struct Model: Decodable {
            var name: String
            var identity: [String]
            var keys: [String]
            var properties: [Property]
            var sharesAll: Bool
            var local: [String]
            var modified: String?
        }

        struct Property: Decodable {
            var name: String
            var from: String
            var one: String?
            var many: String?
        }

        struct Route: Decodable {
            var path: String
            var method: String?
            var model: String
            var isList: Bool
            var root: String?
        }
    }

    private struct Line: Decodable {
        var path: String
        var status: Int
        var body: String?
    }

    static func measure(_ preset: String, _ file: String) throws -> [(name: String, value: Double)] {
        let read = try JSONDecoder().decode(Preset.self, from: try Data(contentsOf: URL(fileURLWithPath: preset)))
        let decomposer = Decomposer(models: try Models(read.models.map(declaration)))
        let table = try RouteTable(read.routes.map { RouteDeclaration(path: $0.path, method: $0.method) })
        var samples: [(body: [UInt8], rule: BodyRule, mappingContext: MappingContext)] = []
        var others = 0
        for text in try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n") {
            let line = try JSONDecoder().decode(Line.self, from: Data(text.utf8))
            let path = String(line.path.prefix { $0 != "?" })
            let subject = RouteSubject(method: "GET", path: path, status: line.status)
            guard let body = line.body, let match = table.match(subject) else {
                others += 1
                continue
            }
            let route = read.routes[match.index]
            samples.append(
                (
                    Array(body.utf8), BodyRule(model: route.model, isList: route.isList, root: route.root),
                    MappingContext(url: line.path, captures: match.captures, bound: [:], fields: [:])
                )
            )
        }
        let bytes = samples.reduce(0) { $0 + $1.body.count }
        var objects = 0
        let taken = Normalising.median {
            objects = 0
            for sample in samples {
                let result = decomposer.decompose(sample.body, as: sample.rule, in: sample.mappingContext)
                if case .objects(let parts) = result { objects += parts.occurrences.count }
            }
        }
        return [
            ("scan and normalise", Double(bytes) / taken / 1e6), ("bytes in MB", Double(bytes) / 1e6),
            ("objects", Double(objects)), ("responses", Double(samples.count)), ("without a route", Double(others)),
        ]
    }

    private static func declaration(_ model: Preset.Model) -> ModelDeclaration {
        ModelDeclaration(
            name: model.name,
            identity: model.identity,
            keys: model.keys,
            properties: model.properties.map { property in
                let relation = property.one.map(Relation.one) ?? property.many.map(Relation.many)
                return PropertyDeclaration(name: property.name, from: property.from, relation: relation)
            },
            sharesAll: model.sharesAll,
            local: model.local,
            modified: model.modified
        )
    }
}
