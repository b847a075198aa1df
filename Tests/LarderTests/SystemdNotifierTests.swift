import Glibc
import Synchronization
import TestSupport
import Testing

@testable import EventLoops
@testable import Larder

@Suite struct SystemdNotifierTests {
    @Test func `states reach the socket in one datagram`() throws {
        let folder = TemporaryFolder()
        let manager = try #require(ServiceManager(at: folder.path + "/notify"))
        let notifier = SystemdNotifier(environment: ["NOTIFY_SOCKET": folder.path + "/notify"])
        #expect(notifier.send(.ready, .status("listening on 127.0.0.1:8787")))
        #expect(manager.next() == "READY=1\nSTATUS=listening on 127.0.0.1:8787")
        #expect(notifier.send(.stopping))
        #expect(manager.next() == "STOPPING=1")
    }

    @Test func `an abstract socket is reached too`() throws {
        let name = "@larder-test-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        let manager = try #require(ServiceManager(at: name))
        #expect(SystemdNotifier(environment: ["NOTIFY_SOCKET": name]).send(.ready))
        #expect(manager.next() == "READY=1")
    }

    @Test func `a status of several lines is sent as one`() throws {
        let folder = TemporaryFolder()
        let manager = try #require(ServiceManager(at: folder.path + "/notify"))
        SystemdNotifier(environment: ["NOTIFY_SOCKET": folder.path + "/notify"]).send(.status("one\nREADY=1"))
        #expect(manager.next() == "STATUS=one READY=1")
    }

    @Test(arguments: [[:], ["NOTIFY_SOCKET": ""], ["NOTIFY_SOCKET": "relative"], ["NOTIFY_SOCKET": "/nowhere/at/all"]])
    func `without a service manager nothing is sent and nothing fails`(environment: [String: String]) {
        #expect(!SystemdNotifier(environment: environment).send(.ready))
    }

    @Test func `nothing is sent to a socket whose path is too long`() {
        let path = "/" + String(repeating: "x", count: 107)
        #expect(!SystemdNotifier(environment: ["NOTIFY_SOCKET": path]).send(.ready))
        #expect(unixSocketName(String(path.dropLast())) != nil)
    }

    @Test(
        arguments: [
            (["WATCHDOG_USEC": "30000000"], .seconds(30)),
            (["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "77"], .seconds(30)),
            (["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "78"], nil),
            (["WATCHDOG_USEC": "0"], nil), (["WATCHDOG_USEC": "soon"], nil), ([:], nil),
        ] as [([String: String], Duration?)]
    )
    func `the watchdog runs only when it watches this process`(environment: [String: String], interval: Duration?) {
        #expect(SystemdNotifier(environment: environment, process: 77).watchdogInterval == interval)
    }
}

@Suite struct WatchdogTests {
    let folder = TemporaryFolder()

    @Test func `the manager is notified only while every loop responds`() throws {
        let manager = try #require(ServiceManager(at: folder.path + "/notify"))
        let quick = Watchdog.Member(name: "upstream") { $0() }
        let hanging = Waiting()
        let slow = Watchdog.Member(name: "worker 0") { question in hanging.add(question) }
        let watchdog = try #require(Watchdog(notifier: notifier(), members: [quick, slow]))
        #expect(watchdog.period == .seconds(15))

        #expect(watchdog.beat() == [])
        #expect(manager.next() == "WATCHDOG=1")
        #expect(watchdog.beat() == ["worker 0"])
        #expect(watchdog.beat() == ["worker 0"])
        #expect(manager.next() == nil)

        #expect(hanging.answerAll() == 1, "a loop that hangs is not asked again")
        #expect(manager.next() == "WATCHDOG=1", "the manager does not wait for the next beat")
        #expect(watchdog.beat() == [])
        #expect(manager.next() == "WATCHDOG=1")
        #expect(hanging.answerAll() == 1)
        #expect(manager.next() == nil, "an answer in time waits for the next beat")
    }

    @Test func `real loops keep the watchdog quiet`() throws {
        let manager = try #require(ServiceManager(at: folder.path + "/notify"))
        let loops = [try EventLoop(name: "upstream"), try EventLoop(name: "worker 0")]
        let watchdog = try #require(
            Watchdog(notifier: notifier(microseconds: 20_000), members: loops.map { Watchdog.Member($0) })
        )
        for loop in loops { loop.start() }
        let timer = OnLoop<EventTimer>()
        loops[0].enqueue { timer.value = watchdog.start(on: loops[0]) { _ in } }
        for _ in 0..<3 { #expect(manager.wait() == "WATCHDOG=1") }
        loops[0].enqueue { timer.value = nil }
        for loop in loops {
            loop.stop()
            loop.join()
        }
    }

    @Test func `there is no watchdog if the manager does not ask for one`() {
        let notifier = SystemdNotifier(environment: ["NOTIFY_SOCKET": "/run/notify"])
        #expect(Watchdog(notifier: notifier, members: []) == nil)
    }

    private func notifier(microseconds: Int = 30_000_000) -> SystemdNotifier {
        SystemdNotifier(environment: ["NOTIFY_SOCKET": folder.path + "/notify", "WATCHDOG_USEC": "\(microseconds)"])
    }
}

/// Something that a loop keeps.
// Unchecked: only the loop's thread touches the value.
private final class OnLoop<Value>: @unchecked Sendable {
    var value: Value?
}

/// A loop that does nothing until it is told to.
private final class Waiting: Sendable {
    private let questions = Mutex<[@Sendable () -> Void]>([])

    func add(_ question: @escaping @Sendable () -> Void) {
        questions.withLock { $0.append(question) }
    }

    func answerAll() -> Int {
        let all = questions.withLock { questions in
            defer { questions = [] }
            return questions
        }
        for question in all { question() }
        return all.count
    }
}

/// The other end of `NOTIFY_SOCKET`.
private final class ServiceManager {
    private let descriptor: Int32

    init?(at address: String) {
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard let (boundName, length) = unixSocketName(address) else { return nil }
        var name = boundName
        let status = withUnsafePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
        }
        guard status == 0 else { return nil }
    }

    deinit {
        close(descriptor)
    }

    /// The next datagram, however long it takes.
    func wait() -> String? { receive(flags: 0) }

    /// The next datagram that has arrived; nil when there is none.
    ///
    /// Local datagrams arrive before `sendto` returns.
    func next() -> String? { receive(flags: Int32(MSG_DONTWAIT)) }

    private func receive(flags: Int32) -> String? {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &buffer, buffer.count, flags)
        return count < 0 ? nil : String(decoding: buffer[..<count], as: UTF8.self)
    }
}
