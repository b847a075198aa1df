/// A request as a value: what leaves the worker when it cannot be answered at once.
struct Request: Sendable {
    var method: String
    /// The target in origin form: path and query; `*` for `OPTIONS *`.
    var target: String
    var form: TargetForm
    /// The authority asked for: that of an absolute-form target, else the Host field's.
    var authority: String?
    var isHTTP11: Bool
    /// All field lines as they arrived, hop-by-hop ones included.
    var fields: Fields
    /// Nil when no body follows.
    var body: RequestBody?
    /// Which connection it came on; unique within the process.
    var connectionID: UInt64
    /// The address of the client without its port, or the user at the other end of a Unix socket; empty where nobody asked.
    var peer: [UInt8] = []

    var isAbsoluteForm: Bool { form == .absolute }
}

/// A request and the means to answer it, both good for any thread.
struct Exchange: Sendable {
    let request: Request
    let reply: Reply
}
