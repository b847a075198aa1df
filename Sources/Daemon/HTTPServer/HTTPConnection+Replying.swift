import HTTPSemantics

/// The deferred answer: what a reply calls for, done on the worker.
extension HTTPConnection {
    /// A reply wants something done.
    func perform(_ channel: ReplyChannel) {
        let operations = channel.takeOperations()
        if draining === channel { return channel.noteBacklog(queue.byteCount, consumed: 0) }
        guard self.channel === channel else { return channel.disconnected() }
        var consumed = 0
        for operation in operations {
            if case .write(let bytes) = operation { consumed += bytes.count }
            apply(operation)
            if self.channel !== channel { break }
        }
        if phase == .closed { return }
        channel.noteBacklog(queue.byteCount, consumed: consumed)
        sendQueue()
        settleReading()
    }

    private func apply(_ operation: ReplyChannel.Operation) {
        switch operation {
        case .informational(let status, let fields):
            if isHTTP11, (100..<200).contains(status), status != 101, bodyEnd == nil {
                if status == 100 { owesContinue = false }
                queue.append(ReplyHead(informational: status, fields: fields).bytes)
            }
        case .start(let status, let reason, let fields, let framing): begin(status, reason, fields, framing)
        case .write(let bytes): write(bytes)
        case .finish(let trailers): finishAnswer(trailers)
        case .abort: breakOff()
        case .drop: dropped()
        }
    }

    private func begin(_ status: Int, _ reason: String?, _ fields: Fields, _ framing: ReplyFraming) {
        let head = ReplyHead(
            status: status,
            reason: reason,
            fields: fields,
            framing: framing,
            isHead: isHead,
            isHTTP11: isHTTP11,
            closes: mustCloseAfterDeferred || owesContinue,
            dateLine: dateLine
        )
        closesAfterAnswer = head.closes
        bodyEnd = head.bodyEnd
        queue.append(head.bytes)
    }

    private func write(_ bytes: [UInt8]) {
        if bytes.isEmpty { return }
        switch bodyEnd {
        case nil, .noBody: break
        case .close: queue.append(bytes)
        case .length(let rest):
            // More than was promised would be read as the next answer: it is cut off.
            queue.append(bytes, from: 0, to: min(rest, bytes.count))
            bodyEnd = .length(max(0, rest - bytes.count))
        case .chunked:
            queue.append(Array("\(String(bytes.count, radix: 16))\r\n".utf8))
            queue.append(bytes)
            queue.append([0x0D, 0x0A])
        }
    }

    private func finishAnswer(_ trailers: Fields) {
        if case .length(let rest) = bodyEnd, rest > 0 { return breakOff() }
        if bodyEnd == .chunked {
            var end = Array("0\r\n".utf8)
            for field in trailers.lines { ReplyHead.append(field, to: &end) }
            end += [0x0D, 0x0A]
            queue.append(end)
        }
        channel?.finished()
        if !queue.isEmpty { draining = channel }
        channel = nil
        phase = .answered
        answerIsComplete()
        // The requests behind it come when the queue is empty.
        if phase == .idle, !input.isEmpty { resumeLater() }
    }

    private func dropped() {
        guard bodyEnd == nil else { return breakOff() }
        host.notice(HTTPNotice(level: .error, message: "a request got no response; this is a bug in Larder, please report it", details: [:]))
        let problem = ProblemDocument(status: 500, detail: "Larder lost the response to this request.")
        begin(500, nil, Fields([Field("Content-Type", ProblemDocument.mediaType)]), .length(problem.bytes.count))
        write(problem.bytes)
        finishAnswer(Fields())
    }
}
