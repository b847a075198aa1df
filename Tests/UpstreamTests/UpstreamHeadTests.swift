import Testing

@testable import HTTPSemantics
@testable import Upstream

@Suite struct `Upstream head and state` {
    /// What the lines lead to, without the incomplete steps.
    static func read(_ lines: [String], limit: Int = 10_000, decodes: Bool = true) -> [ResponseHeadReader.Step] {
        var reader = ResponseHeadReader(limit: limit, decodes: decodes)
        return lines.map { line in
            Array(line.utf8).withUnsafeBytes { reader.received($0) }
        }
        .filter { $0 != .incomplete }
    }

    @Test func `interim heads come before the final one, and trailers are ignored`() {
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
    func `a malformed status line is an error`(line: String) {
        guard case .failed(.badResponse)? = Self.read([line]).first else {
            Issue.record("\(line) was taken")
            return
        }
    }

    @Test func `the head limit counts every line`() {
        let lines = ["HTTP/1.1 200 OK\r\n"] + Array(repeating: "X-Field: 0123456789\r\n", count: 10)
        #expect(Self.read(lines, limit: 227).isEmpty)
        #expect(Self.read(lines, limit: 226) == [.failed(.headTooLarge)])
    }

    @Test func `a field with an invalid name is left out`() {
        let steps = Self.read(["HTTP/1.1 200 OK\r\n", "bad name: 1\r\n", ": 2\r\n", "good: a\rb\r\n", "\r\n"])
        guard case .final(let head)? = steps.first else {
            Issue.record("no head")
            return
        }
        #expect(head.fields.lines == [Field("good", "a b")])
    }

    @Test func `a bare CR or a NUL in a value becomes a space, also in a folded line`() {
        let steps = Self.read(["HTTP/1.1 200 OK\r\n", "A: b\rc\0d\r\n", " e\rf\0g\r\n", "\r\n"])
        guard case .final(let head)? = steps.first else {
            Issue.record("no head")
            return
        }
        #expect(head.fields.lines == [Field("A", "b c d e f g")])
    }

    @Test func `a folded value has no blanks at its ends`() {
        let steps = Self.read(["HTTP/1.1 200 OK\r\n", "A:\r\n", " b\r\n", "\t \r\n", "\r\n"])
        guard case .final(let head)? = steps.first else {
            Issue.record("no head")
            return
        }
        #expect(head.fields.lines == [Field("A", "b")])
    }

    @Test func `a transfer coding overrides a length, and an unknown content coding stays`() {
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

    @Test func `an interim head that announces a body is refused, because libcurl would merge it with the final one`() {
        for line in ["Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"] {
            let steps = Self.read(["HTTP/1.1 103 Early Hints\r\n", line, "\r\n"])
            guard case .failed(.badResponse)? = steps.last else {
                Issue.record("\(steps)")
                continue
            }
        }
    }

    @Test func `an unsafe request is sent once, a safe one again as long as no byte has come`() {
        for method in ["GET", "HEAD", "OPTIONS", "TRACE", "POST", "PUT", "PATCH", "DELETE", "PROPFIND", "LARDER"] {
            let isSafe = ["GET", "HEAD", "OPTIONS", "TRACE"].contains(method)
            let request = UpstreamRequest(method: method, url: "http://a/")
            #expect(request.isSafe == isSafe)
            var state = TransferState(now: 0)
            let isSent = state.willSend(isSafe: request.isSafe, now: 1)
            #expect(isSent)
            let isSentAgain = state.willSend(isSafe: request.isSafe, now: 2)
            #expect(isSentAgain == isSafe, "\(method)")
            #expect(state.attempts == (isSafe ? 2 : 1))
            #expect(state.ownReason == (isSafe ? nil : .reset(afterBytes: 0)))
            let isSentAfterLine = state.willSend(isSafe: request.isSafe, hasResponse: true, now: 3)
            #expect(!isSentAfterLine)
        }
    }

    @Test func `each phase has its deadline, and none runs while the client is slow`() {
        var timeouts = UpstreamTimeouts()
        (timeouts.queue, timeouts.firstByte, timeouts.stall) = (.seconds(2), .seconds(4), .seconds(8))
        var state = TransferState(now: 0)
        #expect(state.deadline(timeouts)?.error == .queueTimeout)
        _ = state.willSend(isSafe: false, now: 10)
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
