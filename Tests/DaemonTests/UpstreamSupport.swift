import Foundation
import Glibc
import Synchronization

@testable import Daemon

/// A server of raw sockets: each connection is handed to a script on a thread of its own, which says every byte itself.
final class RawServer: Sendable {
    /// One accepted connection, for the script's thread.
    final class Connection {
        /// The how-manieth connection of the server this is, from 0.
        let number: Int
        private let descriptor: Int32
        private let server: RawServer
        private var buffer: [UInt8] = []
        private var isOpen = true

        fileprivate init(number: Int, descriptor: Int32, server: RawServer) {
            self.number = number
            self.descriptor = descriptor
            self.server = server
        }

        /// Reads some bytes; empty at the end or after an error.
        func read() -> [UInt8] {
            var room = [UInt8](repeating: 0, count: 65536)
            let count = recv(descriptor, &room, room.count, 0)
            return count > 0 ? Array(room[..<count]) : []
        }

        /// Reads a request's head; nil when the client is gone.
        func readHead() -> String? {
            while true {
                if let end = buffer.firstRange(of: Array("\r\n\r\n".utf8)) {
                    let head = String(decoding: buffer[..<end.upperBound], as: UTF8.self)
                    buffer.removeSubrange(..<end.upperBound)
                    server.note(head)
                    return head
                }
                let more = read()
                if more.isEmpty { return nil }
                buffer += more
            }
        }

        /// Reads this much of a body.
        func readBody(_ count: Int) -> [UInt8] {
            while buffer.count < count {
                let more = read()
                if more.isEmpty { break }
                buffer += more
            }
            let body = Array(buffer.prefix(count))
            buffer.removeFirst(body.count)
            return body
        }

        /// Reads a chunked body up to its end.
        func readChunkedBody() -> [UInt8] {
            var body: [UInt8] = []
            while let line = readLine(), let size = Int(line, radix: 16) {
                if size == 0 {
                    _ = readLine()
                    break
                }
                body += readBody(size)
                _ = readLine()
            }
            return body
        }

        private func readLine() -> String? {
            while true {
                if let end = buffer.firstRange(of: [13, 10]) {
                    let line = String(decoding: buffer[..<end.lowerBound], as: UTF8.self)
                    buffer.removeSubrange(..<end.upperBound)
                    return line
                }
                let more = read()
                if more.isEmpty { return nil }
                buffer += more
            }
        }

        /// Writes all of it; false when the client is gone.
        @discardableResult
        func write(_ bytes: [UInt8]) -> Bool {
            bytes.withUnsafeBytes { bytes in
                var sent = 0
                while sent < bytes.count {
                    let count = send(descriptor, bytes.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
                    if count <= 0 { return false }
                    sent += count
                }
                return true
            }
        }

        @discardableResult
        func write(_ text: String) -> Bool {
            write(Array(text.utf8))
        }

        /// A plain answer with a length.
        @discardableResult
        func answer(_ body: String, status: String = "200 OK", fields: String = "") -> Bool {
            write("HTTP/1.1 \(status)\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
        }

        /// Waits until the client closes, throwing away what it sends.
        func waitForClose() {
            while !read().isEmpty {}
        }

        func close() {
            guard isOpen else { return }
            isOpen = false
            server.closed(descriptor)
        }

        /// Closes so that the client gets a reset.
        func reset() {
            var linger = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout.size(ofValue: linger)))
            close()
        }
    }

    private struct State {
        var heads: [String] = []
        var connections = 0
        var open: Set<Int32> = []
        var isStopped = false
    }

    let port: Int
    private let listener: Int32
    private let state = Mutex(State())

    /// Listens on a free port of the loopback address, or on a Unix socket.
    init(unixPath: String? = nil, script: @escaping @Sendable (Connection) -> Void) {
        signal(SIGPIPE, SIG_IGN)
        if let unixPath {
            listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            Self.bind(listener, to: unixPath)
            port = 0
        } else {
            listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            port = Self.bindToFreePort(listener)
        }
        listen(listener, 1024)
        Thread.detachNewThread { [self] in acceptAll(script) }
    }

    private static func bind(_ listener: Int32, to path: String) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                precondition(Glibc.bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0)
            }
        }
    }

    private static func bindToFreePort(_ listener: Int32) -> Int {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                precondition(Glibc.bind(listener, $0, length) == 0)
                getsockname(listener, $0, &length)
            }
            return Int(UInt16(bigEndian: $0.pointee.sin_port))
        }
    }

    private func acceptAll(_ script: @escaping @Sendable (Connection) -> Void) {
        while true {
            let descriptor = accept(listener, nil, nil)
            if descriptor < 0 { return }
            let number: Int? = state.withLock { state in
                if state.isStopped { return nil }
                defer { state.connections += 1 }
                state.open.insert(descriptor)
                return state.connections
            }
            guard let number else {
                Glibc.close(descriptor)
                return
            }
            let thread = Thread { [self] in
                let connection = Connection(number: number, descriptor: descriptor, server: self)
                script(connection)
                connection.close()
            }
            thread.stackSize = 256 << 10
            thread.start()
        }
    }

    fileprivate func note(_ head: String) {
        state.withLock { $0.heads.append(head) }
    }

    fileprivate func closed(_ descriptor: Int32) {
        state.withLock { _ = $0.open.remove(descriptor) }
        Glibc.close(descriptor)
    }

    /// The heads of all requests so far.
    var heads: [String] { state.withLock { $0.heads } }
    var connectionCount: Int { state.withLock { $0.connections } }
    var url: String { "http://127.0.0.1:\(port)" }

    /// Ends the server; scripts that wait for bytes get none.
    func stop() {
        state.withLock { state in
            state.isStopped = true
            for descriptor in state.open { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
        shutdown(listener, Int32(SHUT_RDWR))
        Glibc.close(listener)
    }
}

/// What a transfer told its delegate.
struct Answer: Sendable {
    var informational: [(status: Int, fields: Fields)] = []
    var head: UpstreamHead?
    var body: [UInt8] = []
    var bodyBytes = 0
    var result: Result<TransferSummary, UpstreamError> = .failure(.cancelled)

    var text: String { String(decoding: body, as: UTF8.self) }
    var error: UpstreamError? {
        if case .failure(let error) = result { error } else { nil }
    }
    var summary: TransferSummary? { try? result.get() }
}

/// A delegate that writes everything down; lives on the loop.
final class Recorder: TransferDelegate {
    var answer = Answer()
    var transfer: Transfer?
    var keepsBody = true
    var onInformational: ((Recorder) -> Void)?
    var onHead: ((Recorder) -> Void)?
    var onBody: ((Recorder, UnsafeRawBufferPointer) -> Flow)?
    var onCompleted: ((Recorder) -> Void)?
    private(set) var completions = 0

    func informational(status: Int, fields: Fields) {
        answer.informational.append((status, fields))
        onInformational?(self)
    }

    func received(head: UpstreamHead) {
        precondition(answer.head == nil, "two heads")
        answer.head = head
        onHead?(self)
    }

    func received(body: UnsafeRawBufferPointer) -> Flow {
        precondition(answer.head != nil && completions == 0, "a body out of order")
        let flow = onBody?(self, body) ?? .proceed
        if flow == .proceed {
            answer.bodyBytes += body.count
            if keepsBody { answer.body += body }
        }
        return flow
    }

    func completed(_ result: Result<TransferSummary, UpstreamError>) {
        completions += 1
        precondition(completions == 1, "completed twice")
        answer.result = result
        transfer = nil
        onCompleted?(self)
    }
}

/// An upstream client on a loop of its own, for tests on other threads.
// Unchecked: the client is touched on the loop only.
final class UpstreamBench: @unchecked Sendable {
    let loop: EventLoop
    private var client: UpstreamClient?

    init(_ options: UpstreamOptions = UpstreamBench.options) throws {
        loop = try EventLoop(name: "upstream-test")
        loop.start()
        loop.enqueue { [self] in client = UpstreamClient(loop: loop, options: options) }
    }

    deinit {
        precondition(client == nil, "stop() the bench")
    }

    /// Options that no proxy of the test's environment disturbs.
    static var options: UpstreamOptions {
        var options = UpstreamOptions()
        options.proxy = .none
        // However slowly the tests run.
        options.unsafeReuseAge = .seconds(60)
        return options
    }

    func stop() {
        loop.enqueue { [self] in
            client?.cancelAll()
            loop.enqueue { [self] in client = nil }
        }
        loop.stop()
        loop.join()
    }

    /// Does something on the loop.
    func onLoop<Value: Sendable>(_ work: @escaping @Sendable (UpstreamClient) -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            loop.enqueue { [self] in continuation.resume(returning: work(client!)) }
        }
    }

    /// Sends a request and waits for its end.
    func send(
        _ request: UpstreamRequest,
        _ prepare: @escaping @Sendable (Recorder) -> Void = { _ in }
    ) async -> Answer {
        await withCheckedContinuation { continuation in
            loop.enqueue { [self] in
                let recorder = Recorder()
                recorder.onCompleted = { continuation.resume(returning: $0.answer) }
                prepare(recorder)
                recorder.transfer = client!.start(request, recorder)
            }
        }
    }

    func get(_ url: String, _ fields: Fields = Fields()) async -> Answer {
        await send(UpstreamRequest(method: "GET", url: url, fields: fields))
    }
}

/// A request's body that a test fills by hand.
final class TestBody: UpstreamBody {
    private struct State {
        var bytes: [UInt8] = []
        var hasEnded = false
        var failure: String?
        var taken = 0
        var notify: (@Sendable () -> Void)?
    }

    let declaredLength: Int?
    private let state = Mutex(State())

    init(length: Int?, _ bytes: [UInt8] = [], ended: Bool = false) {
        declaredLength = length
        state.withLock {
            $0.bytes = bytes
            $0.hasEnded = ended
        }
    }

    /// A whole body at once.
    convenience init(_ text: String) {
        self.init(length: text.utf8.count, Array(text.utf8), ended: true)
    }

    func take(max: Int) -> UpstreamBodyPart {
        state.withLock { state in
            if let failure = state.failure { return .failed(failure) }
            if state.taken == state.bytes.count { return state.hasEnded ? .end : .pending }
            let part = Array(state.bytes[state.taken...].prefix(max))
            state.taken += part.count
            return .bytes(part)
        }
    }

    func onAvailable(_ notify: @escaping @Sendable () -> Void) {
        let callsNow = state.withLock { state in
            state.notify = notify
            return state.taken < state.bytes.count || state.hasEnded || state.failure != nil
        }
        if callsNow { notify() }
    }

    private func change(_ change: (inout State) -> Void) {
        let notify = state.withLock { state in
            change(&state)
            return state.notify
        }
        notify?()
    }

    func add(_ bytes: [UInt8]) { change { $0.bytes += bytes } }
    func end() { change { $0.hasEnded = true } }
    func fail(_ reason: String) { change { $0.failure = reason } }
    var taken: Int { state.withLock { $0.taken } }
}

/// Something that a thread or task waits for.
final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func open() { semaphore.signal() }

    /// Blocks the calling thread, a script's or the test's.
    @discardableResult
    func wait(seconds: Int = 20) -> Bool {
        semaphore.wait(timeout: .now() + .seconds(seconds)) == .success
    }

    func waitAsync() async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { [self] in
                wait()
                continuation.resume()
            }
        }
    }
}

/// A process of another program, without Foundation's, which may wait for ever for one that has ended.
struct ChildProcess {
    private let identifier: pid_t

    /// Starts a program with its standard error thrown away; nil when it cannot be started.
    init?(_ arguments: [String], input: String = "/dev/null", output: String = "/dev/null") {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        // Nothing of the test's: neither its sockets, nor locks of whoever runs it, nor its threads' blocked signals.
        for descriptor in Int32(3)..<1024 { posix_spawn_file_actions_addclose(&actions, descriptor) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
        defer { for word in words { free(word) } }
        words.append(nil)
        let path = strdup("PATH=\(String(cString: getenv("PATH")))")
        defer { free(path) }
        let environment = [path, nil]
        var identifier = pid_t()
        guard posix_spawnp(&identifier, arguments[0], &actions, &attributes, words, environment) == 0 else {
            return nil
        }
        self.identifier = identifier
    }

    /// Waits for its end; true when it went well.
    @discardableResult
    func wait() -> Bool {
        var status: Int32 = 0
        while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
        return status == 0
    }

    /// Ends it, whatever it is doing.
    func end() {
        kill(identifier, SIGKILL)
        wait()
    }
}
