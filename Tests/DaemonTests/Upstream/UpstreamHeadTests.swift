import Testing

@testable import Daemon

@Suite struct `Upstream head and state` {
    /// What the lines lead to, without the incomplete steps.
    static func read(_ lines: [String], limit: Int = 10_000, decodes: Bool = true) -> [AnswerHeadReader.Step] {
        var reader = AnswerHeadReader(limit: limit, decodes: decodes)
        return lines.map { line in
            Array(line.utf8).withUnsafeBytes { reader.received($0) }
        }
        .filter { $0 != .incomplete }
    }

    @Test func `interim heads come before the final one, trailers lead to nothing`() {
        let steps = Self.read([
            "HTTP/1.1 103 Early Hints\r\n", "Link: </a>\r\n", "\r\n", "HTTP/2 204 \r\n", "x: y\r\n", "\r\n", "T: 1\r\n",
            "\r\n",
        ])
        #expect(
            steps == [
                .informational(status: 103, fields: Fields([Field("Link", "</a>")])),
                .final(
                    UpstreamHead(
                        version: .http2,
                        status: 204,
                        reason: [],
                        fields: Fields([Field("x", "y")]),
                        decodedFrom: nil
                    )
                ),
            ]
        )
    }

    @Test(arguments: [
        "HTTP/1.1\r\n", "HTTP/1.1 2000 OK\r\n", "HTTP/1.1 abc OK\r\n", "HTTP/3.5 200\r\n", "http/1.1 200 OK\r\n",
        "\r\n",
    ])
    func `a malformed status line is a bad answer`(line: String) {
        guard case .failed(.badAnswer)? = Self.read([line]).first else {
            Issue.record("\(line) was taken")
            return
        }
    }

    @Test func `the limit counts every line`() {
        let lines = ["HTTP/1.1 200 OK\r\n"] + Array(repeating: "X-Field: 0123456789\r\n", count: 10)
        #expect(Self.read(lines, limit: 227).isEmpty)
        #expect(Self.read(lines, limit: 226) == [.failed(.headTooLarge)])
    }

    @Test func `a field whose name is no name is left out`() {
        let steps = Self.read(["HTTP/1.1 200 OK\r\n", "bad name: 1\r\n", ": 2\r\n", "good: a\rb\r\n", "\r\n"])
        guard case .final(let head)? = steps.first else {
            Issue.record("no head")
            return
        }
        #expect(head.fields.lines == [Field("good", "a b")])
    }

    @Test func `a transfer coding overrides a length, an unknown content coding stays`() {
        let steps = Self.read([
            "HTTP/1.1 200 OK\r\n", "Content-Length: 9\r\n", "Transfer-Encoding: chunked\r\n",
            "Content-Encoding: aes\r\n", "\r\n",
        ])
        guard case .final(let head)? = steps.first else {
            Issue.record("no head")
            return
        }
        #expect(head.fields.lines == [Field("Content-Encoding", "aes")])
        #expect(head.decodedFrom == nil)
    }

    @Test func `interim heads that speak of a body are refused, for libcurl would mix them with the final one`() {
        for line in ["Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"] {
            let steps = Self.read(["HTTP/1.1 103 Early Hints\r\n", line, "\r\n"])
            guard case .failed(.badAnswer)? = steps.last else {
                Issue.record("\(steps)")
                continue
            }
        }
    }

    @Test func `a request is sent twice only if the upstream cannot have it, and none that got a byte`() {
        for (fate, isIdempotent, mayRepeat) in [
            (nil, true, false), (nil, false, false), (.received, true, false), (.received, false, false),
            (.notReceived, true, true), (.notReceived, false, true), (.unknown, true, true), (.unknown, false, false),
        ] as [(RequestFate?, Bool, Bool)] {
            var state = TransferState(now: 0)
            let isSent = state.willSend(isIdempotent: isIdempotent, now: 1)
            #expect(isSent)
            if let fate { state.lostConnection(fate) }
            let isSentAgain = state.willSend(isIdempotent: isIdempotent, now: 2)
            #expect(isSentAgain == mayRepeat, "\(String(describing: fate)) \(isIdempotent)")
            #expect(state.attempts == (mayRepeat ? 2 : 1))
            if !mayRepeat { #expect(state.ownReason == .reset(afterBytes: 0)) }
            state.firstByteArrived()
            let isSentOnceMore = state.willSend(isIdempotent: isIdempotent, now: 3)
            #expect(!isSentOnceMore)
        }
        for isIdempotent in [true, false] {
            var multiplexed = TransferState(now: 0)
            _ = multiplexed.willSend(isIdempotent: isIdempotent, isMultiplexed: true, now: 1)
            let isSentAgain = multiplexed.willSend(isIdempotent: isIdempotent, isMultiplexed: true, now: 2)
            #expect(isSentAgain == isIdempotent)
        }
        var answered = TransferState(now: 0)
        _ = answered.willSend(isIdempotent: true, isMultiplexed: true, now: 1)
        let isRepeated = answered.willSend(isIdempotent: true, isMultiplexed: true, hasAnswer: true, now: 2)
        #expect(!isRepeated)
    }

    @Test func `what the kernel has seen acknowledged tells what became of a request`() {
        let idle = SocketFacts(acknowledged: 100, unacknowledged: 10, received: 500, state: 1)
        func later(_ acknowledged: UInt64, _ received: UInt64, _ state: UInt8) -> SocketFacts {
            SocketFacts(acknowledged: acknowledged, unacknowledged: 0, received: received, state: state)
        }
        // What was still under way when the connection became idle is not the request.
        #expect(later(110, 501, 8).fate(since: idle) == .notReceived)
        #expect(later(150, 501, 8).fate(since: idle) == .received)
        // A FIN and, in answer to what was sent after it, a reset.
        #expect(later(100, 501, 7).fate(since: idle) == .notReceived)
        #expect(!later(100, 501, 7).hasReceivedMore(than: idle))
        #expect(later(150, 501, 7).hasReceivedMore(than: idle))
        #expect(later(100, 500, 7).fate(since: idle) == .unknown)
        #expect(later(150, 500, 7).fate(since: idle) == .received)
        #expect(!later(150, 501, 8).hasReceivedMore(than: idle))
        #expect(later(150, 502, 8).hasReceivedMore(than: idle))
    }

    @Test func `the deadline belongs to the phase, and none runs while somebody else is waited for`() {
        let timeouts = UpstreamTimeouts(
            connect: .seconds(1),
            queue: .seconds(2),
            firstByte: .seconds(4),
            stall: .seconds(8)
        )
        var state = TransferState(now: 0)
        #expect(state.deadline(timeouts)?.error == .queueTimeout)
        _ = state.willSend(isIdempotent: false, now: 10)
        #expect(state.deadline(timeouts)?.at == 4_000_000_010)
        state.sendingPaused()
        #expect(state.deadline(timeouts) == nil)
        let step6 = state.sendingResumed(now: 20)
        #expect(step6)
        #expect(state.deadline(timeouts)?.error == .firstByteTimeout)
        state.headArrived(now: 30)
        #expect(state.deadline(timeouts)?.at == 8_000_000_030)
        state.receivingPaused()
        #expect(state.deadline(timeouts) == nil)
        let step7 = state.receivingResumed(now: 40)
        #expect(step7)
        let step8 = state.receivingResumed(now: 50)
        #expect(!step8)
        let step9 = state.ended()
        #expect(step9)
        let step10 = state.ended()
        #expect(!step10)
        let step11 = state.cancelled()
        #expect(!step11)
    }
}
