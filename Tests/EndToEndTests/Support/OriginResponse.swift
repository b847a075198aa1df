import TestSupport
import Testing

/// What an ``Origin`` does with one request: bytes, waits and endings, in order.
struct OriginResponse: Sendable {
    enum Step: Sendable {
        case send([UInt8])
        /// Waits until the test opens the gate.
        case wait(Gate)
        case pause(Duration)
        /// Runs something, between two pieces of the response.
        case run(@Sendable () -> Void)
        /// Ends the connection in an orderly way.
        case close
        /// Ends the connection with a TCP reset.
        case reset
        /// Sends this again and again, as long as the peer takes it.
        case flood([UInt8], times: Int)
    }

    var steps: [Step]

    // MARK: Whole answers

    /// A response with a length; the body is left out where the request is a HEAD.
    static func body(
        _ body: [UInt8],
        _ fields: FieldLines = [:],
        status: Int = 200,
        reason: String = "Fine"
    ) -> OriginResponse {
        let length: FieldLines = fields.contains("Content-Length") ? [:] : ["Content-Length": "\(body.count)"]
        let hasBody = status != 204 && status != 304
        return OriginResponse(steps: [
            .send(head(status, reason, hasBody ? fields + length : fields)), .send(hasBody ? body : []),
        ])
    }

    static func text(_ text: String, _ fields: FieldLines = [:], status: Int = 200) -> OriginResponse {
        body(Array(text.utf8), fields, status: status)
    }

    /// A JSON response.
    static func json(_ text: String, _ fields: FieldLines = [:], status: Int = 200) -> OriginResponse {
        let type: FieldLines = fields.contains("Content-Type") ? [:] : ["Content-Type": "application/json"]
        return body(Array(text.utf8), type + fields, status: status)
    }

    /// A response without a body.
    static func empty(_ status: Int, _ fields: FieldLines = [:]) -> OriginResponse { body([], fields, status: status) }

    static func notModified(_ fields: FieldLines = [:]) -> OriginResponse { empty(304, fields) }

    /// A chunked response, one chunk per element, with trailers.
    static func chunked(
        _ chunks: [[UInt8]],
        _ fields: FieldLines = [:],
        trailers: FieldLines = [:],
        status: Int = 200
    ) -> OriginResponse {
        var steps: [Step] = [.send(head(status, "Fine", fields + ["Transfer-Encoding": "chunked"]))]
        for chunk in chunks where !chunk.isEmpty { steps.append(.send(framed(chunk))) }
        steps.append(.send(Array("0\r\n\(trailers.text)\r\n".utf8)))
        return OriginResponse(steps: steps)
    }

    /// Exactly these bytes, then the end of the connection.
    static func raw(_ bytes: [UInt8], thenReset: Bool = false) -> OriginResponse {
        OriginResponse(steps: [.send(bytes), thenReset ? .reset : .close])
    }

    static func raw(_ text: String, thenReset: Bool = false) -> OriginResponse {
        raw(Array(text.utf8), thenReset: thenReset)
    }

    /// Says nothing until the gate opens, then ends the connection.
    static func hang(_ gate: Gate) -> OriginResponse { OriginResponse(steps: [.wait(gate), .close]) }

    /// Resets the connection.
    static var reset: OriginResponse { OriginResponse(steps: [.reset]) }

    // MARK: Made of others

    /// This response, once the gate is open.
    func after(_ gate: Gate) -> OriginResponse { OriginResponse(steps: [.wait(gate)] + steps) }

    /// This response, some time later.
    func after(_ duration: Duration) -> OriginResponse { OriginResponse(steps: [.pause(duration)] + steps) }

    /// This response's first bytes now and the rest once the gate is open.
    func split(at count: Int, by gate: Gate) -> OriginResponse {
        let bytes = steps.flatMap { step -> [UInt8] in if case .send(let bytes) = step { bytes } else { [] } }
        return OriginResponse(steps: [
            .send(Array(bytes.prefix(count))), .wait(gate), .send(Array(bytes.dropFirst(count))),
        ])
    }

    /// This response but for its last bytes now, and those once the gate is open.
    func split(before last: Int, by gate: Gate) -> OriginResponse {
        let count = steps.reduce(0) { sum, step in if case .send(let bytes) = step { sum + bytes.count } else { sum } }
        return split(at: count - last, by: gate)
    }

    static func head(_ status: Int, _ reason: String, _ fields: FieldLines) -> [UInt8] {
        Array("HTTP/1.1 \(status) \(reason)\r\n\(fields.text)\r\n".utf8)
    }

    static func framed(_ chunk: [UInt8]) -> [UInt8] {
        Array("\(String(chunk.count, radix: 16))\r\n".utf8) + chunk + [13, 10]
    }

    // MARK: Doing it

    /// Sends the response; false when the connection ends with it.
    func write(to socket: Socket, for request: Origin.Request) throws(SocketError) -> Bool {
        var isHeadSent = false
        for step in steps {
            switch step {
            case .send(let bytes):
                if request.method == "HEAD" && isHeadSent { continue }
                try socket.send(bytes)
                isHeadSent = true
            case .wait(let gate): gate.wait()
            case .pause(let duration): pause(duration)
            case .run(let body): body()
            case .flood(let bytes, let times): for _ in 0..<times { try socket.send(bytes) }
            case .close:
                socket.shutDown()
                return false
            case .reset:
                socket.resetOnClose()
                return false
            }
        }
        return true
    }
}

extension OriginResponse: CustomTestStringConvertible {
    /// The first line of what is sent and how much there is; the bytes themselves would fill the log.
    var testDescription: String {
        let bytes = steps.flatMap { step -> [UInt8] in if case .send(let bytes) = step { bytes } else { [] } }
        return "\(String(decoding: bytes.prefix { $0 != 13 }, as: UTF8.self)) … (\(bytes.count) bytes)"
    }
}
