/// The fields that concern one connection only and go no further (RFC 9110 §7.6.1).
enum HopByHop {
    /// Lower-case names of the fields that are hop-by-hop by definition.
    static let names: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade",
        // Of the next proxy alone (RFC 9111 §3.1).
        "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
    ]

    /// The lower-case names of `names` and of all that the message's `Connection` lists.
    static func names(in fields: Fields) -> Set<String> {
        var all = names
        for member in fields.all("connection").flatMap({ FieldSyntax.members($0) }) {
            all.insert(String(decoding: FieldSyntax.lowercased(member), as: UTF8.self))
        }
        return all
    }
}
