/// A client's request body is what goes upstream.
extension RequestBody: UpstreamBody {
    func take(max: Int) -> UpstreamBodyPart {
        switch take(max: max) as Portion {
        case .bytes(let bytes): .bytes(bytes)
        case .pending: .pending
        case .end: .end
        case .failed(let error): .failed("\(error)")
        }
    }
}
