/// An answer's fields and body as they are served at one address.
struct Rendering {
    var fields: Fields
    var body: [UInt8]
    /// Whether anything in it was written for this address.
    var dependsOnBase = false

    /// What speaks of the bytes that the upstream sent, and is no longer true of others.
    private static let spokenOfBytes = [
        "last-modified", "content-md5", "digest", "content-digest", "repr-digest", "signature", "signature-input",
    ]

    init(_ answer: Answer, upstream: Upstream, base: LinkBase) {
        fields = answer.fields
        body = answer.body
        fields.remove("content-length")
        dependsOnBase = upstream.links.rewrite(&fields, for: base)
        var isChanged = answer.form == .composed
        if upstream.settings.rewriteLinks, upstream.isJSON(fields), let rewritten = upstream.links.rewrite(body, for: base) {
            body = rewritten
            dependsOnBase = true
            isChanged = true
        }
        if isChanged {
            for name in Self.spokenOfBytes { fields.remove(named: name) }
            fields.set("ETag", OwnEntityTag.make(body: body, base: dependsOnBase ? base : nil))
        }
        Via.append(to: &fields)
    }
}
