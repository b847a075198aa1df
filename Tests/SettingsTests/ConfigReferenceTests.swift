import Foundation
import TestSupport
import Testing
import Yams

@testable import Settings

/// The `config` folder of this package.
private let folder = Repository.root + "/config"

/// Rewrites the shipped files instead of comparing with them.
private let isUpdating = ProcessInfo.processInfo.environment["LARDER_UPDATE_REFERENCE"] != nil

private func shipped(_ name: String, _ wanted: String) throws -> String {
    let path = "\(folder)/\(name)"
    if isUpdating { try wanted.write(toFile: path, atomically: true, encoding: .utf8) }
    return try String(contentsOfFile: path, encoding: .utf8)
}

/// The sample without its `#`; `examples` says whether keys without a default are kept.
private func uncommented(examples: Bool) -> String {
    var lines: [Substring] = []
    var skippedIndentation: Int?
    for line in ConfigReference.sample.split(separator: "\n", omittingEmptySubsequences: false) {
        guard line.hasPrefix("#"), line != "#", !(line.hasPrefix("# ") && !line.hasPrefix("#  ")) else { continue }
        let line = line.dropFirst()
        let indentation = line.prefix { $0 == " " }.count
        if let skipped = skippedIndentation, indentation > skipped { continue }
        skippedIndentation = nil
        if !examples, line.hasSuffix(ConfigReference.exampleMark) {
            skippedIndentation = indentation
            continue
        }
        lines.append(line)
    }
    return lines.joined(separator: "\n") + "\n"
}

struct ConfigReferenceTests {
    @Test func `the shipped sample config is generated from the table of keys`() throws {
        #expect(try shipped("larder.yaml", ConfigReference.sample) == ConfigReference.sample)
    }

    @Test func `the shipped schema is generated from the table of keys`() throws {
        #expect(try shipped("larder.schema.json", ConfigReference.schema) == ConfigReference.schema)
    }

    @Test func `the sample config as shipped changes nothing`() {
        let overrides = ConfigOverrides(upstream: UpstreamURL())
        let file = ConfigFile.parse(ConfigReference.sample, file: "sample", environment: [:], overriding: overrides)
        #expect(file.diagnostics.isEmpty)
    }

    @Test func `the sample shows every key at its default`() throws {
        let file = ConfigFile.parse(uncommented(examples: false), file: "sample", environment: [:])
        #expect(file.diagnostics.isEmpty)
        var expected = Configuration()
        expected.upstreams = [Configuration.Upstream()]
        expected.upstreams[0].name = "github"
        expected.upstreams[0].url = try UpstreamURL("https://api.github.com")
        #expect(file.settings == expected)
    }

    @Test func `the sample's examples have no mistakes except missing files, and keys that exclude each other`() {
        let environment = ["CREDENTIALS_DIRECTORY": "/nonexistent"]
        let file = ConfigFile.parse(uncommented(examples: true), file: "sample", environment: environment)
        #expect(
            file.diagnostics.filter { found in
                found.severity == .error
                    && !["No such file", "remove one"].contains { found.message.contains($0) }
            }.isEmpty,
            "\(file.diagnostics)"
        )
    }

    @Test func `the sample has every key`() throws {
        let root = try #require(try Yams.compose(yaml: uncommented(examples: true)))
        expect(ConfigReference.root, in: root, at: "")
    }

    private func expect(_ facts: [ConfigFacts], in node: Node, at path: String) {
        for fact in facts {
            guard let value = node[fact.name] else {
                Issue.record("\(path)\(fact.name) is not in the sample")
                continue
            }
            // What an example stands for on one line is not looked into.
            switch fact.kind {
            case .section(let inner): expect(inner, in: value, at: "\(path)\(fact.name).")
            case .named(.section(let inner), let name):
                guard fact.name != "models" || path.isEmpty, let named = value[name] else { continue }
                expect(inner, in: named, at: "\(path)\(fact.name).\(name).")
            case .strictList(.section(let inner)):
                guard let first = value.sequence?.first else { continue }
                expect(inner, in: first, at: "\(path)\(fact.name).1.")
            default: break
            }
        }
    }

    @Test func `every key is documented in a sentence`() {
        func check(_ facts: [ConfigFacts], _ path: String) {
            for fact in facts {
                #expect(fact.text.hasSuffix(".") && fact.text.count > 10, "\(path)\(fact.name): \(fact.text)")
                #expect(Set(facts.map(\.name)).count == facts.count)
                switch fact.kind {
                case .section(let inner), .named(.section(let inner), _), .strictList(.section(let inner)):
                    check(inner, "\(path)\(fact.name).")
                default: break
                }
            }
        }
        check(ConfigReference.root, "")
    }

    @Test func `the schema is JSON with the types and defaults of the keys`() throws {
        let schema = try #require(
            try JSONSerialization.jsonObject(with: Data(ConfigReference.schema.utf8)) as? [String: Any]
        )
        let properties = try #require(schema["properties"] as? [String: [String: Any]])
        #expect(Set(properties.keys) == Set(ConfigReference.root.map(\.name)))
        #expect(properties["mode"]?["enum"] as? [String] == ["auto", "online", "offline"])
        #expect(properties["mode"]?["default"] as? String == "auto")
        let limits = try #require(properties["limits"]?["properties"] as? [String: [String: Any]])
        #expect(limits["fields"]?["default"] as? Int == 100)
        #expect(schema["additionalProperties"] as? Bool == false)
    }
}
