import HTTPServer
package import Upstream

extension RequestBody: UpstreamBody {
    package func take(max: Int) -> UpstreamBodyPart {
        let portion: Chunk = take(max: max)
        switch portion {
        case .bytes(let bytes): return .bytes(bytes)
        case .pending: return .pending
        case .end: return .end
        case .failed(.disconnected): return .failed("the client left")
        case .failed(.refused): return .failed("the client sent it malformed, too long or too slowly")
        case .failed(.overLimit): return .failed("it is too long")
        }
    }
}
