import ArgumentParser
import Testing

@testable import Admin
@testable import HTTPSemantics
@testable import Larder
@testable import Settings

/// Parses a command line; nil and the message when it is refused.
private func parse<Command: ParsableCommand>(_ type: Command.Type, _ line: String...) -> (Command?, message: String) {
    do {
        return (try LarderCommand.parseAsRoot(line) as? Command, "")
    } catch {
        return (nil, LarderCommand.message(for: error))
    }
}

struct CommandTests {
    @Test func `serve takes its flags`() throws {
        let serve = try #require(
            parse(
                ServeCommand.self,
                "serve",
                "--upstream",
                "https://a.example",
                "--listen",
                "127.0.0.1:1",
                "--listen",
                "unix:/run/l",
                "--admin",
                "127.0.0.1:2",
                "--store",
                "/s/larder.db",
                "--mode",
                "offline",
                "--workers",
                "3"
            ).0
        )
        let settings = try serve.settings(environment: [:])
        #expect(settings.upstreams.map(\.url.description) == ["https://a.example"])
        #expect(settings.listen == [.tcp(host: "127.0.0.1", port: 1), .unix(path: "/run/l")])
        #expect(settings.admin == [.tcp(host: "127.0.0.1", port: 2)])
        #expect(settings.store.path == "/s/larder.db")
        #expect(settings.mode == .offline)
        #expect(settings.workers == 3)
    }

    @Test(arguments: [
        (["clean"], "larder clean ", "larder clean --help"),
        (["recording", "start", "x"], "larder recording start ", "larder recording start --help"),
    ])
    func `an error from a command names its own usage`(line: [String], usage: String, help: String) throws {
        let command = try LarderCommand.parseAsRoot(line)
        let complaint = LarderCommand.complaint(
            about: ValidationError("say what"),
            line,
            running: type(of: command)
        )
        let lines = complaint.split(separator: "\n").map(String.init)
        #expect(lines.count == 3 && lines[0] == "larder: say what", "\(complaint)")
        #expect(lines[1].hasPrefix("Usage: \(usage)"), "\(complaint)")
        #expect(lines[2] == "  See '\(help)' for more information.", "\(complaint)")
    }

    @Test func `serve finds a place for the store by itself`() throws {
        let serve = try #require(parse(ServeCommand.self, "serve", "--upstream", "http://a.example").0)
        #expect(try serve.settings(environment: ["STATE_DIRECTORY": "/s"]).store.path == "/s/larder.db")
    }

    @Test(arguments: [
        (["clean", "--all", "--model", "User"], "--all removes everything; leave out the other conditions, or --all"),
        (["clean", "--id", "7"], "--id needs --model"),
        (["clean", "--older-than", "5"], "--older-than: \"5\" has no unit; write 5s for seconds"),
        (["serve", "--config", "a", "--preset", "b"], "use either --config or --preset, not both"),
        (["serve", "--listen", "8787"], "\"8787\" has no host; write \"127.0.0.1:8787\""),
        (["serve", "--workers", "0"], "--workers: 0 is not a number from 1 to 64"),
        (["serve", "--mode", "off"], "'off' is invalid"),
        (["objects"], "Missing expected argument '<model>'"),
        (["objects", "User", "--limit", "0"], "--limit: 0 is not a number from 1 to 1000"),
        (["mode", "sleeping"], "'sleeping' is invalid"),
        (["nonsense"], "Unexpected argument 'nonsense'"),
    ])
    func `wrong usage exits with 64 and a reason`(_ line: [String], _ reason: String) {
        do {
            _ = try LarderCommand.parseAsRoot(line)
            Issue.record("accepted")
        } catch {
            #expect(LarderCommand.exitCode(for: error).rawValue == 64)
            #expect(LarderCommand.fullMessage(for: error).contains(reason))
        }
    }

    @Test func `clean sends its selection as one JSON document`() throws {
        let clean = try #require(
            parse(CleanCommand.self, "clean", "--model", "User", "--id", "a\"b", "--older-than", "1h30m", "--dry-run").0
        )
        let body = try clean.request(dryRun: true).text
        #expect(body == #"{"model":"User","id":"a\"b","older_than":"1h30m","dry_run":true}"#)
        let all = try #require(parse(CleanCommand.self, "clean", "--all").0).request(dryRun: false)
        #expect(all.text == #"{"all":true}"#)
    }

    @Test func `targets are percent-encoded`() {
        #expect(
            Target.make(["objects", "Label", "a/b ü"], [("upstream", "x&y"), ("principal", nil), ("limit", "5")])
                == "/objects/Label/a%2Fb%20%C3%BC?upstream=x%26y&limit=5"
        )
    }

    @Test func `every command takes --json and shows an example`() {
        for command in LarderCommand.configuration.subcommands {
            #expect(command.helpMessage(columns: 200).contains("\n  larder "), "\(command)")
            let parts = command.configuration.subcommands
            for part in parts.isEmpty ? [command] : parts {
                #expect(part.helpMessage(columns: 200).contains("--json"), "\(part)")
            }
        }
    }

    @Test func `tables are aligned and end without spaces`() {
        var table = TextTable(columns: ["model", .right("objects"), ""])
        table.rows = [["User", "1000", ""], ["Repository", "7", "x"]]
        #expect(table.text == "model       objects\nUser           1000\nRepository        7  x")
    }

    @Test(arguments: [
        (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1_048_575, "1.0 MiB"), (1_572_864, "1.5 MiB"),
        (5 << 30, "5.0 GiB"),
    ])
    func `sizes are shown with one decimal`(_ bytes: Int, _ text: String) {
        #expect(HumanText.bytes(bytes) == text)
    }

    @Test(arguments: [
        (0, "0s"), (59, "59s"), (60, "1m"), (302, "5m 2s"), (3_600, "1h"), (7_325, "2h 2m"), (273_600, "3d 4h"),
        (259_259, "3d"),
    ])
    func `how long ago something was is shown in two units`(seconds: Int, text: String) {
        #expect(HumanText.longDuration(seconds) == text)
    }

    @Test(arguments: [(0.000_085, "85µs"), (0.000_2, "0.2ms"), (0.25, "250ms"), (1.42, "1.4s")])
    func `what a request takes is shown with two or three digits`(seconds: Double, text: String) {
        #expect(HumanText.duration(seconds) == text)
    }
}

struct UnknownCommandTests {
    private func complaint(_ line: String...) -> String {
        do {
            _ = try LarderCommand.parseAsRoot(line)
            return "accepted"
        } catch {
            return LarderCommand.complaint(about: error, line)
        }
    }

    @Test func `a misspelled command gets a suggestion`() {
        #expect(complaint("cuont") == #"larder: there is no command "larder cuont"; did you mean "larder count"?"#)
        #expect(
            complaint("recording", "strat")
                == #"larder: there is no command "larder recording strat"; did you mean "larder recording start"?"#
        )
        #expect(complaint("zzz").contains("`larder --help` lists them"))
        #expect(!complaint("\u{1B}[31mx").utf8.contains(0x1B))
    }

    @Test func `every error begins with the program's name`() {
        #expect(complaint("objects").hasPrefix("larder: Missing expected argument '<model>'"))
        #expect(complaint("clean", "--id", "7").hasPrefix("larder: --id needs --model"))
        #expect(complaint("count", "--colour").hasPrefix("larder: Unknown option '--colour'"))
    }
}

struct TextTableTests {
    private var table: TextTable {
        var table = TextTable(columns: ["id", .right("count"), "what"])
        table.rows = [
            ["1", "5", "a long text that says what there is"], ["22", "17", "東京の天気"],
            ["3", "1", "\u{1B}[31mred\u{202E}"],
        ]
        return table
    }

    @Test func `a table is as wide as its cells if there is room`() {
        let expected = """
            id  count  what
            1       5  a long text that says what there is
            22     17  東京の天気
            3       1  \\x1b[31mred\\u{202e}
            """
        #expect(table.text(width: nil) == expected)
        #expect(table.text(width: 80) == expected)
    }

    @Test func `the longest column is shortened to the terminal's width`() {
        #expect(
            table.text(width: 24) == """
                id  count  what
                1       5  a long text …
                22     17  東京の天気
                3       1  \\x1b[31mred\\…
                """
        )
    }

    @Test func `a text that does not fit beside another is wrapped, not cut`() {
        let text = table.text(width: 14)
        #expect(
            text.hasPrefix("id: 1\ncount: 5\nwhat: a long\n  text that\n  says what\n  there is\n\nid: 22"),
            "\(text)"
        )
    }

    @Test(arguments: [10, 17, 20, 24, 40, 79])
    func `no line is wider than the terminal`(width: Int) {
        for line in table.text(width: width).split(separator: "\n") {
            #expect(String(line).displayWidth <= width, "\(line)")
        }
    }

    @Test func `if the columns do not fit, each row becomes a block`() {
        #expect(
            table.text(width: 16) == """
                id: 1
                count: 5
                what: a long
                  text that says
                  what there is

                id: 22
                count: 17
                what: 東京の天気

                id: 3
                count: 1
                what: \\x1b[31mre
                  d\\u{202e}
                """
        )
    }
}
