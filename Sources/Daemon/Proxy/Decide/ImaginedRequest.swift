package import HTTPSemantics
import HTTPServer
package import Settings

extension IncomingRequest {
    /// A request that no client sent, read like those of clients, by the same parser and guard.
    ///
    /// So an explanation shows what would happen to a real request.
    ///
    /// - Parameters:
    ///   - text: a URL at Larder's own address or at the upstream's, or a path alone.
    ///   - fields: as `Name: value`, in the order in which they would be sent; `Accept: */*` is added if there is no Accept.
    ///   - withJSON: whether it has a body, of JSON if the fields name no other media type; the body itself is not read here.
    ///   - name: of the upstream, if several match the URL.
    package init(
        imagined method: String,
        _ text: String,
        fields: [String] = [],
        withJSON: Bool = false,
        of upstreams: [ProxiedUpstream],
        named name: String? = nil,
        _ settings: Configuration
    ) throws(ImaginedRequestError) {
        let named = try NamedURL(text, among: upstreams, at: settings.listen, upstream: name)
        let (upstream, target, authority) = (named.upstream, named.target, named.authority)
        guard FieldName.complaint(method) == nil else { throw .unreadable("\"\(method)\" is not a method") }
        var lines: [String] = []
        for field in fields {
            guard let colon = field.firstIndex(of: ":") else {
                throw .unreadable("\"\(field)\" is not a header field; write it as Name: value")
            }
            let name = field[..<colon]
            guard FieldName.complaint(String(name)) == nil,
                !field.utf8.contains(where: { $0 == 0x0D || $0 == 0x0A || $0 == 0 })
            else { throw .unreadable("\"\(name)\" is not the name of a header field that could be sent") }
            lines.append(field)
        }
        // Nearly every client sends one, and a response's `Vary` may ask for it.
        if !lines.contains(where: { $0.lowercased().hasPrefix("accept:") }) { lines.append("Accept: */*") }
        if withJSON, !lines.contains(where: { $0.lowercased().hasPrefix("content-type:") }) {
            lines.append("Content-Type: application/json")
        }
        let namesHost = lines.contains { $0.lowercased().hasPrefix("host:") }
        if !namesHost { lines.insert("Host: \(authority)", at: 0) }
        var head = Array("\(method) \(target) HTTP/1.1\r\n".utf8)
        for line in lines { head += Array(line.utf8) + [0x0D, 0x0A] }
        head += [0x0D, 0x0A]

        let parser = RequestParser(limits: settings.limits.http)
        let door = Self.door(of: upstream, settings.listen)
        self = try head.withUnsafeMutableBufferPointer { (buffer) throws(ImaginedRequestError) -> Self in
            guard let base = buffer.baseAddress else { throw .unreadable("it is empty") }
            switch parser.parse(base, count: buffer.count) {
            case .incomplete: throw .unreadable("its head does not end")
            case .refused(let fault): throw .refused(fault.problem)
            case .complete: break
            }
            guard !parser.head.hasBody else {
                throw .unreadable(
                    "a request with a body cannot be explained; leave out Content-Length and Transfer-Encoding"
                )
            }
            if let refusal = Self.refusal(of: parser.head, by: door, namesHost: namesHost) {
                throw .refused(.guarded(refusal))
            }
            if parser.head.method == .trace { throw .refused(.traceRefused) }
            do throws(ProblemDocument) {
                let incoming = try IncomingRequest(parser.head, upstream)
                let kind = upstream.readingPost(to: incoming) ?? .json
                return named.body.map { incoming.reading(ReadBody(digest: $0, kind)) }
                    ?? incoming
            } catch { throw .refused(error) }
        }
    }

    private static func door(of upstream: ProxiedUpstream, _ listen: [Address]) -> Guard {
        let addresses = upstream.settings.listen.isEmpty ? listen : upstream.settings.listen
        return Guard(listeners: addresses, hosts: upstream.settings.hosts, cors: upstream.cors)
    }

    private static func refusal(of head: borrowing RequestHead, by door: Guard, namesHost: Bool) -> Guard.Refusal? {
        // Without a Host field the address does not matter, so that users need not know it.
        let facts = Guard.Facts(head, authority: namesHost ? head.authority : nil)
        if case .refused(let refusal) = door.check(facts) { return refusal }
        return nil
    }
}

/// Why there is nothing to explain.
package enum ImaginedRequestError: Error, CustomStringConvertible {
    /// The request is malformed, or its URL is not clear.
    case unreadable(String)
    /// Its path is that of no upstream.
    case unserved(String)
    /// It would be refused before any look-up.
    case refused(ProblemDocument)

    package var description: String {
        switch self {
        case .unreadable(let reason), .unserved(let reason): reason
        case .refused(let problem):
            "such a request is refused with \(problem.status) before anything is looked up: \(problem.detail ?? problem.title)"
        }
    }
}
