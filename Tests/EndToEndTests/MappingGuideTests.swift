import Foundation
import TestSupport
import Testing

/// The examples of `docs/mapping.md`, run as they stand there.
@Suite(.scripts) struct MappingGuideTests {
    private struct Example {
        let config: String
        let input: String
        /// What the upstream answers, by method and path; empty: the commands need none.
        let answers: [String: String]
        /// Commands, each with what it prints.
        var runs: [(command: String, output: String)]
    }

    private static let guide = "\(Repository.root)/docs/mapping.md"

    /// A `yaml` block holds for all that follow, a `json` block is the file of the `console` blocks after it; an `http` block
    /// is what the upstream answers from then on.
    private static func examples() throws -> [Example] {
        var (config, input): (String, String) = ("", "")
        var answers: [String: String] = [:]
        var examples: [Example] = []
        let parts = try String(contentsOfFile: "/" + guide, encoding: .utf8).components(separatedBy: "```")
        for block in stride(from: 1, to: parts.count, by: 2).map({ parts[$0] }) {
            let kind = block.prefix { $0 != "\n" }
            let text = String(block.dropFirst(kind.count + 1))
            switch kind {
            case "yaml": (config, answers) = (text, [:])
            case "json": input = String(text.dropLast())
            case "http": answers.merge(Self.answers(text)) { _, new in new }
            case "console":
                examples.append(Example(config: config, input: input, answers: answers, runs: runs(text)))
            default: Issue.record("the guide has a block of the kind \"\(kind)\"")
            }
        }
        return examples
    }

    /// `GET /users/7`, below it the body; answers are apart by an empty line.
    private static func answers(_ text: String) -> [String: String] {
        var answers: [String: String] = [:]
        for part in text.components(separatedBy: "\n\n") {
            let lines = part.split(separator: "\n", maxSplits: 1).map(String.init)
            answers[lines[0]] = lines.count > 1 ? lines[1].trimmingCharacters(in: .newlines) : ""
        }
        return answers
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

    @Test func `every example of a command prints what the guide says`() throws {
        let examples = try Self.examples().filter(\.answers.isEmpty)
        #expect(examples.count > 20)
        for example in examples {
            let folder = TemporaryFolder()
            let upstream = "upstreams: { api: { url: \"https://api.example\" } }\n"
            let config = try folder.write(upstream + example.config, to: "larder.yaml")
            let file = try folder.write(example.input, to: "in.json")
            #expect(!example.runs.isEmpty)
            for run in example.runs {
                let words = Self.words(of: run.command).map { $0 == "in.json" ? file : $0 }
                #expect(words.first == "larder")
                let process = try TestProcess(Larder.binary, words.dropFirst() + ["--config", config])
                process.waitForEnd()
                #expect(process.output + process.errors == run.output, "\(run.command)")
            }
        }
    }

    @Test func `every example of requests is answered as the guide says`() throws {
        let examples = try Self.examples().filter { !$0.answers.isEmpty }
        #expect(examples.count > 3)
        // One daemon as long as the config stays: what it was told before, it knows.
        for (config, examples) in Dictionary(grouping: examples, by: \.config) {
            let answers = Monitor([String: String]())
            let origin = try Origin { request in
                guard let body = answers.current["\(request.method) \(request.target)"] else {
                    return .json("{}", status: 404)
                }
                return .json(body, Fresh.hour)
            }
            let larder = try Larder(config: "upstreams: { api: { url: \"\(origin.url)\" } }\n" + config)
            for example in examples {
                answers.withLock { $0 = example.answers }
                for run in example.runs {
                    #expect(try Self.output(of: run.command, larder) == run.output, "\(run.command)")
                    #expect(try larder.waitForQuiet())
                }
            }
        }
    }

    /// What `curl` or `sqlite3` prints.
    private static func output(of command: String, _ larder: Larder) throws -> String {
        let words = words(of: command)
        if words.first == "sqlite3" { return try larder.sql(words[2]).map { $0 + "\n" }.joined() }
        #expect(words.first == "curl")
        let address = try #require(words.last?.split(separator: "/", maxSplits: 1))
        #expect(address.first == "localhost:8787")
        var (method, fields): (String, FieldLines) = ("GET", [:])
        for (option, value) in zip(words, words.dropFirst()) {
            switch option {
            case "-X": method = value
            case "-H":
                let parts = value.split(separator: ": ", maxSplits: 1).map(String.init)
                fields = [parts[0]: parts[1]]
            default: continue
            }
        }
        return try larder.request(method, "/" + (address.last ?? ""), fields).text + "\n"
    }

    /// The words of a command line; single quotes keep blanks together.
    private static func words(of command: String) -> [String] {
        command.split(separator: "'", omittingEmptySubsequences: false).enumerated().flatMap { index, part in
            index % 2 == 1 ? [String(part)] : part.split(separator: " ").map(String.init)
        }
    }
}
