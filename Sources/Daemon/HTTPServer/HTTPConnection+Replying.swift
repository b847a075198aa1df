import EventLoops
import Glibc
import HTTPSemantics

/// Deferred responses: carries out a reply's operations on the worker.
extension HTTPConnection {
    /// Carries out the pending operations of a reply.
    func perform(_ channel: ReplyChannel) {
        let operations = channel.takeOperations()
        if draining === channel { return channel.setBacklog(queue.byteCount, consumed: 0) }
        guard self.channel === channel else { return channel.disconnected() }
        var consumed = 0
        for operation in operations {
            if case .write(let bytes) = operation { consumed += bytes.count }
            apply(operation)
            if self.channel !== channel { break }
        }
        if phase == .closed { return }
        channel.setBacklog(queue.byteCount, consumed: consumed)
        sendQueue()
        reportBuffers()
        updateReading()
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
        case .finish(let trailers): finishResponse(trailers)
        case .abort: breakOff()
        case .drop: dropped()
        }
    }

    private func begin(_ status: Int, _ reason: String?, _ fields: Fields, _ framing: BodyFraming) {
        let closes = !keepsAlive || isDraining || owesContinue
        let head = makeHead(status, reason: reason, fields, framing, closes: closes)
        closesAfterResponse = head.closes
        bodyEnd = head.bodyEnd
        queue.append(head.bytes)
    }

    private func write(_ bytes: [UInt8]) {
        if bytes.isEmpty { return }
        switch bodyEnd {
        case nil, .noBody: break
        case .close: queue.append(bytes)
        case .length(let rest):
            // Bytes beyond the declared length would be read as the next response, so they are cut off.
            queue.append(bytes, from: 0, to: min(rest, bytes.count))
            bodyEnd = .length(max(0, rest - bytes.count))
        case .chunked:
            queue.append(Array("\(String(bytes.count, radix: 16))\r\n".utf8))
            queue.append(bytes)
            queue.append([0x0D, 0x0A])
        }
    }

    private func finishResponse(_ trailers: Fields) {
        if case .length(let rest) = bodyEnd, rest > 0 { return breakOff() }
        if bodyEnd == .chunked {
            var end = Array("0\r\n".utf8)
            for line in trailers { end.append(line) }
            end += [0x0D, 0x0A]
            queue.append(end)
        }
        channel?.finished()
        if !queue.isEmpty { draining = channel }
        channel = nil
        phase = .responded
        responseIsComplete()
        // Pipelined requests are served when the queue is empty.
        if phase == .idle, !input.isEmpty { resumeLater() }
    }

    private func dropped() {
        guard bodyEnd == nil else { return breakOff() }
        host.noticeMissingResponse()
        let problem = ProblemDocument(status: 500, detail: "Larder lost the response to this request.")
        begin(500, nil, ["Content-Type": ProblemDocument.mediaType], .length(problem.bytes.count))
        write(problem.bytes)
        finishResponse(Fields())
    }
}

/// The output side: immediate responses, and bytes that the socket did not accept at once.
extension HTTPConnection {
    /// Bodies up to this size are copied behind the head and sent with it.
    private static let copyLimit = 16 * 1024

    /// Sends a body behind the shared output: copied if it is small, otherwise sent at once.
    func send(_ body: [UInt8]) {
        if body.count <= Self.copyLimit { return host.output.append(body) }
        let headCount = host.output.count
        guard queue.isEmpty else {
            flush()
            return queue.append(body)
        }
        let outcome = withUnsafeTemporaryAllocation(of: iovec.self, capacity: 2) { vectors in
            let head = host.output.bytes
            vectors[0] = iovec(iov_base: UnsafeMutableRawPointer(mutating: head.baseAddress!), iov_len: head.count)
            return body.withUnsafeBytes { body in
                vectors[1] = iovec(iov_base: UnsafeMutableRawPointer(mutating: body.baseAddress!), iov_len: body.count)
                return SocketCall.send(descriptor, vectors)
            }
        }
        var sent = 0
        if case .done(let count) = outcome {
            sent = count
            host.meter?.sent(bytes: count)
        }
        if sent < headCount { queue.append(Array(host.output.bytes[sent...])) }
        host.output.clear()
        queue.append(body, from: max(0, sent - headCount))
        // An error recurs, and is handled, at the next write.
        if !queue.isEmpty { startWriting() }
    }

    /// Sends the responses collected in the shared output.
    func flush() {
        let count = host.output.count
        if count == 0 { return }
        if queue.isEmpty {
            switch SocketCall.send(descriptor, host.output.bytes) {
            case .done(count):
                host.meter?.sent(bytes: count)
                host.output.clear()
                return
            case .done(let sent):
                host.meter?.sent(bytes: sent)
                queue.append(Array(host.output.bytes[sent...]))
            case .failed(EAGAIN): queue.append(Array(host.output.bytes))
            case .failed:
                host.output.clear()
                close()
                return
            }
        } else {
            queue.append(Array(host.output.bytes))
        }
        host.output.clear()
        startWriting()
    }

    /// Runs when the socket accepts more.
    func writable() {
        sendQueue()
        guard phase != .closed, queue.isEmpty else { return }
        if phase == .idle || phase == .head {
            deadline = host.loop.now + (phase == .idle ? host.limits.idle : host.limits.headTimeout).nanoseconds
            consumeInput()
        }
        reportBuffers()
        updateReading()
    }

    /// Offers the queued bytes to the socket.
    func sendQueue() {
        var progressed = false
        if !queue.isEmpty {
            switch queue.send(to: descriptor) {
            case .done(let count):
                host.meter?.sent(bytes: count)
                progressed = true
            case .failed(EAGAIN): break
            case .failed: return close()
            }
        }
        (channel ?? draining)?.setBacklog(queue.byteCount, consumed: 0)
        if queue.isEmpty {
            draining = nil
            stopWriting()
            if ending != .none { end() } else if phase == .deferred { deadline = exchangeDeadline }
        } else {
            if progressed || !isWriting { deadline = host.loop.now + host.limits.writeStall.nanoseconds }
            startWriting()
        }
    }

    private func startWriting() {
        if isWriting { return }
        isWriting = true
        deadline = host.loop.now + host.limits.writeStall.nanoseconds
        if writeWatch == nil {
            // This cycle is broken by `close`, as for reading.
            writeWatch = host.loop.watch(descriptor: descriptor, events: .write) { _ in self.writable() }
        } else {
            writeWatch?.enable()
        }
    }

    private func stopWriting() {
        if !isWriting { return }
        isWriting = false
        writeWatch?.disable()
    }
}
