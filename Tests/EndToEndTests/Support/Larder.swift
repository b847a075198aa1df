import Foundation
import TestSupport

/// The daemon under test: the built binary, on free ports, with a store of its own.
final class Larder: @unchecked Sendable {  // only the scenario's own thread starts and ends it
    /// It did not come up.
    struct DidNotStart: Error, CustomStringConvertible {
        let description: String
    }

    /// Where the store, the config and the token are; it outlives restarts.
    let folder: TemporaryFolder
    private let command: [String]
    private let descriptors: [Int32]
    private let environment: [String: String]
    private(set) var process: TestProcess
    /// Kept, so that it serves for as long as the daemon asks.
    private var origin: Origin?
    private(set) var port: UInt16 = 0
    private(set) var adminPort: UInt16 = 0

    /// In front of one upstream, without models.
    convenience init(upstream: String, store folder: TemporaryFolder? = nil, _ arguments: String...) throws {
        try self.init(arguments: ["--upstream", upstream] + arguments, folder: folder ?? TemporaryFolder())
    }

    convenience init(_ origin: Origin, store folder: TemporaryFolder? = nil, _ arguments: String...) throws {
        try self.init(arguments: ["--upstream", origin.url] + arguments, folder: folder ?? TemporaryFolder())
        self.origin = origin
    }

    /// With a config file that has an origin as an upstream, and its admin side at a port of its own or a given one.
    convenience init(_ origin: Origin, config: String, admin: UInt16 = 0) throws {
        let folder = TemporaryFolder()
        try self.init(
            arguments: ["--config", try folder.write(config, to: "larder.yaml")],
            folder: folder,
            addresses: ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:\(admin)"]
        )
        self.origin = origin
    }

    /// With a config file.
    convenience init(
        config: String,
        store folder: TemporaryFolder? = nil,
        arguments: [String] = [],
        environment: [String: String] = [:]
    ) throws {
        let folder = folder ?? TemporaryFolder()
        let path = try folder.write(config, to: "larder.yaml")
        try self.init(arguments: ["--config", path] + arguments, folder: folder, environment: environment)
    }

    /// With any arguments, started by another program if one is given (`sh -c …`), which gets its command line.
    init(
        arguments: [String],
        folder: TemporaryFolder,
        environment: [String: String] = [:],
        startedBy starter: [String] = [],
        descriptors: [Int32] = [],
        addresses: [String] = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"],
        verb: [String] = ["serve"]
    ) throws {
        self.folder = folder
        self.environment = Self.environment.merging(environment) { $1 }
        self.descriptors = descriptors
        command =
            starter + [Self.binary] + verb + ["--store", folder.file("larder.db")] + addresses + arguments
        process = try TestProcess(
            command[0],
            Array(command.dropFirst()),
            environment: self.environment,
            descriptors: descriptors
        )
        try awaitReady()
    }

    deinit { process.signal(SIGKILL) }

    // MARK: Life

    /// Asks it to end and waits; nil when it did not within the limit.
    @discardableResult
    func terminate(_ limit: Duration = .seconds(600)) -> TestProcess.End? {
        process.signal(SIGTERM)
        return process.waitForEnd(limit)
    }

    /// Ends it at once, as a crash would.
    func kill() {
        process.signal(SIGKILL)
        process.waitForEnd()
    }

    /// Starts it again on the same store, with new ports.
    func start() throws {
        process = try TestProcess(
            command[0],
            Array(command.dropFirst()),
            environment: environment,
            descriptors: descriptors
        )
        try awaitReady()
    }

    func restart() throws {
        terminate()
        try start()
    }

    private func awaitReady() throws {
        let isUp = process.waitForErrors {
            $0.port(after: "listening on http://127.0.0.1:") != nil
                && $0.port(after: "admin on http://127.0.0.1:") != nil
        }
        guard isUp, let port = process.errors.port(after: "listening on http://127.0.0.1:"),
            let adminPort = process.errors.port(after: "admin on http://127.0.0.1:")
        else {
            throw DidNotStart(
                description: "larder did not start (\(String(describing: process.end))):\n\(process.errors)"
            )
        }
        (self.port, self.adminPort) = (port, adminPort)
        let isReady = try eventually { try self.admin("GET", "/readyz").status == 200 }
        guard isReady else { throw DidNotStart(description: "larder never became ready:\n\(process.errors)") }
    }

    // MARK: Talking to it

    var url: String { "http://127.0.0.1:\(port)" }
    var adminURL: String { "http://127.0.0.1:\(adminPort)" }

    /// What it has logged since its last start.
    var log: String { process.errors }

    var isRunning: Bool { process.end == nil }

    /// A connection to it.
    func client(limit: Duration = .seconds(600)) throws -> Client { try Client(.port(port), limit: limit) }

    /// One request on a connection of its own.
    func request(
        _ method: String,
        _ target: String,
        _ fields: FieldLines = [:],
        body: String? = nil
    ) throws -> Response {
        try client().request(method, target, fields + ["Connection": "close"], body: body)
    }

    func get(_ target: String, _ fields: FieldLines = [:]) throws -> Response { try request("GET", target, fields) }

    /// One request to the admin address, with the token once there is one.
    func admin(_ method: String, _ target: String, _ fields: FieldLines = [:], body: String? = nil) throws -> Response {
        var fields = fields
        if !fields.contains("Authorization"), let token { fields.append("Authorization", "Bearer \(token)") }
        if body != nil && !fields.contains("Content-Type") { fields.append("Content-Type", "application/json") }
        return try Client(port: adminPort).request(method, target, fields + ["Connection": "close"], body: body)
    }

    /// The admin token beside the store.
    var token: String? {
        let text = String(decoding: folder.bytes("admin.token"), as: UTF8.self)
        let token = text.trimmingCharacters(in: .whitespacesAndNewlines)
        return token.isEmpty ? nil : token
    }

    /// What `GET /count` says: `objects`, `documents`, `bytes`, and `models` by name.
    func count() throws -> [String: Any] { try admin("GET", "/count").object }

    /// How many documents it has, which it learns after it has answered.
    func documents() throws -> Int { try count()["documents"] as? Int ?? -1 }

    /// Waits until so many documents are stored, and memory knows of it.
    func waitForDocuments(_ count: Int) throws -> Bool {
        try eventually { try documents() == count } && waitForQuiet()
    }

    /// Waits until so many objects of a model are stored, and memory knows of it.
    func waitForObjects(_ count: Int, of model: String) throws -> Bool {
        try eventually { (try self.count()["models"] as? [String: Any])?[model] as? Int == count }
            && waitForQuiet()
    }

    /// Runs a command of the same binary against this daemon.
    func command(_ arguments: String...) throws -> (end: TestProcess.End?, output: String, errors: String) {
        let process = try TestProcess(
            Self.binary,
            arguments + ["--admin", "127.0.0.1:\(adminPort)", "--store", folder.file("larder.db")],
            environment: environment
        )
        return (process.waitForEnd(), process.output, process.errors)
    }

    /// Resident memory in bytes.
    var residentMemory: Int {
        let status = (try? String(contentsOfFile: "/proc/\(process.pid)/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") } ?? ""
        return (line.split(separator: " ").dropLast().last.flatMap { Int($0) } ?? 0) * 1024
    }

    /// All bytes of the store's files: the database, its WAL, and what lies beside them.
    var storeBytes: [UInt8] { folder.names.filter { $0.hasPrefix("larder.db") }.sorted().flatMap { folder.bytes($0) } }

    /// What `sqlite3` answers to a query on the store, one line per row.
    func sql(_ query: String) throws -> [String] {
        try TestProcess.run("sqlite3", ["-readonly", folder.file("larder.db"), query])
            .split(separator: "\n").map(String.init)
    }

    // MARK: Where it is

    /// The binary that was built with these tests, or the one `LARDER_BINARY` names.
    static let binary: String = {
        if let named = ProcessInfo.processInfo.environment["LARDER_BINARY"] { return named }
        let bundle = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return URL(fileURLWithPath: bundle ?? "").deletingLastPathComponent().appendingPathComponent("larder").path
    }()

    /// The surroundings of the daemon: none of the machine's proxies, service manager or folders.
    static let environment: [String: String] = [
        "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin",
        "HOME": "/nonexistent",
        "LANG": "C.UTF-8",
    ]
}

extension String {
    /// The number that follows the last occurrence of a text, if a whole line of it is there.
    fileprivate func port(after text: String) -> UInt16? {
        guard let range = range(of: text, options: .backwards) else { return nil }
        let digits = self[range.upperBound...].prefix { $0.isASCII && $0.isNumber }
        guard digits.endIndex < endIndex else { return nil }
        return UInt16(digits)
    }
}
