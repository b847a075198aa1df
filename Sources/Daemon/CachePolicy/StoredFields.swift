package import HTTPSemantics

/// Which fields of a response are stored, and how a 304 renews them (RFC 9111 §3.1, §3.2).
package enum StoredFields {
    /// The fields of a response that may be stored.
    ///
    /// Omitted are hop-by-hop fields, `Age` (it is in the policy), `Alt-Svc` (it names another port of the upstream's host),
    /// `Set-Cookie` unless the upstream's configuration says `cookies: replay`, and the fields in `named`, which the policy
    /// excludes.
    package static func storable(_ fields: Fields, leavingOut named: [[UInt8]] = [], replaysCookies: Bool = false)
        -> Fields
    {
        fields.withoutHopByHop().filter { line in
            !line.isOne(of: notStored) && (replaysCookies || !line.isOne(of: cookies))
                && !named.contains { FieldSyntax.equalsIgnoringCase(line.name, $0) }
        }
    }

    private static let notStored: KnownFields = [.age, .altSvc]
    private static let cookies: KnownFields = [.setCookie, .setCookie2]

    /// The fields with the time of arrival as `Date`, if the upstream sent none (RFC 9110 §6.6.1).
    package static func dated(_ fields: Fields, at now: Int64) -> Fields {
        if fields.contains(.date) { return fields }
        var dated = fields
        dated.append("Date", HTTPDate.format(now))
        return dated
    }

    /// Fields that a 304, or the response to a HEAD, does not change: the length, an exception of RFC 9111 §3.2, and the coding
    /// and the range, which Larder has removed.
    private static let unrefreshed: Set<String> = ["content-length", "content-encoding", "content-range"]

    /// Fields that an update may change but not add: if the stored response lacks one, it was removed along with the content
    /// coding that it described.
    private static let ofTheCoding: Set<String> = ["content-md5", "content-digest", "repr-digest", "digest"]

    /// The stored fields updated by those of a later response (RFC 9111 §3.2).
    ///
    /// Each name in the update replaces all stored lines of that name. Other names stay, except those that would then describe
    /// the wrong response (`Date`, `Age`, `Warning: 1xx`).
    static func refreshed(_ stored: Fields, by update: Fields, replaysCookies: Bool = false) -> Fields {
        let new = storable(update, replaysCookies: replaysCookies).lines.filter { line in
            let name = line.lowercasedName
            if ofTheCoding.contains(name) { return stored.contains(name) }
            return !unrefreshed.contains(name)
        }
        let replaced = Set(new.map(\.lowercasedName)).union(["date", "age"])
        let kept = stored.lines.filter { line in
            !replaced.contains(line.lowercasedName) && !(line.isNamed("warning") && line.value.first == 0x31)
        }
        return Fields(kept + new)
    }

    /// The fields to serve when a response is reused without validation.
    static func reusable(_ stored: Fields, leavingOut named: [[UInt8]]) -> Fields {
        stored.filter { line in !named.contains { FieldSyntax.equalsIgnoringCase(line.name, $0) } }
    }

    /// The fields of a 304 for a stored response (RFC 9110 §15.4.5), and others that do not describe the body.
    package static func notModified(_ stored: Fields) -> Fields {
        // Without a tag the date is the validator.
        let hasTag = stored.contains(.etag)
        return stored.filter { line in !describesBody(line) && !(hasTag && line.isNamed(.lastModified)) }
    }

    static func describesBody(_ line: Fields.Line) -> Bool { line.isOne(of: ofTheBody) }

    private static let ofTheBody: KnownFields = [
        .contentLength, .contentType, .contentEncoding, .contentLanguage, .contentRange, .contentMd5, .contentDigest,
        .reprDigest, .digest,
    ]
}
