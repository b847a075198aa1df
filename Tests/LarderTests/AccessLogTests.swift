import Foundation
import Logging
import TestSupport
import Testing

@testable import Admin
@testable import CachePolicy
@testable import HTTPSemantics
@testable import HTTPServer
@testable import Larder
@testable import Proxy
@testable import Settings
@testable import Store

private func request(_ url: String = "/users/1", _ change: (inout ServedRequest) -> Void = { _ in }) -> ServedRequest {
    var served = ServedRequest(
        client: ClientAddress(peer: [127, 0, 0, 1], at: .tcp(host: "127.0.0.1", port: 1)),
        method: "GET",
        url: url,
        upstream: "github"
    )
    (served.id, served.time, served.status, served.outcome) = (17, 1_795_418_101_250_000, 200, .hit)
    (served.bytes, served.seconds, served.cacheStatus) = (1_234, 0.000_123, .hit(timeToLive: 60))
    change(&served)
    return served
}

@Suite struct AccessLogLineTests {
    private func line(
        _ served: ServedRequest,
        _ format: Configuration.AccessLog.Format,
        colours: Bool = false
    ) -> String {
        AccessLogLine.text(RequestsResponse.Request(served), format, colours: colours)
    }

    @Test func `the access log for people shows time, status, outcome, duration, size and address`() {
        #expect(
            line(request(), .short) == "07:15:01Z 200 hit              0.1ms   1.2 KiB GET github /users/1\n"
        )
        let stale = request("/x?a=b") {
            ($0.outcome, $0.seconds, $0.upstreamSeconds) = (.stale, 1.25, 1.1)
            $0.cacheStatus = .hit(details: ["offline"])
        }
        #expect(
            line(stale, .short)
                == "07:15:01Z 200 stale             1.3s   1.2 KiB GET github /x?a=b (offline) upstream 1.1s\n"
        )
        let failed = line(request { $0.outcome = .staleIfError }, .short)
        #expect(failed == "07:15:01Z 200 stale-if-error   0.1ms   1.2 KiB GET github /users/1\n")
        #expect(line(request(), .short, colours: true).contains("\u{1B}[32m200 hit"))
        #expect(!line(request(), .off).contains("GET"))
    }

    @Test func `the common format can be read by programs that read Apache's`() {
        #expect(
            line(request(), .common)
                == "127.0.0.1 - - [23/Nov/2026:07:15:01 +0000] \"GET /users/1 HTTP/1.1\" 200 1234\n"
        )
        #expect(line(request { $0.bytes = 0 }, .common).hasSuffix("200 -\n"))
    }

    @Test func `a JSON line is the same as in /requests`() throws {
        let full = request("/ü?\"x\"") {
            ($0.cacheStatus, $0.upstreamSeconds) = (.hit(timeToLive: 60, details: ["stale"]), 0.25)
            $0.key = Digest128(low: 0xAB, high: 1)
        }
        for served in [request(), full] {
            let shown = RequestsResponse.Request(served)
            #expect(AccessLogLine.json(shown) == String(decoding: AdminJSON.encode(shown), as: UTF8.self))
            let read = try AdminJSON.decode(RequestsResponse.Request.self, from: Array(AccessLogLine.json(shown).utf8))
            #expect(read == shown)
        }
        #expect(RequestsResponse.Request(full).key == "000000000000000100000000000000ab")
    }

    @Test(arguments: Configuration.AccessLog.Format.allCases)
    func `hostile characters cannot forge a line`(format: Configuration.AccessLog.Format) {
        let hostile = "/\u{1B}[31m\n<0>evil\r\u{202E}gnp.exe\u{7F}\u{9B}2J\u{2028}\" \\<script>"
        let served = request(hostile) {
            $0.cacheStatus = .hit(details: [hostile])
            $0.upstream = hostile
        }
        let text = line(served, format)
        #expect(text.unicodeScalars.allSatisfy { $0 == "\n" || !$0.isDeceptive }, "\(text.debugDescription)")
        #expect(text.count { $0.isNewline } == (format == .off ? 0 : 1))
    }
}

@Suite(.scripts) struct AccessLogTests {
    private let dropped = Monitor(0)
    private let messages = Messages()

    private func log(_ path: String, _ format: Configuration.AccessLog.Format = .json) -> AccessLog {
        var settings = Configuration.AccessLog()
        (settings.file, settings.format) = (path, format)
        let (dropped, messages) = (dropped, messages)
        let logger = Logger(label: "test") { _ in messages }
        return AccessLog(settings, form: .plain, log: logger) { count in dropped.withLock { $0 += count } }
    }

    private func lines(_ path: String) -> [Substring] {
        (try? String(contentsOfFile: path, encoding: .utf8))?.split(separator: "\n", omittingEmptySubsequences: false)
            ?? []
    }

    @Test func `each request is one line, in order`() throws {
        let folder = TemporaryFolder()
        let log = log(folder.file("access.log"))
        for number in 1...1_000 { log.write(request("/\(number)")) }
        #expect(eventually { lines(folder.file("access.log")).count == 1_001 })
        for (number, line) in zip(1..., lines(folder.file("access.log")).dropLast()) {
            #expect(line.contains("\"url\":\"/\(number)\""))
        }
        #expect(messages.all.isEmpty)
        let status = try FileManager.default.attributesOfItem(atPath: folder.file("access.log"))
        #expect((status[.posixPermissions] as? Int ?? 0o777) & 0o137 == 0)
    }

    @Test func `a renamed log file is written to until the log is reopened`() throws {
        let folder = TemporaryFolder()
        let log = log(folder.file("access.log"), .common)
        log.write(request("/1"))
        #expect(eventually { lines(folder.file("access.log")).count == 2 })
        try FileManager.default.moveItem(atPath: folder.file("access.log"), toPath: folder.file("access.log.1"))
        log.write(request("/2"))
        #expect(eventually { lines(folder.file("access.log.1")).count == 3 })
        log.reopen()
        log.write(request("/3"))
        #expect(eventually { lines(folder.file("access.log")).count == 2 })
        #expect(lines(folder.file("access.log.1")).count == 3)
    }

    @Test func `a missing folder gives one warning, and the lost lines are counted`() throws {
        let folder = TemporaryFolder()
        let path = folder.file("nowhere/access.log")
        let log = log(path)
        for _ in 0..<10 {
            log.write(request())
            #expect(eventually { dropped.current > 0 })
        }
        #expect(eventually { dropped.current == 10 })
        #expect(messages.all.map(\.level) == [.warning])
        #expect(messages.all.first?.text.contains("No such file or directory") == true)
        try FileManager.default.createDirectory(atPath: folder.file("nowhere"), withIntermediateDirectories: true)
        #expect(
            eventually {
                log.write(request("/again"))
                return lines(path).count > 1
            }
        )
        #expect(eventually { messages.all.count == 3 })
        #expect(messages.all.contains { $0.level == .notice && $0.text.contains("can be written again") })
        #expect(messages.all.contains { $0.text.contains("dropped") })
    }

    @Test func `a full disk gives one warning`() {
        let log = log("/dev/full")
        for _ in 0..<10 { log.write(request()) }
        #expect(eventually { dropped.current == 10 })
        #expect(messages.all.map(\.level) == [.warning])
        #expect(messages.all.first?.text.contains("No space left on device") == true)
    }

    @Test func `lines that cannot be written are dropped without delaying requests`() async throws {
        let folder = TemporaryFolder()
        let path = folder.file("pipe")
        #expect(mkfifo(path, 0o600) == 0)
        // Opening it waits for a reader that never comes.
        let log = log(path)
        var written = 0
        while dropped.current == 0, written < 1_000_000 {
            log.write(request())
            written += 1
        }
        #expect(dropped.current == 1)
        #expect(written > 16_384)
        let start = ContinuousClock.now
        await log.flush(within: .milliseconds(50))
        #expect(ContinuousClock.now - start < .seconds(60))
        // The reader comes, and gets all that were not dropped.
        let reader = open(path, O_RDONLY)
        defer { close(reader) }
        var (count, room) = (0, [UInt8](repeating: 0, count: 1 << 16))
        while count < written - 1 {
            let length = read(reader, &room, room.count)
            guard length > 0 else { break }
            count += room[..<length].count { $0 == 0x0A }
        }
        #expect(count == written - 1)
        #expect(await eventually { messages.all.map(\.level) == [.warning] })
        #expect(messages.all.first?.text.contains("dropped") == true)
    }
}

/// Keeps what is logged.
private final class Messages: LogHandler, @unchecked Sendable {  // guarded by the monitor
    private let kept = Monitor<[(level: Logger.Level, text: String)]>([])
    var logLevel = Logger.Level.info
    var metadata: Logger.Metadata = [:]
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { nil }
        set {}
    }

    var all: [(level: Logger.Level, text: String)] { kept.current }

    func log(event: LogEvent) {
        let fields = event.metadata ?? [:]
        kept.withLock { $0.append((event.level, "\(event.message) \(fields)")) }
    }
}
