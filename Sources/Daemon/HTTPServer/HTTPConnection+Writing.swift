import EventLoops
import Glibc
import HTTPSemantics

/// The way out: answers made on the spot, and what the socket would not take.
extension HTTPConnection {
    /// Body parts up to this size are copied behind the head and sent with it.
    private static let copyLimit = 16 * 1024

    /// Puts a body behind what is in the shared output, copied if it is small and sent at once if not.
    func send(_ array: [UInt8], part: UnsafeRawBufferPointer, _ offset: Int) {
        if part.count <= Self.copyLimit {
            host.output.append(part)
            return
        }
        let end = offset + part.count
        let headCount = host.output.count
        guard queue.isEmpty else {
            flush()
            queue.append(array, from: offset, to: end)
            return
        }
        let outcome = withUnsafeTemporaryAllocation(of: iovec.self, capacity: 2) { vectors in
            let head = host.output.bytes
            vectors[0] = iovec(iov_base: UnsafeMutableRawPointer(mutating: head.baseAddress!), iov_len: head.count)
            vectors[1] = iovec(iov_base: UnsafeMutableRawPointer(mutating: part.baseAddress!), iov_len: part.count)
            return SocketCall.send(descriptor, vectors)
        }
        var sent = 0
        if case .done(let count) = outcome {
            sent = count
            host.meter?.sent(bytes: count)
        }
        if sent < headCount { queue.append(Array(host.output.bytes[sent...])) }
        host.output.clear()
        queue.append(array, from: offset + max(0, sent - headCount), to: end)
        // An error shows again, and is dealt with, at the next write.
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

    /// The socket takes more.
    func writable() {
        sendQueue()
        guard phase != .closed, queue.isEmpty else { return }
        if phase == .idle || phase == .head {
            deadline = host.loop.now + (phase == .idle ? host.limits.idle : host.limits.headTimeout).nanoseconds
            consumeInput()
        }
        settleReading()
    }

    /// Offers the socket what is queued.
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
        (channel ?? draining)?.noteBacklog(queue.byteCount, consumed: 0)
        if queue.isEmpty {
            draining = nil
            stopWriting()
            if ending != .none { end() } else if phase == .answering { deadline = answeringDeadline }
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
            // A cycle, broken by `close`, as for reading.
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
