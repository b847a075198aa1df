import CachePolicy
import HTTPSemantics
import Mapping
import Settings

/// A response's fields and body as they are served at one address.
struct Rendering {
    var fields: Fields
    var body: [UInt8]
    /// Whether any of it was written for this address.
    var dependsOnBase = false
    /// The objects that the mapped view shows by their bare identities.
    var named: Set<ObjectName> = []

    /// The fields that concern the upstream's bytes, and are false for others.
    private static let fieldsOfBytes = [
        "last-modified", "content-md5", "digest", "content-digest", "repr-digest", "signature", "signature-input",
    ]

    /// Formats JSON pointers as a list of strings (RFC 9651); the list is cut off at a member if it is too long for a field.
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

    /// Turns a response's fields into those of its mapped view; the response to a write gets no tag.
    static func describe(_ mapped: MappedBody, in fields: inout Fields) {
        for name in fieldsOfBytes { fields.remove(named: name) }
        fields.remove("etag")
        fields.set("Content-Type", "application/json")
        if !mapped.synthetic.isEmpty { fields.set("Larder-Synthetic", list(mapped.synthetic)) }
    }

    /// - Parameter known: the known objects that the mapped view shows by their bare identities.
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
        // In a part a link may be cut in two, and bytes are counted by their position in the upstream's body.
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
            Self.describe(mapped, in: &fields)
            isChanged = true
        }
        if isChanged {
            for name in Self.fieldsOfBytes { fields.remove(named: name) }
            fields.set("ETag", OwnEntityTag.make(body: body, view: view, base: dependsOnBase ? base : nil))
        }
        fields.remove("content-length")
        // A response without a date gets that of its arrival (RFC 9110 §6.6.1).
        if response.policy.flags.contains(.dateAssumed) {
            fields.set("Date", String(decoding: HTTPDate.format(response.policy.date), as: UTF8.self))
        }
        Via.append(to: &fields)
        fields.vary(by: upstream.variesBy)
    }

    /// The input for the mapped view: the body, migrated to the models' current versions.
    private func mappable(_ response: CachedResponse, _ upstream: ProxiedUpstream, _ links: LinkRewriter) -> [UInt8] {
        guard let migrated = response.migrated else { return body }
        return upstream.settings.rewriteLinks ? links.rewritten(body: migrated) ?? migrated : migrated
    }
}

/// The entity tags of responses that Larder itself has changed: composed ones, and those with rewritten links.
///
/// They are strong, because equal tags mean equal bytes. They begin with `larder-`, which identifies them in later requests, and
/// never go upstream.
enum OwnEntityTag {
    /// The tag of a body as served in one view and at one address; `base` is nil if the body does not depend on it.
    static func make(body: [UInt8], view: View, base: ClientAuthority?) -> String {
        // No address contains a line break. Bytes as received need no such tag.
        let marked = view == .mapped ? Array("mapped\n".utf8) : []
        let code = Crypto.authenticationCode(key: marked + (base?.bytes ?? []), message: body)
        return "\"larder-\(code.prefix(16).map { $0.hexadecimal(width: 2) }.joined())\""
    }
}
