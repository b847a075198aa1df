import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import EventLoops
@testable import HTTPSemantics
@testable import Upstream

@Suite struct `Upstream flow` {
    static let size = 2_000_000
    static let body = (0..<size).map { UInt8(truncatingIfNeeded: $0 / 1000) }

    static func big() -> RawServer {
        RawServer { connection in
            while connection.readHead() != nil {
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(size)\r\n\r\n")
                connection.write(body)
            }
        }
    }

    @Test func `a paused body is offered again, whole and in order`() async throws {
        let server = Self.big()
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let pauses = Atomic(0)
        let answer = await bench.send(UpstreamRequest(method: "GET", url: server.url)) { recorder in
            var calls = 0
            recorder.onBody = { recorder, _ in
                calls += 1
                guard calls % 3 == 0 else { return .proceed }
                pauses.add(1, ordering: .relaxed)
                // From within the callback: done later.
                recorder.transfer?.resume()
                return .pause
            }
        }
        #expect(answer.error == nil)
        #expect(answer.body == Self.body)
        #expect(pauses.load(ordering: .relaxed) > 10)
    }

    @Test func `a paused body holds the upstream back and does not stall`() async throws {
        let written = Atomic(0)
        let server = RawServer { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
            for _ in 0..<1000 {
                guard connection.write([UInt8](repeating: 1, count: 100_000)) else { return }
                written.add(100_000, ordering: .relaxed)
            }
        }
        defer { server.stop() }
        let bench = try UpstreamBench(`Upstream failures`.hasty(.stall))
        defer { bench.stop() }
        let paused = Gate()
        let box = Mutex<(@Sendable () -> Void)?>(nil)
        async let answer = bench.send(UpstreamRequest(method: "GET", url: server.url)) { recorder in
            recorder.keepsBody = false
            var isOpen = false
            // The loop alone touches it, and this runs there.
            nonisolated(unsafe) let unsafe = recorder
            box.withLock {
                $0 = {
                    // From here on it is not about time.
                    unsafe.transfer?.setStallTimeout(nil)
                    unsafe.transfer?.resume()
                }
            }
            recorder.onBody = { _, _ in
                if isOpen { return .proceed }
                isOpen = true
                paused.open()
                return .pause
            }
        }
        await paused.waitAsync()
        try await Task.sleep(for: .milliseconds(500))
        let held = written.load(ordering: .relaxed)
        #expect(held < 20_000_000)
        let resume = box.withLock { $0 }
        bench.loop.enqueue { resume?() }
        let result = await answer
        #expect(result.error == nil)
        #expect(result.bodyBytes == 100_000_000)
    }

    @Test func `a transfer can be cancelled from any callback, and reports it once`() async throws {
        let server = RawServer { connection in
            while let head = connection.readHead() {
                if head.hasPrefix("GET /hang") {
                    connection.waitForClose()
                    return
                }
                connection.write(
                    "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n"
                )
                connection.write([UInt8](repeating: 1, count: 500_000))
            }
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let get = UpstreamRequest(method: "GET", url: server.url)
        let places: [@Sendable (TransferRecorder) -> Void] = [
            { $0.onInformational = { $0.transfer?.cancel() } },
            { $0.onHead = { $0.transfer?.cancel() } },
            {
                $0.onBody = { recorder, _ in
                    recorder.transfer?.cancel()
                    return .proceed
                }
            },
            {
                $0.onBody = { recorder, _ in
                    recorder.transfer?.cancel()
                    recorder.transfer?.resume()
                    recorder.transfer?.cancel()
                    return .pause
                }
            },
        ]
        for place in places {
            let answer = await bench.send(get, place)
            #expect(answer.error == .cancelled)
        }
        // Right after the start, and while it hangs.
        let cancelled = await bench.onLoop { client in
            let recorder = TransferRecorder()
            recorder.transfer = client.start(get, recorder)
            recorder.transfer?.cancel()
            return recorder.completions
        }
        #expect(cancelled == 0)
        async let hanging = bench.get(server.url + "/hang")
        while !server.heads.contains(where: { $0.hasPrefix("GET /hang") }) {
            try await Task.sleep(for: .milliseconds(5))
        }
        await bench.onLoop { $0.cancelAll() }
        #expect(await hanging.error == .cancelled)
        #expect(await bench.onLoop { $0.activeCount } == 0)
    }

    @Test func `cancelling transfers at random moments leaves the others whole`() async throws {
        let server = Self.big()
        defer { server.stop() }
        var options = UpstreamBench.options
        options.maxConnectionsPerHost = 16
        let bench = try UpstreamBench(options)
        defer { bench.stop() }
        let url = server.url
        let results = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<40 {
                group.addTask {
                    let answer = await bench.send(UpstreamRequest(method: "GET", url: url)) { recorder in
                        recorder.keepsBody = false
                        var left = number * 2
                        recorder.onBody = { recorder, _ in
                            left -= 1
                            if left < 0, number % 2 == 0 { recorder.transfer?.cancel() }
                            if left % 7 == 3 {
                                recorder.transfer?.resume()
                                return .pause
                            }
                            return .proceed
                        }
                    }
                    return number % 2 == 0 ? answer.error == .cancelled : answer.bodyBytes == Self.size
                }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 0 : 1 }
        }
        #expect(results == 0)
    }

    @Test func `a delegate may start the next request from any of its calls`() async throws {
        let server = RawServer { connection in
            while connection.readHead() != nil {
                connection.write("HTTP/1.1 103 Early Hints\r\n\r\n")
                connection.answer("body")
            }
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let request = UpstreamRequest(method: "GET", url: server.url)
        let texts = Mutex<[String]>([])
        let all = Gate()
        await bench.onLoop { client in
            let note = { (recorder: TransferRecorder) in
                let count = texts.withLock { texts in
                    texts.append(recorder.answer.text)
                    return texts.count
                }
                if count == 5 { all.open() }
            }
            let start = {
                let other = TransferRecorder()
                other.onCompleted = note
                client.start(request, other)
            }
            let first = TransferRecorder()
            first.onInformational = { _ in start() }
            first.onHead = { _ in start() }
            first.onBody = { _, _ in
                start()
                return .proceed
            }
            first.onCompleted = { recorder in
                start()
                note(recorder)
            }
            client.start(request, first)
        }
        await all.waitAsync()
        #expect(texts.withLock { $0 } == ["body", "body", "body", "body", "body"])
    }
}
