package import HTTPSemantics
package import HTTPServer
package import Proxy
package import Settings

/// A request that nobody sent, read as the requests of clients are: by the same parser, guard and `Arrival`.
///
/// So that what is said of it is what would be done with it.
package struct ImaginedRequest: Sendable {
    package let request: Request
    package let arrival: Arrival

    /// - Parameters:
    ///   - fields: as `Name: value`, in the order in which they would be sent.
    ///   - limits: those of the daemon's listeners.
    package init(
        _ method: String,
        _ url: AskedURL,
        fields: [String],
        limits: HTTPLimits,
        listen: [Address]
    ) throws(ImaginedRequestError) {
        guard FieldName.complaint(method) == nil else { throw .unreadable("\"\(method)\" is no method") }
        var lines: [String] = []
        for field in fields {
            guard let colon = field.firstIndex(of: ":") else {
                throw .unreadable("\"\(field)\" is no header field; write it as Name: value")
            }
            let name = field[..<colon]
            guard FieldName.complaint(String(name)) == nil,
                !field.utf8.contains(where: { $0 == 0x0D || $0 == 0x0A || $0 == 0 })
            else { throw .unreadable("\"\(name)\" begins no header field that could be sent") }
            lines.append(field)
        }
        let namesHost = lines.contains { $0.lowercased().hasPrefix("host:") }
        if !namesHost { lines.insert("Host: \(url.authority)", at: 0) }
        var head = Array("\(method) \(url.target) HTTP/1.1\r\n".utf8)
        for line in lines { head += Array(line.utf8) + [0x0D, 0x0A] }
        head += [0x0D, 0x0A]

        let parser = RequestParser(limits: limits)
        let door = Self.door(of: url.upstream, listen)
        let outcome = head.withUnsafeMutableBufferPointer { buffer -> Result<ImaginedRequest, ImaginedRequestError> in
            guard let base = buffer.baseAddress else { return .failure(.unreadable("it is empty")) }
            switch parser.parse(base, count: buffer.count) {
            case .incomplete: return .failure(.unreadable("its head does not end"))
            case .refused(let fault): return .failure(.refused(fault.problem))
            case .complete: break
            }
            guard !parser.head.hasBody else {
                return .failure(
                    .unreadable("a body cannot be asked about; leave out Content-Length and Transfer-Encoding")
                )
            }
            if let refusal = Self.refusal(of: parser.head, by: door, namesHost: namesHost) {
                return .failure(.refused(.guarded(refusal)))
            }
            if parser.head.method == .trace { return .failure(.refused(.traceRefused)) }
            do throws(ArrivalError) {
                let arrival = try Arrival(parser.head, url.upstream, quickDigest: nil)
                return .success(ImaginedRequest(request: parser.head.owned(), arrival: arrival))
            } catch {
                return .failure(.refused(error.problem))
            }
        }
        self = try outcome.get()
    }

    private init(request: Request, arrival: Arrival) {
        self.request = request
        self.arrival = arrival
    }

    private static func door(of upstream: ProxiedUpstream, _ listen: [Address]) -> Guard {
        let addresses = upstream.settings.listen.isEmpty ? listen : upstream.settings.listen
        let listeners = addresses.map { address -> Guard.Listener in
            switch address {
            case .tcp(let host, let port): .tcp(host: host, port: port)
            case .unix: .unix
            }
        }
        return Guard(listeners: listeners, hosts: upstream.settings.hosts, cors: upstream.cors)
    }

    private static func refusal(of head: borrowing RequestHead, by door: Guard, namesHost: Bool) -> Guard.Refusal? {
        // Unless it is asked about, the address is not at issue: whoever explains need not know where clients ask.
        let facts = Guard.Facts(head, authority: namesHost ? head.authority : nil)
        if case .refused(let refusal) = door.check(facts) { return refusal }
        return nil
    }
}

/// Why there is nothing to explain: the question is none, or such a request would be refused before any look-up.
package enum ImaginedRequestError: Error {
    case unreadable(String)
    case refused(ProblemDocument)

    /// A sentence for the person who asked.
    package var description: String {
        switch self {
        case .unreadable(let reason): reason
        case .refused(let problem):
            "such a request is answered \(problem.status) before anything is looked up: \(problem.detail ?? problem.title)"
        }
    }
}
