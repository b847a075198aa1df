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
        let process = try ChildProcess("sh", ["-c", script], environment: Larder.environment)
        #expect(process.waitForEnd() == .exited(0), "\(process.output)\(process.errors)")
        let count = pytest.filter { $0.hasPrefix("test_") }.count
        #expect(process.output.contains("\(count == 0 ? 3 : count) passed"))
    }
}
