import Foundation

/// A real `redis-server` of one test's own; what it knows is in memory only.
package final class RedisServer: Sendable {
    /// Whether this machine has the server.
    package static let isAvailable = (try? TestProcess.run("redis-server", ["--version"])) != nil

    package let folder = TemporaryFolder()
    /// The port on which it listens besides its Unix socket; nil for none.
    package let port: UInt16?
    private let arguments: [String]
    private let environment: [String: String]
    private let running = Monitor<TestProcess?>(nil)

    /// The URL for a config.
    package var url: String { port.map { "redis://127.0.0.1:\($0)/0" } ?? "unix:\(socket)" }
    package var socket: String { folder.file("redis.sock") }

    /// Starts it; returns once it serves.
    ///
    /// - Parameters:
    ///   - arguments: further options, such as `--maxmemory`, `1mb`.
    ///   - port: as given by the kernel; nil for a Unix socket alone.
    ///   - environment: variables for it, besides those of the tests.
    package init(_ arguments: [String] = [], port: UInt16? = nil, environment: [String: String] = [:]) throws {
        (self.arguments, self.port) = (arguments, port)
        self.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        try start()
    }

    deinit { kill() }

    /// Starts it, empty, after `kill`.
    package func start() throws {
        let process = try TestProcess(
            "redis-server",
            [
                "--port", "\(port ?? 0)", "--bind", "127.0.0.1", "--unixsocket", socket, "--save", "", "--appendonly",
                "no", "--dir", folder.path,
            ]
                + ["--loglevel", "warning"] + arguments,
            environment: environment
        )
        running.withLock { $0 = process }
        guard eventually(within: .seconds(60), { process.end != nil || (try? command("PING")) == "PONG" }),
            process.end == nil
        else {
            throw TestProcess.Failure(description: "redis-server did not start: \(process.output)\(process.errors)")
        }
    }

    /// Ends it at once, with everything that it knows.
    package func kill() {
        guard
            let process = running.withLock({ running in
                defer { running = nil }
                return running
            })
        else { return }
        process.signal(SIGCONT)
        process.signal(SIGKILL)
        process.waitForEnd()
        unlink(socket)
    }

    /// Has it hang: it accepts connections, and says nothing.
    package func hang() { running.current?.signal(SIGSTOP) }

    /// Has it go on.
    package func goOn() { running.current?.signal(SIGCONT) }

    /// Sends a command, and returns the reply as `redis-cli` prints it.
    @discardableResult
    package func command(_ words: String...) throws -> String {
        try TestProcess.run("redis-cli", ["-s", socket] + words, limit: .seconds(30))
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
