package import Foundation

/// One process that the test started: what it says is kept, how it ends can be awaited.
package final class TestProcess: Sendable {
    package enum End: Sendable, Equatable {
        case exited(Int32)
        case killed(by: Int32)
    }

    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    package let pid: pid_t
    private let state: Monitor<State>

    private struct State {
        var end: End?
        var output: Reading
        var errors: Reading
    }

    /// What is read of one pipe.
    private struct Reading {
        /// The pipe's end; it does not block.
        let descriptor: Int32
        /// Whether more may come.
        private(set) var isOpen = true
        private(set) var bytes: [UInt8] = []

        init(_ descriptor: Int32) { self.descriptor = descriptor }

        var text: String { String(decoding: bytes, as: UTF8.self) }

        /// Reads all that the process has written by now.
        mutating func readAvailable() {
            var buffer = [UInt8](repeating: 0, count: 16_384)
            while isOpen {
                let count = read(descriptor, &buffer, buffer.count)
                if count < 0 && errno == EINTR { continue }
                if count < 0 && errno == EAGAIN { return }
                if count > 0 { bytes += buffer[..<count] } else { isOpen = false }
            }
        }
    }

    /// Starts a program; `descriptors` become 3, 4, … in it, everything else of the test is closed in it, and no signal is
    /// blocked or ignored.
    package init(
        _ executable: String,
        _ arguments: [String],
        environment: [String: String] = ProcessInfo.processInfo.environment,
        descriptors: [Int32] = []
    ) throws {
        let output = try Pipe.make()
        let errors = try Pipe.make()
        defer {
            close(output.writing)
            close(errors.writing)
        }

        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, output.writing, 1)
        posix_spawn_file_actions_adddup2(&actions, errors.writing, 2)
        // By way of high numbers, for one of them may already be called 3.
        for (index, descriptor) in descriptors.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, descriptor, 900 + Int32(index))
        }
        for index in descriptors.indices {
            posix_spawn_file_actions_adddup2(&actions, 900 + Int32(index), 3 + Int32(index))
        }
        // A connection that another test closes stays open for its peer as long as a child has inherited it.
        GNU.addCloseFrom(3 + Int32(descriptors.count), to: &actions)

        // The test runner blocks signals on its threads, and tests ignore some; the child must not inherit that.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

        let argv = ([executable] + arguments).map { strdup($0) } + [nil]
        let envp = environment.map { strdup("\($0)=\($1)") } + [nil]
        defer { (argv + envp).forEach { free($0) } }
        var started = pid_t()
        let code = posix_spawnp(&started, executable, &actions, &attributes, argv, envp)
        guard code == 0 else {
            close(output.reading)
            close(errors.reading)
            throw Failure(description: "\(executable) could not be started: \(String(cString: strerror(code)))")
        }
        let pid = started
        self.pid = pid
        let state = Monitor(State(output: Reading(output.reading), errors: Reading(errors.reading)))
        self.state = state
        watch(output.reading, \.output)
        watch(errors.reading, \.errors)
        startThread {
            var status: Int32 = 0
            while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
            let signal = status & 0x7f
            state.withLock { $0.end = signal == 0 ? .exited((status >> 8) & 0xff) : .killed(by: signal) }
        }
    }

    deinit { signal(SIGKILL) }

    /// All that it has written to its standard output when this is called.
    package var output: String { text(\.output) }

    /// All that it has written to its standard error when this is called.
    package var errors: String { text(\.errors) }

    private func text(_ member: WritableKeyPath<State, Reading>) -> String {
        state.withLock {
            $0[keyPath: member].readAvailable()
            return $0[keyPath: member].text
        }
    }

    package var end: End? { state.current.end }

    package func signal(_ number: Int32) {
        // Under the lock: a pid that has been waited for may already belong to someone else.
        state.withLock { if $0.end == nil { kill(pid, number) } }
    }

    /// Waits for its end and the end of what it says; nil when it goes on longer than `limit`.
    @discardableResult
    package func waitForEnd(_ limit: Duration = .seconds(120)) -> End? {
        guard state.wait(limit, until: { $0.end != nil }) else { return nil }
        // Grandchildren may hold the pipes for longer; what it said itself is there soon.
        state.wait(.seconds(10)) { !$0.output.isOpen && !$0.errors.isOpen }
        return state.current.end
    }

    /// Waits until a line of its standard error, or its end, satisfies the condition.
    package func waitForErrors(_ limit: Duration = .seconds(120), until condition: (String) -> Bool) -> Bool {
        state.wait(limit) { $0.end != nil || condition($0.errors.text) }
            && condition(errors)
    }

    /// Runs a program to its end and gives what it wrote to its standard output.
    @discardableResult
    package static func run(
        _ executable: String,
        _ arguments: [String],
        environment: [String: String] = ProcessInfo.processInfo.environment,
        limit: Duration = .seconds(180)
    ) throws -> String {
        let process = try TestProcess(executable, arguments, environment: environment)
        let end = process.waitForEnd(limit)
        guard end == .exited(0) else {
            throw Failure(
                description:
                    "\(executable) \(arguments.joined(separator: " ")) ended with \(String(describing: end)):\n"
                    + process.errors + process.output
            )
        }
        return process.output
    }

    /// Reads what comes until its end, so that the process never waits for its reader, nor a test for a line.
    private func watch(_ descriptor: Int32, _ member: any WritableKeyPath<State, Reading> & Sendable) {
        let state = state
        startThread {
            while state.current[keyPath: member].isOpen {
                var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                poll(&wanted, 1, -1)
                state.withLock { $0[keyPath: member].readAvailable() }
            }
            close(descriptor)
        }
    }

    private struct Pipe {
        let reading: Int32
        let writing: Int32

        static func make() throws -> Pipe {
            var ends: [Int32] = [0, 0]
            guard GNU.pipe2(&ends, flags: O_CLOEXEC) == 0 else {
                throw Failure(description: "pipe2: \(String(cString: strerror(errno)))")
            }
            _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
            return Pipe(reading: ends[0], writing: ends[1])
        }
    }
}
