import Foundation
import TestSupport
import Testing

/// The examples of `docs/mapping.md`, run as they stand there.
@Suite(.scripts) struct MappingGuideTests {
    private struct Example {
        let config: String
        let input: String
        /// Commands, each with what it prints.
        var runs: [(command: String, output: String)]
    }

    private static let guide = "\(Larder.root)/docs/mapping.md"

    /// A `yaml` block holds for all that follow, a `json` block is the file of the `console` blocks after it.
    private static func examples() throws -> [Example] {
        var (config, input): (String, String) = ("", "")
        var examples: [Example] = []
        let parts = try String(contentsOfFile: "/" + guide, encoding: .utf8).components(separatedBy: "```")
        for block in stride(from: 1, to: parts.count, by: 2).map({ parts[$0] }) {
            let kind = block.prefix { $0 != "\n" }
            let text = String(block.dropFirst(kind.count + 1))
            switch kind {
            case "yaml": config = text
            case "json": input = String(text.dropLast())
            case "console": examples.append(Example(config: config, input: input, runs: runs(text)))
            default: Issue.record("the guide has a block of the kind \"\(kind)\"")
            }
        }
        return examples
    }

    private static func runs(_ text: String) -> [(command: String, output: String)] {
        var runs: [(command: String, output: String)] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
            if line.hasPrefix("$ ") {
                runs.append((String(line.dropFirst(2)), ""))
            } else if !runs.isEmpty {
                runs[runs.count - 1].output += line + "\n"
            }
        }
        return runs
    }

    @Test func `every example prints what the guide says`() throws {
        let examples = try Self.examples()
        #expect(examples.count > 20)
        for example in examples {
            let folder = TemporaryFolder()
            let upstream = "upstreams: { api: { url: \"https://api.example\" } }\n"
            let config = try folder.write(upstream + example.config, to: "larder.yaml")
            let file = try folder.write(example.input, to: "in.json")
            #expect(!example.runs.isEmpty)
            for run in example.runs {
                let words = run.command.split(separator: " ").map { $0 == "in.json" ? file : String($0) }
                #expect(words.first == "larder")
                let process = try ChildProcess(Larder.binary, words.dropFirst() + ["--config", config])
                process.waitForEnd()
                #expect(process.output + process.errors == run.output, "\(run.command)")
            }
        }
    }
}
