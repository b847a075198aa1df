import Testing

@testable import Proxy

@Suite struct CircuitTests {
    private static let second: Int64 = 1_000_000

    /// A circuit that has just opened, at second 10.
    private func open() -> Circuit {
        var circuit = Circuit()
        _ = circuit.handle(.noResponse(isTimeout: true, since: 0), at: 10 * Self.second, jitter: 0)
        return circuit
    }

    @Test func `three failures in a row, or one timeout, open the circuit`() {
        var circuit = Circuit()
        for _ in 1...2 {
            #expect(circuit.handle(.noResponse(isTimeout: false, since: 5), at: 10, jitter: 0) == [])
        }
        #expect(circuit.state == .closed)
        #expect(circuit.countTrial(at: 10, jitter: 0) == true)
        let actions = circuit.handle(.noResponse(isTimeout: false, since: 5), at: 10, jitter: 0)
        #expect(actions == [.closeConnections, .wait(500_000)])
        #expect(circuit.state == .open)
        #expect(circuit.countTrial(at: 11, jitter: 0) == false)
        #expect(open().state == .open)
    }

    @Test func `a response to any request resets the count of failures, so that the circuit stays closed`() {
        var circuit = Circuit()
        for moment in 1...100 as ClosedRange<Int64> {
            _ = circuit.handle(.noResponse(isTimeout: false, since: 3 * moment), at: 3 * moment + 1, jitter: 0)
            if moment.isMultiple(of: 2) { _ = circuit.handle(.response, at: 3 * moment + 2, jitter: 0) }
            #expect(circuit.state == .closed)
        }
        // A slow path does not close the way for the others, which get their responses.
        _ = circuit.handle(.response, at: 20 * Self.second, jitter: 0)
        #expect(circuit.handle(.noResponse(isTimeout: true, since: 0), at: 30 * Self.second, jitter: 0) == [])
        #expect(circuit.state == .closed)
    }

    /// A circuit that is slow, at second 10: three clients have waited two seconds each.
    private func slow() -> Circuit {
        var circuit = Circuit()
        for start in [4, 6, 8] as [Int64] {
            _ = circuit.handle(.lostPatience(since: start * Self.second), at: (start + 2) * Self.second, jitter: 0)
        }
        return circuit
    }

    @Test func `a circuit that is slow for three clients in a row lets all requests pass until a timeout opens it`() {
        var circuit = slow()
        #expect(circuit.state == .slow)
        #expect(
            circuit.countTrial(at: 10 * Self.second, jitter: 0) && circuit.countTrial(at: 10 * Self.second, jitter: 0)
        )
        #expect(circuit.handle(.probeIsDue, at: 11 * Self.second, jitter: 0) == [.wait(500_000)])
        _ = circuit.handle(.noResponse(isTimeout: true, since: 4 * Self.second), at: 34 * Self.second, jitter: 0)
        #expect(circuit.state == .open)
        circuit = slow()
        #expect(circuit.handle(.response, at: 11 * Self.second, jitter: 0) == [])
        #expect(circuit.state == .closed)
    }

    @Test func `clients who wait at once, for a moment, or while others get responses do not make a circuit slow`() {
        var circuit = Circuit()
        for _ in 0..<10 { _ = circuit.handle(.lostPatience(since: 0), at: 2 * Self.second, jitter: 0) }
        #expect(circuit.state == .closed)
        circuit = Circuit()
        for moment in 0..<10 as Range<Int64> {
            _ = circuit.handle(.lostPatience(since: moment), at: moment + 1, jitter: 0)
        }
        #expect(circuit.state == .closed)
        circuit = Circuit()
        for start in 0..<10 as Range<Int64> {
            _ = circuit.handle(.response, at: (2 * start + 1) * Self.second, jitter: 0)
            let end = (2 * start + 2) * Self.second
            _ = circuit.handle(.lostPatience(since: end - 2 * Self.second), at: end, jitter: 0)
        }
        #expect(circuit.state == .closed)
    }

    @Test func `an open circuit probes the upstream once or twice a second`() {
        for jitter in [0, 0.3, 0.999] {
            var circuit = open()
            var now = 10 * Self.second
            for _ in 0..<100 {
                let actions = circuit.handle(.probeIsDue, at: now, jitter: jitter)
                guard case .wait(let pause) = actions.last else {
                    Issue.record("\(actions)")
                    return
                }
                #expect(actions.first == .probe)
                #expect(500_000...1_000_000 ~= pause)
                now += pause
                #expect(circuit.holds(at: now) && circuit.nextAttempt == now)
                #expect(circuit.handle(.probed(isConnected: false), at: now, jitter: jitter) == [])
            }
            #expect(circuit.state == .open)
        }
    }

    @Test func `after a probe has connected, the next request is a trial, and its response closes the circuit`() {
        var circuit = open()
        let now = 11 * Self.second
        #expect(circuit.handle(.probed(isConnected: true), at: now, jitter: 0.5) == [])
        #expect(circuit.state == .halfOpen)
        #expect(circuit.handle(.probeIsDue, at: now, jitter: 0.5) == [])
        #expect(circuit.countTrial(at: now, jitter: 0.5) == true)
        // The others need not wait for it.
        #expect(circuit.countTrial(at: now, jitter: 0.5) == false)
        #expect(circuit.handle(.response, at: now + 1, jitter: 0.5) == [])
        #expect(circuit.state == .closed)
        #expect(circuit.countTrial(at: now + 1, jitter: 0.5) == true)
    }

    @Test func `a server that accepts connections and never responds gets ever fewer trials`() {
        var circuit = open()
        var (now, sent, trials): (Int64, [Int64], [Int64]) = (10 * Self.second, [], [])
        // A client asks ten times a second; each trial fails after half a minute.
        while now < 310 * Self.second {
            if circuit.state == .open {
                _ = circuit.handle(.probeIsDue, at: now, jitter: 0.5)
                _ = circuit.handle(.probed(isConnected: true), at: now, jitter: 0.5)
            }
            if circuit.countTrial(at: now, jitter: 0.5) {
                sent.append(now)
                trials.append(now)
            }
            if let first = sent.first, now - first >= 30 * Self.second {
                sent.removeFirst()
                _ = circuit.handle(.noResponse(isTimeout: true, since: first), at: now, jitter: 0.5)
            }
            now += Self.second / 10
        }
        #expect(10...40 ~= trials.count, "\(trials)")
        // One is always under way, so that the response to it is seen at once.
        #expect(zip(trials, trials.dropFirst()).allSatisfy { $1 - $0 <= 16 * Self.second })
        #expect(!sent.isEmpty)
        #expect(circuit.handle(.response, at: now, jitter: 0) == [])
        #expect(circuit.state == .closed)
    }

    @Test func `after a failed probe the next trial is allowed as soon as a probe connects`() {
        var circuit = open()
        var now = 11 * Self.second
        for _ in 0..<5 {
            _ = circuit.handle(.probed(isConnected: true), at: now, jitter: 1)
            #expect(circuit.countTrial(at: now, jitter: 1) == true)
            now += 20 * Self.second
            _ = circuit.handle(.noResponse(isTimeout: true, since: now - 1), at: now, jitter: 1)
            now = circuit.nextAttempt
        }
        _ = circuit.handle(.probed(isConnected: true), at: now, jitter: 1)
        #expect(circuit.countTrial(at: now, jitter: 1) == true)
        #expect(circuit.countTrial(at: now + Self.second, jitter: 1) == false)
        _ = circuit.handle(.noResponse(isTimeout: false, since: now), at: now + 1, jitter: 1)
        _ = circuit.handle(.probed(isConnected: false), at: now + 2, jitter: 1)
        _ = circuit.handle(.probed(isConnected: true), at: now + 3, jitter: 1)
        #expect(circuit.countTrial(at: now + 3, jitter: 1) == true)
    }

    @Test func `a flapping network leaves no circuit open for good`() {
        var circuit = Circuit()
        var served = 0
        // It is there in every other second; a client asks ten times a second.
        for tick in 0..<6_000 as Range<Int64> {
            let (now, isThere) = (tick * Self.second / 10, (tick / 10).isMultiple(of: 2))
            if circuit.state == .open, now >= circuit.nextAttempt {
                _ = circuit.handle(.probeIsDue, at: now, jitter: 0.5)
                _ = circuit.handle(.probed(isConnected: isThere), at: now, jitter: 0.5)
            }
            guard circuit.countTrial(at: now, jitter: 0.5) else { continue }
            if isThere { served += 1 }
            let event = isThere ? Circuit.Event.response : .noResponse(isTimeout: false, since: now)
            _ = circuit.handle(event, at: now + 1, jitter: 0.5)
        }
        // Of three thousand requests while it is there, those of the first moments are held back.
        #expect(served > 600, "\(served)")
    }
}
