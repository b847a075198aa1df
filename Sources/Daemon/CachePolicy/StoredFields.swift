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
        Fields(
            fields.withoutHopByHop().lines.filter { line in
                let name = line.lowercasedName
                return name != "age" && name != "alt-svc"
                    && (replaysCookies || name != "set-cookie" && name != "set-cookie2")
                    && !named.contains { $0.elementsEqual(name.utf8) }
            }
        )
    }

    /// The fields with the time of arrival as `Date`, if the upstream sent none (RFC 9110 §6.6.1).
    package static func dated(_ fields: Fields, at now: Int64) -> Fields {
        guard !fields.contains("date") else { return fields }
        return Fields(fields.lines + [Field(name: Array("Date".utf8), value: HTTPDate.format(now))])
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
            if ofTheCoding.contains(name) { return stored.contains(named: name) }
            return !unrefreshed.contains(name)
        }
        let replaced = Set(new.map(\.lowercasedName)).union(["date", "age"])
        var kept = stored.lines.filter { line in
            !replaced.contains(line.lowercasedName)
                && !(line.isNamed("warning") && line.value.first == 0x31)
        }
        kept += new
        return Fields(kept)
    }

    /// The fields to serve when a response is reused without validation.
    static func reusable(_ stored: Fields, leavingOut named: [[UInt8]]) -> Fields {
        guard !named.isEmpty else { return stored }
        return Fields(
            stored.lines.filter { line in !named.contains { FieldSyntax.equalsIgnoringCase(line.name, $0) } }
        )
    }

    /// The fields of a 304 for a stored response (RFC 9110 §15.4.5), and others that do not describe the body.
    package static func notModified(_ stored: Fields) -> Fields {
        let ofTheBody: Set<String> = [
            "content-length", "content-type", "content-encoding", "content-language", "content-range", "content-md5",
            "content-digest", "repr-digest", "digest", "last-modified",
        ]
        let hasTag = stored.contains("etag")
        return Fields(
            stored.lines.filter { line in
                let name = line.lowercasedName
                // Without a tag the date is the validator.
                return !ofTheBody.contains(name) || name == "last-modified" && !hasTag
            }
        )
    }
}
