import Foundation
import TestSupport
import Testing

/// The sessions that README and docs show, typed into a terminal as they stand there.
@Suite(.scripts, .serialized) struct DocumentationTests {
    /// Commands of one page, in order, each with what it prints.
    private static func session(_ page: String) throws -> [(command: String, output: [String])] {
        let text = try String(contentsOfFile: "/\(Repository.root)/\(page)", encoding: .utf8)
        var session: [(command: String, output: [String])] = []
        var isInBlock = false
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("```") {
                isInBlock = line == "```console"
            } else if isInBlock, line.hasPrefix("$ ") {
                session.append((String(line.dropFirst(2)), []))
            } else if isInBlock, !session.isEmpty {
                session[session.count - 1].output.append(String(line))
            }
        }
        return session
    }

    @Test(arguments: ["README.md", "docs/live.md", "docs/sql.md"]) func `each command prints what the page shows`(
        page: String
    ) throws {
        let folder = TemporaryFolder()
        let run = try ChildProcess(
            "\(Repository.root)/scripts/run",
            [Larder.binary],
            environment: [
                "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin", "SAMPLE_PORT": "0",
                "LISTEN": "127.0.0.1:\(try Socket.freePort())", "ADMIN": "127.0.0.1:\(try Socket.freePort())",
                "STORE": "\(folder.path)/larder.db", "http_proxy": "http://127.0.0.1:1",
            ]
        )
        defer {
            run.signal(SIGTERM)
            run.waitForEnd()
        }
        let hasStarted = eventually { run.output.contains("Ctrl-C ends it") || run.end != nil }
        try #require(hasStarted && run.end == nil, "\(run.errors)")
        let exports = run.output.split(separator: "\n").filter { $0.hasPrefix("    export") }.joined(separator: "\n")
        let session = try Self.session(page)
        #expect(!session.isEmpty)

        var script = "set +m; exec 2>&1; cd '\(folder.path)'\n\(exports)\n"
        for (number, step) in session.enumerated() {
            // What runs in the background has a moment to begin, or to print what the last command has caused.
            script += "\(step.command)\n[[ -z $(jobs -pr) ]] || sleep 1\necho '=== \(number)'\n"
        }
        script += "kill $(jobs -p) 2>/dev/null; wait\n"
        let terminal = try ChildProcess("bash", [try folder.write(script, to: "session.sh")])
        terminal.waitForEnd()
        var outputs: [[String]] = [[]]
        for line in terminal.output.replacingOccurrences(of: "\r\n", with: "\n").split(
            separator: "\n",
            omittingEmptySubsequences: false
        ) {
            if line.hasPrefix("=== ") {
                outputs.append([])
            } else {
                outputs[outputs.count - 1].append(String(line))
            }
        }
        try #require(outputs.count == session.count + 1, "\(terminal.output)")
        for (step, output) in zip(session, outputs) where !step.output.isEmpty {
            #expect(output.map(Self.lasting) == step.output.map(Self.lasting), "\(page): \(step.command)")
        }
    }

    /// A line without what is another each time: dates, ages, sizes, ports, and the numbers of the commit sequence.
    private static func lasting(_ line: String) -> String {
        var line = line
        for (pattern, word) in [
            (#"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} .*$"#, "DATE"), (#"\d{4}-\d\d-\d\dT[\d:.]+Z"#, "TIME"),
            (#"\b\d{13,}\b"#, "SEQUENCE"), (#"ttl=-?\d+"#, "ttl=N"), (#""age":\d+"#, "age=N"),
            (#"\d+(\.\d)? ([KM]i)?B\b"#, "SIZE"), (#"127\.0\.0\.1:\d+"#, "ADDRESS"), (#" +"#, " "),
        ] {
            line = line.replacingOccurrences(of: pattern, with: word, options: .regularExpression)
        }
        return line
    }
}
