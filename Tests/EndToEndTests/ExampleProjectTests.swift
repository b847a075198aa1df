import Foundation
import TestSupport
import Testing

/// The example project of the repository, run as its users run it.
@Suite(.scripts) struct ExampleProjectTests {
    static let python = PythonEnvironment(
        "pytest-xdist",
        packages: ["pytest", "pytest-xdist"],
        imports: ["pytest", "xdist"]
    )

    @Test(
        .enabled(if: python.isInstalled, "pytest could not be installed from PyPI"),
        arguments: [
            ["--strict", "--"], ["--strict", "--", "-n", "2"],
            // Against the order of the recording: what was written comes first.
            ["--", "test_users.py::test_a_user_is_renamed", "test_users.py::test_users_are_listed"],
            ["--", "test_users.py::test_users_are_listed"],
        ]
    )
    func `the example's tests pass against its recording, in any order, in parallel, and one alone`(
        arguments: [String]
    ) throws {
        let (options, pytest) = (arguments.prefix { $0 != "--" }, arguments.drop { $0 != "--" }.dropFirst())
        let script = """
            cd \(Repository.root)/Examples/pytest
            PYTHONDONTWRITEBYTECODE=1 \(Larder.binary) run fixtures \(options.joined(separator: " ")) -- \
            \(Self.python.program("python")) -m pytest -q -p no:cacheprovider \(pytest.joined(separator: " "))
            """
        let process = try TestProcess("sh", ["-c", script], environment: Larder.environment)
        #expect(process.waitForEnd() == .exited(0), "\(process.output)\(process.errors)")
        let count = pytest.filter { $0.hasPrefix("test_") }.count
        #expect(process.output.contains("\(count == 0 ? 3 : count) passed"))
    }

    @Test(.enabled(if: python.isInstalled, "pytest could not be installed from PyPI"))
    func `what tests share is set up by each worker, and gets its responses from the beginning`() throws {
        let count = Monitor(0)
        let origin = try Origin { request in
            .text(request.path == "/token" ? "\(count.withLock { $0 += 1; return $0 })" : request.path)
        }
        let folder = TemporaryFolder()
        let plugin = try String(
            contentsOfFile: "\(Repository.root)/Examples/pytest/larder_sessions.py",
            encoding: .utf8
        )
        try folder.write(plugin, to: "larder_sessions.py")
        let project = """
            import os, pytest, urllib.request

            def ask(path):
                return urllib.request.urlopen(os.environ["LARDER_URL"] + path).read().decode()

            @pytest.fixture(scope="session")
            def tokens():
                return [ask("/token"), ask("/token")]
            """
        try folder.write("pytest_plugins = ['larder_sessions']\n\(project)\n", to: "conftest.py")
        let tests = """
            import pytest
            from conftest import ask

            @pytest.mark.parametrize("number", range(8))
            def test_number(tokens, number):
                assert tokens == ["1", "2"]
                assert ask(f"/numbers/{number}") == f"/numbers/{number}"
            """
        try folder.write(tests, to: "test_numbers.py")
        func run(_ options: String, _ pytest: String = "") throws {
            let script = """
                cd \(folder.path)
                PYTHONDONTWRITEBYTECODE=1 \(Larder.binary) run fixtures \(options) -- \
                \(Self.python.program("python")) -m pytest -q -p no:cacheprovider \(pytest)
                """
            let process = try TestProcess("sh", ["-c", script], environment: Larder.environment)
            #expect(process.waitForEnd() == .exited(0), "\(pytest): \(process.output)\(process.errors)")
        }
        try run("--record once --upstream \(origin.url)")
        origin.stop()
        for pytest in ["-n 2", "-n 4", ""] { try run("--strict", pytest) }
        try run("", "'test_numbers.py::test_number[7]'")
    }
}
