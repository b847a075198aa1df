import DaemonTestSupport

@testable import CachePolicy
@testable import HTTPSemantics
@testable import Upstream

/// The lines of a response's head: what is passed on is valid, and its policy can be stored and read again.
enum ResponseFuzzing: FuzzTarget {
    static let seeds: [[UInt8]] = [
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nETag: \"a\"\r\n"
            + "Cache-Control: max-age=60, stale-if-error=5\r\nVary: Accept, X-A\r\n\r\n",
        "HTTP/1.1 103 Early\r\nLink: <a>\r\n\r\nHTTP/1.1 206 P\r\nContent-Range: bytes 0-1/2\r\n"
            + "Transfer-Encoding: chunked\r\nConnection: x\r\nX: y\r\n\r\nTrailer: 1\r\n\r\n",
        "HTTP/2 304 \r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nAge: 5\r\nExpires: 0\r\nContent-Encoding: gzip\r\n"
            + "Cache-Control: no-transform\r\nLast-Modified: Sunday, 06-Nov-94 08:49:37 GMT\r\n\r\n",
        "HTTP/1.0 205\nContent-Length: 1, 1\n folded\nContent-Encoding: br\n\n",
    ].map { [1] + Array($0.utf8) }

    static func run(_ input: ArraySlice<UInt8>) {
        var reader = InputReader(input)
        let flags = reader.byte()
        var head = ResponseHeadReader(
            limit: 4096,
            decodes: flags & 1 != 0,
            clientCodings: flags & 2 != 0 ? Array("gzip, br;q=0".utf8) : nil
        )
        var rest = reader.rest
        while !rest.isEmpty {
            let end = rest.firstIndex(of: 0x0A).map { $0 + 1 } ?? rest.endIndex
            let line = Array(rest[..<end])
            rest = rest[end...]
            switch line.withUnsafeBytes({ head.received($0) }) {
            case .incomplete: continue
            case .failed: return
            case .informational(let status, let fields):
                require((100...199).contains(status) && status != 101, "an interim response of \(status)")
                fields.lines.forEach(requireValid)
            case .final(let final):
                check(final)
                if let garbled = head.garbled { check(garbled) }
            }
        }
    }

    private static func check(_ head: UpstreamHead) {
        require((200...999).contains(head.status), "a final response of \(head.status)")
        require(!head.reason.contains { [0, 0x0A, 0x0D].contains($0) }, "the reason \(head.reason)")
        head.fields.lines.forEach(requireValid)
        require(head.fields.all("content-length").count <= 1, "several lengths")
        let policy = ResponsePolicy(
            request: Request(method: "GET", target: "/", fields: head.fields),
            status: head.status,
            fields: head.fields,
            times: ExchangeTimes(request: exampleDate, response: exampleDate),
            settings: CachePolicySettings()
        )
        require(StoredPolicy(bytes: policy.stored.bytes) == policy.stored, "the policy changes when it is stored")
        require(policy.stored.lifetime >= 0 && policy.stored.initialAge >= 0, "a negative age")
        _ = policy.stored.reuse(at: exampleDate + 5, for: RequestDirectives(fields: head.fields))
        if let selection = VarySelection(policy.vary, request: head.fields) {
            require(selection.matches(head.fields), "the request does not select its own response")
            require(VarySelection(bytes: selection.bytes) == selection, "the selection changes when it is stored")
        }
    }
}
