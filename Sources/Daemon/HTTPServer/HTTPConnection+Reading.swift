import EventLoops
import Glibc
import HTTPSemantics

/// The input side: bytes, heads, bodies.
extension HTTPConnection {
    /// Runs when the socket has input or has reached its end.
    func readable() {
        if phase == .lingering { return linger() }
        if input.isEmpty { readIntoSharedMemory() } else { readIntoOwnMemory() }
        reportBuffers()
        updateReading()
    }

    /// Handles the usual case: the input is consumed on the spot, and the connection needs no memory of its own.
    private func readIntoSharedMemory() {
        let memory = host.readMemory
        let size = if case .nothing = receiving { host.readSize } else { ConnectionHost.readCapacity }
        switch SocketCall.receive(descriptor, memory, size) {
        case .done(0): ended()
        case .done(let count):
            host.meter?.received(bytes: count)
            let used = consume(memory, count)
            if phase != .closed, used < count { input.append(memory + used, count: count - used) }
        case .failed(EAGAIN): break
        case .failed: ended()
        }
    }

    private func readIntoOwnMemory() {
        let room = input.makeRoom(min(4096, host.readSize))
        switch SocketCall.receive(descriptor, room.baseAddress!, min(room.count, ConnectionHost.readCapacity)) {
        case .done(0): ended()
        case .done(let count):
            host.meter?.received(bytes: count)
            input.filled(count)
            consumeInput()
        case .failed(EAGAIN): break
        case .failed: ended()
        }
    }

    /// Consumes the input in the connection's own buffer.
    func consumeInput() {
        guard phase != .closed, !input.isEmpty else { return }
        let used = consume(input.base, input.count)
        // Not when closed: the memory lives as long as the connection, and a caller may still read from it.
        if phase != .closed { input.drop(used) }
    }

    /// Consumes as many bytes as the phase allows; returns their number.
    private func consume(_ base: UnsafeMutablePointer<UInt8>, _ count: Int) -> Int {
        var offset = 0
        var requests = 0
        while offset < count {
            guard case .nothing = receiving else {
                offset = receiveBody(UnsafeRawBufferPointer(start: base, count: count), from: offset)
                continue
            }
            if phase == .lingering {
                offset = count
                break
            }
            guard phase == .idle || phase == .head, ending == .none, queue.isEmpty else { break }
            if requests == host.limits.requestsPerTurn {
                resumeLater()
                break
            }
            let used = readHead(base + offset, count - offset)
            if used == 0 { break }
            offset += used
            requests += 1
            if host.output.count > host.outputFill { flush() }
        }
        if phase != .closed { flush() }
        if phase != .closed, ending != .none, queue.isEmpty { end() }
        return offset
    }

    /// Reads a head and passes it to the handler; returns 0 if it is incomplete.
    private func readHead(_ base: UnsafeMutablePointer<UInt8>, _ count: Int) -> Int {
        var skipped = 0
        if parser == nil {
            // RFC 9112 §2.2 wants empty lines before a request to be ignored; a few are.
            while count - skipped >= 2, base[skipped] == 0x0D, base[skipped + 1] == 0x0A, emptyLines < 8 {
                skipped += 2
                emptyLines += 1
            }
            if skipped > 0 || (count == 1 && base[0] == 0x0D) {
                headIsIncomplete()
                return skipped
            }
        }
        let parser = parser ?? host.parser
        if self.parser == nil { parser.start() }
        switch parser.parse(base, count: count) {
        case .incomplete:
            if self.parser == nil { self.parser = host.takeParser() }
            headIsIncomplete()
            return 0
        case .refused(let fault):
            refuse(fault)
            return count
        case .complete(let length):
            emptyLines = 0
            handle(parser)
            if let own = self.parser {
                self.parser = nil
                host.giveBack(own)
            }
            return length
        }
    }

    private func headIsIncomplete() {
        if phase == .idle {
            phase = .head
            deadline = host.loop.now + host.limits.headTimeout.nanoseconds
        }
    }

    private func handle(_ parser: RequestParser) {
        phase = .handling
        hasServed = true
        answersHEAD = parser.head.method == .head
        isHTTP11 = parser.head.isHTTP11
        keepsAlive = parser.head.keepsAlive
        switch parser.head.framing {
        case .none, .length(0): receiving = .nothing
        case .length(let length): receiving = .length(length)
        case .chunked: receiving = .chunked(ChunkedDecoder(limits: host.limits))
        }
        owesContinue = parser.head.expectsContinue
        bodyReceived = 0
        host.handler.received(parser.head, on: self)
        switch phase {
        case .handling:
            host.noticeMissingResponse()
            respond(ProblemDocument(status: 500, detail: "Larder did not respond to this request."))
            responseIsComplete()
        case .responded: responseIsComplete()
        case .deferred: deadline = exchangeDeadline
        default: break
        }
    }

    // MARK: Bodies

    /// Consumes bytes of the current request's body; returns the offset behind them.
    private func receiveBody(_ bytes: UnsafeRawBufferPointer, from offset: Int) -> Int {
        var offset = offset
        switch receiving {
        case .nothing: break
        case .length(let rest):
            let count = min(rest, bytes.count - offset)
            receiving = count == rest ? .nothing : .length(rest - count)
            deliver(UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + count)]))
            offset += count
            if count == rest { bodyIsComplete() }
        case .chunked(var decoder):
            decoding: while true {
                switch decoder.next(bytes, from: &offset) {
                case .body(let range):
                    bodyReceived += range.count
                    if bodyReceived > host.limits.maxBody {
                        refuse(.bodyTooLarge)
                        return bytes.count
                    }
                    deliver(UnsafeRawBufferPointer(rebasing: bytes[range]))
                    if phase == .closed || phase == .lingering || ending != .none { return bytes.count }
                case .needsMore:
                    receiving = .chunked(decoder)
                    break decoding
                case .end:
                    receiving = .nothing
                    bodyIsComplete()
                    break decoding
                case .refused(let fault):
                    refuse(fault)
                    return bytes.count
                }
            }
        }
        return offset
    }

    private func deliver(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else { return }
        // The client did not wait for the 100.
        owesContinue = false
        if let body {
            body.append(Array(bytes))
            bodyArrived = host.loop.now
            deadline = exchangeDeadline
        } else {
            discarded += bytes.count
            if discarded > Self.discardLimit { finish(.linger) }
        }
    }

    private func bodyIsComplete() {
        body?.complete()
        if phase == .discarding { becomeIdle() } else if phase == .deferred { deadline = exchangeDeadline }
    }

    /// The time by which the next part of the request body must arrive, or the client must read more of the response.
    var exchangeDeadline: UInt64 {
        if !queue.isEmpty { return host.loop.now + host.limits.writeStall.nanoseconds }
        if case .nothing = receiving { return .max }
        guard let body else { return host.loop.now + host.limits.bodyIdle.nanoseconds }
        return body.isWanted && body.hasRoom ? host.loop.now + host.limits.bodyIdle.nanoseconds : .max
    }

    /// Sends `100 Continue` or resumes reading, because a reader has asked for (more of) the body.
    func bodyIsWanted() {
        guard phase == .deferred, let body, body.isWanted else { return }
        if owesContinue, bodyEnd == nil {
            owesContinue = false
            queue.append(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
            sendQueue()
        }
        if phase == .closed { return }
        deadline = exchangeDeadline
        updateReading()
    }

    // MARK: Reading or not

    /// Watches the socket for input exactly when input can be used.
    func updateReading() {
        guard phase != .closed else { return }
        let wants = wantsInput
        if wants == isReading { return }
        isReading = wants
        if wants { readWatch?.enable() } else { readWatch?.disable() }
    }

    private var wantsInput: Bool {
        if phase == .lingering { return true }
        if ending != .none { return false }
        guard case .nothing = receiving else { return body?.hasRoom ?? true }
        // A head that has arrived in part.
        if phase == .idle || phase == .head, queue.isEmpty, !isResumeScheduled { return true }
        // Reading goes on during a response, to notice when the client leaves; requests sent ahead wait in the kernel.
        return input.isEmpty && !host.isCrowded
    }

    /// Continues in a later turn, so that other connections get theirs.
    func resumeLater() {
        if isResumeScheduled { return }
        isResumeScheduled = true
        let (worker, id) = (host.worker, id)
        host.loop.enqueue { worker.assumeIsolated { $0.resume(id) } }
    }

    /// Runs when the client has ended its side, or the connection broke.
    private func ended() {
        switch phase {
        case .idle, .head, .discarding:
            if queue.isEmpty { close() } else { finish(.close) }
        case .deferred, .handling, .responded, .lingering: close()
        case .closed: break
        }
    }

    /// Discards input until the client ends, or the limit is reached.
    private func linger() {
        switch SocketCall.receive(descriptor, host.readMemory, ConnectionHost.readCapacity) {
        case .done(0): close()
        case .done(let count):
            lingered += count
            if lingered > Self.lingerLimit { close() }
        case .failed(EAGAIN): break
        case .failed: close()
        }
    }

    private static let lingerLimit = 64 << 20
}
