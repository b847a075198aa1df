/// What concerns one connection only goes no further (RFC 9110 §7.6.1).
extension Fields {
    /// Fields that are hop-by-hop whether or not `Connection` names them, in lower case.
    private static let hopByHop: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
        // Of the next proxy alone (RFC 9111 §3.1).
        "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
    ]

    /// Fields that stay though `Connection` names them.
    ///
    /// `Cache-Control` is never a connection option (RFC 9110 §7.6.1), and dropping either at a stranger's word would
    /// change what may be stored or where a request goes.
    private static let protected: Set<String> = ["cache-control", "host"]

    /// The fields without hop-by-hop ones and those that `Connection` names.
    package func withoutHopByHop() -> Fields {
        var named: Set<String> = []
        for member in all("connection").flatMap({ FieldSyntax.members($0) }) {
            named.insert(String(decoding: FieldSyntax.lowercased(member), as: UTF8.self))
        }
        let dropped = Self.hopByHop.union(named.subtracting(Self.protected))
        return Fields(lines.filter { !dropped.contains($0.lowercasedName) })
    }
}
