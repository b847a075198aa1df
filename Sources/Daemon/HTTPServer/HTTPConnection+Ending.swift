import EventLoops
import Glibc
import HTTPSemantics

/// After a response: the next request, or the end.
extension HTTPConnection {
    /// The response is on its way as a whole: goes on to the next request, or to the end.
    func answerIsComplete() {
        bodyEnd = nil
        guard phase == .answered else { return }
        if case .nothing = receiving {
            body = nil
            if closesAfterAnswer {
                // A client that asked for the end sends nothing more; others might have.
                finish(keepsAlive && !input.isEmpty ? .linger : .close)
            } else {
                becomeIdle()
            }
            return
        }
        body?.fail(.disconnected)
        body = nil
        discarded = 0
        if closesAfterAnswer {
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

    /// Refuses a request: answers if nothing was answered yet, and ends the connection.
    func refuse(_ fault: RequestFault) {
        body?.fail(.refused(fault))
        body = nil
        receiving = .nothing
        let hasBegun = bodyEnd != nil || phase == .discarding
        if let channel {
            self.channel = nil
            if !hasBegun { channel.answeredByConnection(fault.problem) }
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
        // With answers still collected this is inside of `consume`, which sends them and then comes to the end.
        if queue.isEmpty, host.output.isEmpty { end() }
    }

    /// Does what was to be done when everything is sent.
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

    /// Goes on after a break: ends, or reads what waits.
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

    /// The server comes to its end: closes if nothing is going on.
    func drain() {
        if phase == .idle, input.isEmpty { finish(.close) }
    }

    /// Cuts a response that cannot be completed: with a reset, once the client has what was written of it (law 8).
    func breakOff() {
        guard phase == .answering else { return abort() }
        body?.fail(.disconnected)
        body = nil
        channel?.finished()
        draining = channel
        channel = nil
        phase = .answered
        // What the client still sends of its request is of no use to anybody.
        ending = .reset
    }

    /// Resets once nothing is under way any more: a reset discards what the kernel has not delivered.
    private func resetWhenAcknowledged() {
        guard SocketCall.unacknowledged(descriptor) > 0 else { return abort() }
        if resetTimer == nil {
            deadline = host.loop.now + host.limits.writeStall.nanoseconds
            // A cycle, broken by `close`.
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

    /// Closes the socket and tells everybody who waits.
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

    /// The deadline is over.
    func expired() {
        if !queue.isEmpty || ending == .reset { return abort() }
        switch phase {
        case .idle, .lingering: close()
        case .head: refuse(.headTimeout)
        case .answering: refuse(.bodyTimeout)
        case .discarding: finish(.linger)
        case .handling, .answered, .closed: break
        }
    }
}
