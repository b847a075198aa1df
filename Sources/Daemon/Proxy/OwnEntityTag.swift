/// The entity tags of answers that are Larder's own work: composed ones, and those whose links were rewritten.
///
/// Strong, since equal tags mean equal bytes; they begin with `larder-`, by which they are known when they come back, and
/// never go upstream.
enum OwnEntityTag {
    /// The tag of a body as served at one address; nil where the address is not in it.
    static func make(body: [UInt8], base: LinkBase?) -> String {
        let code = Crypto.authenticationCode(key: base?.bytes ?? [], message: body)
        let digits = code.prefix(16).map { byte in
            let text = String(byte, radix: 16)
            return text.count == 1 ? "0" + text : text
        }
        return "\"larder-\(digits.joined())\""
    }
}
