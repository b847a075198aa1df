import Basics
import Foundation
import HTTPSemantics
import HTTPServer
import Settings
import Synchronization

/// Queries on the store for clients that may not read its file.
///
/// Each runs in a process of its own, this same program as `larder sql`, so that it can be ended at any time: SQLite looks at the
/// clock between its steps, but not within one function, such as a search in a very long text.
extension DaemonCore {
    /// The forms of a result: the options of `larder sql`, and the media types.
    fileprivate static let forms: [String: (option: String?, type: String)] = [
        "json": ("--json", "application/json"), "csv": ("--csv", "text/csv; charset=utf-8"),
        "table": (nil, "text/plain; charset=utf-8"),
    ]

    private static let running = Atomic<Int>(0)
    private static let maximumQueries = 4

    fileprivate func query(_ request: AdminRequest) async throws -> AdminResponse {
        let given = try request.texts(["query", "timeout"], advice: "query and timeout")
        guard let form = Self.forms[request.value("form") ?? "json"] else {
            throw ProblemDocument.badRequest("form must be json, csv or table")
        }
        let timeout = try given["timeout"].map { try AdminRequest.microseconds($0, of: "timeout") } ?? 10_000_000
        guard 1...600_000_000 ~= timeout else {
            throw ProblemDocument.badRequest("timeout must be more than 0 and at most 10m")
        }
        guard Self.running.add(1, ordering: .relaxed).newValue <= Self.maximumQueries else {
            Self.running.subtract(1, ordering: .relaxed)
            throw ProblemDocument(
                503,
                "\(Self.maximumQueries) queries run already; try again when one of them has ended"
            )
        }
        let release: @Sendable () -> Void = { Self.running.subtract(1, ordering: .relaxed) }
        var arguments = ["--store", settings.store.path ?? "", "--timeout", "\(max(timeout / 1000, 1))ms"]
        if let option = form.option { arguments.append(option) }
        if given["query"] != nil { arguments.append("-") }
        let process: QueryProcess
        do {
            process = try QueryProcess(arguments, input: given["query"] ?? "", ended: release)
        } catch {
            release()
            throw error
        }
        process.kill(after: .microseconds(Int(timeout) + 5_000_000))
        // The status is known with the first bytes of the result.
        let first = await process.read()
        if first.isEmpty, let complaint = process.complaint { throw ProblemDocument.badRequest(complaint) }
        var response = AdminResponse(fields: Fields([Field("Content-Type", form.type)]))
        response.stream = { reply, fields in
            reply.onDisconnect { process.kill() }
            reply.start(status: 200, fields: fields, framing: .chunked)
            process.send(first, to: reply)
        }
        return response
    }
}

private final class QueryProcess: Sendable {
    private struct State {
        /// Whether it has ended, so that its id may be another's.
        var isEnded = false
        /// Why it failed, once it has ended; nil if it did not.
        var complaint: String?
    }

    private static let queue = DispatchQueue(label: "larder.queries", qos: .utility, attributes: .concurrent)
    private let id: pid_t
    private let output: Int32
    private let errors: Int32
    private let state = Mutex(State())
    private let ended: @Sendable () -> Void

    /// Only one is started at a time: a pipe is closed in other processes by a second call only.
    private static let starting = Mutex(())

    init(_ arguments: [String], input: String, ended: @escaping @Sendable () -> Void) throws(ProblemDocument) {
        self.ended = ended
        (id, output, errors) = try Self.starting.withLock { _ throws(ProblemDocument) in
            try Self.start(["larder", "sql"] + arguments, input: input)
        }
    }

    private static func start(_ command: [String], input: String) throws(ProblemDocument) -> (pid_t, Int32, Int32) {
        var pipes = [Int32](repeating: -1, count: 6)
        for index in stride(from: 0, to: 6, by: 2) {
            let code = pipes.withUnsafeMutableBufferPointer { pipe($0.baseAddress! + index) }
            guard code == 0 else {
                let reason = systemMessage(errno)
                for descriptor in pipes where descriptor >= 0 { close(descriptor) }
                throw ProblemDocument(503, "no process can be started for the query: \(reason)")
            }
            for descriptor in pipes[index...index + 1] { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        }
        defer { for index in [0, 1, 3, 5] { close(pipes[index]) } }
        // None of the daemon's variables, some of which hold secrets, but those by which the program finds its libraries.
        let libraries = getenv("LD_LIBRARY_PATH").map { ["LD_LIBRARY_PATH": String(cString: $0)] } ?? [:]
        do throws(ChildProcess.StartError) {
            let ends = [pipes[0], pipes[3], pipes[5]]
            let id = try ChildProcess.start(command, program: "/proc/self/exe", libraries, descriptors: ends)
            // A request is shorter than what a pipe takes without a reader.
            _ = Array(input.utf8).withUnsafeBytes { writeAll($0, to: pipes[1]) }
            return (id, pipes[2], pipes[4])
        } catch {
            close(pipes[2])
            close(pipes[4])
            throw ProblemDocument(503, "no process can be started for the query: \(systemMessage(error.code))")
        }
    }

    deinit {
        close(output)
        close(errors)
    }

    var complaint: String? { state.withLock(\.complaint) }

    func kill() { state.withLock { if !$0.isEnded { _ = Glibc.kill(id, SIGKILL) } } }

    func kill(after time: DispatchTimeInterval) {
        Self.queue.asyncAfter(deadline: .now() + time) { [weak self] in self?.kill() }
    }

    /// The next bytes of its output; none when it has ended.
    func read() async -> [UInt8] {
        await withCheckedContinuation { (continuation: CheckedContinuation<[UInt8], Never>) in
            Self.queue.async { [self] in continuation.resume(returning: take()) }
        }
    }

    /// Sends bytes and the rest of its output, as fast as the client reads; a failure cuts the connection.
    func send(_ bytes: [UInt8], to reply: Reply) {
        guard !bytes.isEmpty else { return complaint == nil ? reply.finish() : reply.abort() }
        reply.write(bytes)
        reply.onDrain(below: 1 << 20) { [self] in Self.queue.async { [self] in send(take(), to: reply) } }
    }

    private func take() -> [UInt8] {
        let bytes = Self.read(output, atMost: 64 << 10)
        if bytes.isEmpty { finish() }
        return bytes
    }

    private func finish() {
        guard !state.withLock(\.isEnded) else { return }
        let said = String(decoding: Self.read(errors, atMost: 16 << 10), as: UTF8.self)
        // Not reaped before the state says so: its id stays its own.
        var information = siginfo_t()
        while waitid(P_PID, id_t(id), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        state.withLock { state in
            var status: Int32 = 0
            waitpid(id, &status, 0)
            state.isEnded = true
            guard status != 0 else { return }
            let line = said.split(whereSeparator: \.isNewline).joined(separator: " ")
            // The command that asks puts its own name before it.
            let words = line.hasPrefix("larder: ") ? String(line.dropFirst(8)) : line
            state.complaint = words.isEmpty ? "the query was ended: it took too long" : words
        }
        ended()
    }

    private static func read(_ descriptor: Int32, atMost size: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            var got = -1
            repeat { got = Glibc.read(descriptor, buffer.baseAddress, size) } while got < 0 && errno == EINTR
            count = max(got, 0)
        }
    }
}

extension AdminRoute {
    static let queries: [AdminRoute] = documented([
        "Runs one SELECT on the store, which is only read; without a query, lists the views. If it fails midway, the connection is cut.":
            AdminRoute(
                "POST /sql",
                query: Parameter.documented([
                    "The form of the result: `json`, a list with an object for each row, `csv`, or `table`, for people.":
                        Parameter("form")
                ]),
                body: Parameter.documented([
                    "The statement.": Parameter("query"),
                    "For how long it may take, such as `30s`; at most `10m`, by default `10s`.": Parameter("timeout"),
                ])
            ) { request, daemon in try await daemon.query(request) }
    ])
}
