import Foundation
import TestSupport

/// What the tests of models have in common: a daemon with models, and what its surfaces show.
protocol ModelFixtures {}

extension ModelFixtures {
    static var mapped: FieldLines { ["Larder-View": "mapped"] }

    /// A daemon in front of an origin that responds to each path with a body, an hour fresh.
    static func daemon(_ mapping: String, _ bodies: [String: String]) throws -> (origin: Origin, larder: Larder) {
        let origin = try Origin { request in .json(bodies[request.path] ?? "{}", Fresh.hour) }
        return (origin, try Larder(origin, config: config(origin, mapping)))
    }

    static func config(_ origin: Origin, _ mapping: String) -> String {
        """
        upstreams: { api: { url: "\(origin.url)", lag: 0s } }
        store: { withhold: 10s }
        \(mapping)
        """
    }

    /// What `larder map` prints of a body.
    static func map(_ larder: Larder, _ url: String, _ body: String, _ options: [String] = []) throws -> (
        output: String, errors: String
    ) {
        let file = try larder.folder.write(body, to: "in.json")
        let config = larder.folder.file("larder.yaml")
        let arguments = ["map", file, "--url", url, "--config", config] + options
        let process = try TestProcess(Larder.binary, arguments, environment: Larder.environment)
        process.waitForEnd()
        return (process.output.trimmingCharacters(in: .newlines), process.errors)
    }

    /// The mapped form of one object in `/objects`.
    static func object(_ larder: Larder, _ path: String) throws -> String {
        try larder.admin("GET", "/objects/\(path)?view=mapped").text
    }
}
