import EventLoops
import Glibc
import HTTPSemantics

/// The end of an exchange: the next request, or the end of the connection.
extension HTTPConnection {
    /// Runs when the response is queued as a whole: goes on to the next request, or ends the connection.
    func responseIsComplete() {
        bodyEnd = nil
        guard phase == .responded else { return }
        if case .nothing = receiving {
            body = nil
            if closesAfterResponse {
                // A client that asked for the end sends nothing more; others might still be sending.
                finish(keepsAlive && !input.isEmpty ? .linger : .close)
            } else {
                becomeIdle()
            }
            return
        }
        body?.fail(.disconnected)
        body = nil
        discarded = 0
        if closesAfterResponse {
            finish(.linger)
        } else if case .length(let rest) = receiving, rest > Self.discardLimit {
            finish(.linger)
        } else {
            phase = .discarding
            deadline = host.loop.now + host.limits.bodyIdle.nanoseconds
        }
    }

    func becomeIdle() {
        phase = .idle
        deadline = host.loop.now + host.idleNanoseconds
        if host.isDraining, input.isEmpty { finish(.close) }
    }

    /// Refuses a request: responds if no response has begun, and ends the connection.
    func refuse(_ fault: RequestFault) {
        body?.fail(.refused(fault))
        body = nil
        receiving = .nothing
        let hasBegun = bodyEnd != nil || phase == .discarding
        if let channel {
            self.channel = nil
            if !hasBegun { channel.respondedByConnection(fault.problem) }
            channel.disconnected()
        }
        if phase == .discarding { return finish(.linger) }
        if hasBegun { return abort() }
        let problem = fault.problem
        let head = ReplyHead(
            status: problem.status,
            reason: nil,
            fields: Fields([Field("Content-Type", ProblemDocument.mediaType)]),
            framing: .length(problem.bytes.count),
            isHead: false,
            isHTTP11: true,
            closes: true,
            dateLine: host.dateLine
        )
        host.output.append(head.bytes)
        host.output.append(problem.bytes)
        flush()
        finish(.linger)
    }

    // MARK: The end

    /// Ends the connection when everything is sent.
    func finish(_ ending: Ending) {
        guard phase != .closed, phase != .lingering else { return }
        self.ending = ending
        // Responses still in `output` mean that `consume` is running: it sends them and then calls `end`.
        if queue.isEmpty, host.output.isEmpty { end() }
    }

    /// Carries out `ending`, once everything is sent.
    func end() {
        switch ending {
        case .none: break
        case .close: close()
        case .reset: resetWhenAcknowledged()
        case .linger:
            phase = .lingering
            ending = .none
            SocketCall.endSending(descriptor)
            deadline = host.loop.now + host.limits.linger.nanoseconds
            updateReading()
        }
    }

    /// Continues in a later turn: ends the connection, or consumes the waiting input.
    func resume() {
        isResumeScheduled = false
        guard phase != .closed else { return }
        if ending != .none {
            if queue.isEmpty { end() }
            return
        }
        if queue.isEmpty { consumeInput() }
        updateReading()
    }

    /// Closes the connection if it is idle, because the server is shutting down.
    func drain() {
        if phase == .idle, input.isEmpty { finish(.close) }
    }

    /// Cuts a response that cannot be completed: resets once the client has received all bytes written so far (law 8).
    func breakOff() {
        guard phase == .deferred else { return abort() }
        body?.fail(.disconnected)
        body = nil
        channel?.finished()
        draining = channel
        channel = nil
        phase = .responded
        // The rest of the client's request is no longer needed.
        ending = .reset
    }

    /// Resets once all bytes are acknowledged, because a reset discards undelivered bytes.
    private func resetWhenAcknowledged() {
        guard SocketCall.unacknowledged(descriptor) > 0 else { return abort() }
        if resetTimer == nil {
            deadline = host.loop.now + host.limits.writeStall.nanoseconds
            // This cycle is broken by `close`.
            resetTimer = EventTimer(loop: host.loop) { self.resetWhenAcknowledged() }
        }
        resetTimer?.schedule(after: .milliseconds(20))
    }

    /// Cuts the connection with a reset.
    func abort() {
        guard phase != .closed else { return }
        SocketCall.resetOnClose(descriptor)
        close()
    }

    /// Closes the socket and notifies the body and the reply channels.
    func close() {
        guard phase != .closed else { return }
        phase = .closed
        readWatch = nil
        writeWatch = nil
        resetTimer = nil
        Glibc.close(descriptor)
        descriptor = -1
        deadline = .max
        host.connections[id] = nil
        host.population.left()
        host.meter?.connectionClosed()
        body?.fail(.disconnected)
        body = nil
        let channels = [channel, draining]
        (channel, draining) = (nil, nil)
        for channel in channels { channel?.disconnected() }
        host.worker.assumeIsolated { $0.connectionClosed() }
    }

    /// Runs when the deadline has passed.
    func expired() {
        if !queue.isEmpty || ending == .reset { return abort() }
        switch phase {
        case .idle, .lingering: close()
        case .head: refuse(.headTimeout)
        case .deferred: refuse(.bodyTimeout)
        case .discarding: finish(.linger)
        case .handling, .responded, .closed: break
        }
    }
}
