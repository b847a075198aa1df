import Logging
import Testing

@testable import Larder

struct CommandLogTests {
    private func line(_ form: LogForm, _ message: String, _ fields: Logger.Metadata = [:]) -> String {
        LineLogHandler(label: "larder", form: form).line(
            .warning,
            message,
            fields,
            milliseconds: 1_352_813_496_007
        )
    }

    @Test func `the log for people shows time, level, message and fields`() {
        #expect(
            line(.plain, "upstream refused", ["host": "a.example", "after": "5 s", "empty": ""])
                == "2012-11-13T13:31:36.007Z warning upstream refused after=\"5 s\" empty=\"\" host=a.example\n"
        )
    }

    @Test func `the log for the journal has a priority, and no time`() {
        #expect(line(.journal, "upstream refused", ["host": "a"]) == "<4>upstream refused host=a\n")
        #expect(LogForm.suitable(for: ["JOURNAL_STREAM": "8:1"]) == .journal)
        #expect(LogForm.suitable(for: [:]) == .plain)
    }

    @Test func `the log for programs has a JSON object on each line`() {
        #expect(
            line(.json, "upstream refused", ["host": "a\"b"])
                == #"{"time":"2012-11-13T13:31:36.007Z","level":"warning","logger":"larder","message":"upstream refused","host":"a\"b"}"#
                + "\n"
        )
    }

    @Test func `a value from outside cannot forge a line`() {
        #expect(
            line(.journal, "a\nb", ["x": "1\n<0>evil \"q\"\u{1B}[31m"])
                == "<4>a\\nb x=\"1\\n<0>evil \\\"q\\\"\\x1b[31m\"\n"
        )
    }
}
