import EventLoops

/// Events of libcurl, which is on the stack.
extension Transfer: CurlTransfer.Owner {
    func curlWillSend() -> Bool {
        guard
            !state.isCancelled,
            state.willSend(isSafe: request.isSafe, hasAnswer: !head.isEmpty, now: client.loop.now)
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
            if request.method != "HEAD" {
                decoder = answer.decodedFrom.flatMap(ContentDecoder.Coding.init(named:)).map(ContentDecoder.init)
            }
            client.answered(request, version: answer.version)
            watch()
            if decoder != nil, !answer.isEventStream {
                withheldHead = answer
            } else {
                delegate?.received(head: answer)
            }
        case .failed(let error):
            state.stop(because: error)
            return false
        }
        return !state.isCancelled
    }

    func curlReceived(body bytes: UnsafeRawBufferPointer) -> CurlTransfer.Write {
        guard !state.isCancelled, delegate != nil else { return .abort }
        if bytes.isEmpty { return .taken }
        if dropsBody {
            state.progressed(now: client.loop.now)
            return .taken
        }
        guard let decoder else {
            let rest = passOnUntaken()
            return rest == .taken ? passOn(bytes) : rest
        }
        return decode(bytes, decoder)
    }

    /// Decodes a piece and passes it on; where the delegate pauses, it goes on with the same piece later.
    private func decode(_ bytes: UnsafeRawBufferPointer, _ decoder: ContentDecoder) -> CurlTransfer.Write {
        var input = UnsafeRawBufferPointer(rebasing: bytes[decodedBytes...])
        while true {
            let rest = passOnUntaken()
            guard rest == .taken else { return rest }
            let room = client.decodingRoom
            let count: Int
            do throws(ContentDecoder.Malformed) {
                count = try decoder.decode(&input, into: room)
            } catch {
                return broken(bytes, because: error.reason)
            }
            decodedBytes = bytes.count - input.count
            guard count > 0 else {
                decodedBytes = 0
                guard withheldHead != nil else { return .taken }
                // In case it turns out not to be in its coding.
                guard withheldBytes.count + bytes.count <= Self.withheldLimit else {
                    return broken(bytes, because: "nothing comes of it")
                }
                withheldBytes += bytes
                return .taken
            }
            passOnHead()
            let piece = UnsafeRawBufferPointer(rebasing: room[..<count])
            let write = passOn(piece)
            if write == .pause { untaken = Array(piece) }
            if write != .taken { return write }
        }
    }

    /// The body is not in its coding: it goes on as it came if nothing of it has been passed on, and fails if some has.
    private func broken(_ bytes: UnsafeRawBufferPointer, because reason: String) -> CurlTransfer.Write {
        guard withheldHead != nil, let garbled = head.garbled else {
            state.stop(because: .decoding(reason))
            return .abort
        }
        withheldHead = nil
        decoder = nil
        decodedBytes = 0
        untaken = withheldBytes
        withheldBytes = []
        delegate?.received(head: garbled)
        let rest = passOnUntaken()
        return rest == .taken && !bytes.isEmpty ? passOn(bytes) : rest
    }

    /// What may be withheld of a body of which nothing could be decoded yet.
    private static let withheldLimit = 256 << 10

    /// Offers the delegate once more what it did not take.
    private func passOnUntaken() -> CurlTransfer.Write {
        guard !untaken.isEmpty else { return .taken }
        let write = untaken.withUnsafeBytes { passOn($0) }
        if write == .taken { untaken = [] }
        return write
    }

    private func passOn(_ bytes: UnsafeRawBufferPointer) -> CurlTransfer.Write {
        // The head before it may have been the reason to give up.
        guard let delegate, !state.isCancelled else { return .abort }
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
        withheldBytes = []
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
        body.map { $0.taken == 0 } ?? true
    }

    /// There is more of the request's body than when libcurl last asked.
    private func bodyAvailable() {
        letGo(receiving: false, sending: true)
    }
}
