/// Events of libcurl, which is on the stack.
extension Transfer: CurlTransfer.Owner {
    var curlAwaitsFirstByte: Bool { state.phase == .sent && !state.hasFirstByte && !request.isSecure }

    func curlFirstByteArrived() {
        state.firstByteArrived()
    }

    var curlAwaitsHead: Bool { state.phase == .sent }

    func curlLostConnection(_ fate: RequestFate) {
        // Of the streams of an HTTP/2 connection libcurl knows which were not looked at (GOAWAY), and repeats only those.
        if !client.speaksHTTP2(to: request.origin) { state.lostConnection(fate) }
    }

    func curlWillSend() -> Bool {
        guard
            !state.isCancelled,
            state.willSend(
                isIdempotent: request.isIdempotent,
                isMultiplexed: client.speaksHTTP2(to: request.origin),
                hasAnswer: !head.isEmpty,
                now: client.loop.now
            )
        else { return false }
        watch()
        return true
    }

    func curlReceived(headLine: UnsafeRawBufferPointer) -> Bool {
        guard !state.isCancelled else { return false }
        switch head.received(headLine) {
        case .incomplete:
            break
        case .informational(let status, let fields):
            state.progressed(now: client.loop.now)
            if status != 100 { delegate?.informational(status: status, fields: fields) }
        case .final(let answer):
            state.headArrived(now: client.loop.now)
            dropsBody = answer.status == 205
            // A coding that nobody here knows is the client's business, where libcurl would refuse to pass the answer on; and
            // one that an interim answer named is none of this one.
            if answer.decodedFrom == nil { curl?.keepContentCodings() }
            client.answered(request, version: answer.version)
            watch()
            if answer.decodedFrom != nil, request.method == "GET", !answer.isEventStream {
                withheldHead = answer
            } else {
                var answer = answer
                answer.isGarbled = request.decodes && !decodes
                delegate?.received(head: answer)
            }
        case .failed(let error):
            state.stop(because: error)
            return false
        }
        return !state.isCancelled
    }

    func curlReceived(body bytes: UnsafeRawBufferPointer) -> CurlTransfer.Write {
        guard !state.isCancelled, let delegate else { return .abort }
        if bytes.isEmpty { return .taken }
        if dropsBody {
            state.progressed(now: client.loop.now)
            return .taken
        }
        passOnHead()
        let flow = delegate.received(body: bytes)
        if state.isCancelled { return .abort }
        switch flow {
        case .proceed:
            state.received(bytes: bytes.count, now: client.loop.now)
            return .taken
        case .pause:
            state.receivingPaused()
            return .pause
        }
    }

    func passOnHead() {
        guard let head = withheldHead else { return }
        withheldHead = nil
        delegate?.received(head: head)
    }

    func curlWantsBody(_ room: UnsafeMutableRawBufferPointer) -> CurlTransfer.Read {
        guard !state.isCancelled, body != nil else { return .abort }
        let reference = LoopReference(self, on: client.loop)
        let step = body?.fill(room, available: { reference.enqueue { $0.bodyAvailable() } }) ?? .end
        switch step {
        case .bytes(let count):
            state.progressed(now: client.loop.now)
            return .bytes(count)
        case .end:
            state.progressed(now: client.loop.now)
            return .end
        case .pending:
            state.sendingPaused()
            return .pause
        case .failed(let reason):
            state.stop(because: .requestBodyFailed(reason))
            return .abort
        }
    }

    func curlRewinds() -> Bool {
        body?.rewind() ?? true
    }

    /// There is more of the request's body than when libcurl last asked.
    private func bodyAvailable() {
        letGo(receiving: false, sending: true)
    }
}
