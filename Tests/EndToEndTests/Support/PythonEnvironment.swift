import Foundation
import TestSupport

/// Servers and clients of other projects, from PyPI, in a virtual environment that is kept between runs.
///
/// Without a network, and nothing kept, `isInstalled` is false, and the tests that need it say so and are skipped.
struct PythonEnvironment: Sendable {
    let isInstalled: Bool
    private let folder: String

    /// Installs what is missing.
    init(_ name: String, packages: [String], imports: [String]) {
        let cache = ProcessInfo.processInfo.environment["XDG_CACHE_HOME"] ?? "\(NSHomeDirectory())/.cache"
        folder = "\(cache)/larder-tests/\(name)"
        isInstalled =
            Self.isThere(imports, in: folder) || Self.install(packages, in: folder) && Self.isThere(imports, in: folder)
    }

    private static func isThere(_ imports: [String], in folder: String) -> Bool {
        (try? TestProcess.run("\(folder)/bin/python", ["-c", "import \(imports.joined(separator: ", "))"])) != nil
    }

    private static func install(_ packages: [String], in folder: String) -> Bool {
        do {
            try TestProcess.run("python3", ["-m", "venv", "--clear", folder], limit: .seconds(120))
            let options = ["install", "--quiet", "--disable-pip-version-check"]
            try TestProcess.run("\(folder)/bin/pip", options + packages, limit: .seconds(300))
            return true
        } catch {
            return false
        }
    }

    /// The path of a program that a package brings.
    func program(_ name: String) -> String { "\(folder)/bin/\(name)" }

    /// Runs a script to its end and gives what it printed.
    func run(_ script: String, _ arguments: String...) throws -> String { try run(script, arguments) }

    func run(_ script: String, _ arguments: [String]) throws -> String {
        try TestProcess.run(program("python"), ["-c", script] + arguments)
    }
}
