package import HTTPSemantics

/// Which fields of a response are kept, and how a 304 renews them (RFC 9111 §3.1, §3.2).
package enum StoredFields {
    /// The fields of a response that may be stored.
    ///
    /// Left out are hop-by-hop fields, `Age` (it is in the policy), `Alt-Svc` (it names another port of the upstream's host,
    /// not of this one), `Set-Cookie` unless the upstream's configuration says `cookies: replay`, and whatever `policy`
    /// says must not be kept.
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

    /// The fields with the time of arrival as `Date`, where the upstream gave none (RFC 9110 §6.6.1).
    package static func dated(_ fields: Fields, at now: Int64) -> Fields {
        guard !fields.contains("date") else { return fields }
        return Fields(fields.lines + [Field(name: Array("Date".utf8), value: HTTPDate.format(now))])
    }

    /// What a 304, or a HEAD answer, does not change: the length, which RFC 9111 §3.2 excepts, and what Larder has
    /// processed and taken off, the coding and the range.
    private static let unrefreshed: Set<String> = ["content-length", "content-encoding", "content-range"]

    /// What a later answer changes, but does not add: a stored response without one had it taken off with the content coding
    /// that it spoke of.
    private static let ofTheCoding: Set<String> = ["content-md5", "content-digest", "repr-digest", "digest"]

    /// The stored fields with those of a later answer in their place (RFC 9111 §3.2).
    ///
    /// Each name that occurs in the new response replaces all stored lines of it; names that do not occur stay as they
    /// were, but for those that would then say something about the wrong answer (`Date`, `Age`, `Warning: 1xx`).
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

    /// The fields to serve when a response is used again without validation.
    static func reusable(_ stored: Fields, leavingOut named: [[UInt8]]) -> Fields {
        guard !named.isEmpty else { return stored }
        return Fields(
            stored.lines.filter { line in !named.contains { FieldSyntax.equalsIgnoringCase(line.name, $0) } }
        )
    }

    /// The fields of a 304 made from a stored response (RFC 9110 §15.4.5), and others that do not describe the body.
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
