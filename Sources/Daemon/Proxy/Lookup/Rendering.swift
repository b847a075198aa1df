import CachePolicy
import HTTPSemantics
import Mapping
import Settings

/// A response's fields and body as they are served at one address.
struct Rendering {
    var fields: Fields
    var body: [UInt8]
    /// Whether anything in it was written for this address.
    var dependsOnBase = false
    /// The objects that the mapped view names by their bare identities.
    var named: Set<ObjectName> = []

    /// What is about the bytes that the upstream sent, and is no longer true of others.
    private static let spokenOfBytes = [
        "last-modified", "content-md5", "digest", "content-digest", "repr-digest", "signature", "signature-input",
    ]

    /// JSON pointers as a list of strings (RFC 9651); what is too long for a field is cut off after a member.
    private static func list(_ pointers: [String]) -> String {
        var list = ""
        for pointer in pointers {
            let quoted = "\"" + pointer.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
            guard list.utf8.count + quoted.utf8.count < 4_000, quoted.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
            else { break }
            list += (list.isEmpty ? "" : ", ") + quoted
        }
        return list
    }

    /// Makes a response's fields those of its mapped view; those of a write's response have no tag of their own.
    static func speak(of mapped: MappedBody, in fields: inout Fields) {
        for name in spokenOfBytes { fields.remove(named: name) }
        fields.remove("etag")
        fields.set("Content-Type", "application/json")
        if !mapped.synthetic.isEmpty { fields.set("Larder-Synthetic", list(mapped.synthetic)) }
    }

    /// - Parameter known: what is known of objects that the mapped view names by their bare identities.
    init(
        _ response: CachedResponse,
        upstream: ProxiedUpstream,
        base: ClientAuthority,
        view: View,
        known: [ObjectName: [UInt8]] = [:]
    ) {
        let received = response.fields
        fields = received
        body = response.body
        let links = upstream.links(for: base)
        links.rewrite(&fields)
        dependsOnBase = fields != received
        var isChanged = response.form == .composed
        // In a part a link may be cut in two, and its bytes are counted by their place in what the upstream sent.
        if response.status != 206, upstream.settings.rewriteLinks, view != .raw, upstream.isJSON(fields),
            let rewritten = links.rewritten(body: body)
        {
            body = rewritten
            dependsOnBase = true
            isChanged = true
        }
        if view == .mapped,
            let mapped = upstream.mapped(
                response,
                body: mappable(response, upstream, links),
                known: upstream.settings.rewriteLinks
                    ? known.mapValues { links.rewritten(body: $0) ?? $0 } : known
            )
        {
            body = mapped.body
            named = mapped.named
            Self.speak(of: mapped, in: &fields)
            isChanged = true
        }
        if isChanged {
            for name in Self.spokenOfBytes { fields.remove(named: name) }
            fields.set("ETag", OwnEntityTag.make(body: body, view: view, base: dependsOnBase ? base : nil))
        }
        fields.remove("content-length")
        // What came without a date is given that of its arrival (RFC 9110 §6.6.1).
        if response.policy.flags.contains(.dateAssumed) {
            fields.set("Date", String(decoding: HTTPDate.format(response.policy.date), as: UTF8.self))
        }
        Via.append(to: &fields)
        fields.vary(by: upstream.variesBy)
    }

    /// What the mapped view is made of: the body, with what was stored under earlier versions of its models brought to today's.
    private func mappable(_ response: CachedResponse, _ upstream: ProxiedUpstream, _ links: LinkRewriter) -> [UInt8] {
        guard let migrated = response.migrated else { return body }
        return upstream.settings.rewriteLinks ? links.rewritten(body: migrated) ?? migrated : migrated
    }
}

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
        return "\"larder-\(code.prefix(16).map { $0.hexadecimal(width: 2) }.joined())\""
    }
}
