/// The entity tags of responses that are Larder's own work: composed ones, and those whose links were rewritten.
///
/// Strong, since equal tags mean equal bytes; they begin with `larder-`, by which they are known when they come back, and
/// never go upstream.
enum OwnEntityTag {
    /// The tag of a body as served in one view and at one address; `base` is nil where the address is not in it.
    static func make(body: [UInt8], view: View, base: ClientAuthority?) -> String {
        // A line break is in no address. Bytes that are as received need no tag of this kind.
        let marked = view == .mapped ? Array("mapped\n".utf8) : []
        let code = Crypto.authenticationCode(key: marked + (base?.bytes ?? []), message: body)
        let digits = code.prefix(16).map { byte in
            let text = String(byte, radix: 16)
            return text.count == 1 ? "0" + text : text
        }
        return "\"larder-\(digits.joined())\""
    }
}
