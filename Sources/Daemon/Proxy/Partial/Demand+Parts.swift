import CachePolicy
import HTTPSemantics
import HTTPServer
import Store

/// What a request has to do with responses that are stored in parts.
extension Demand {
    /// Whether it goes upstream with its own `Range`, and a part may be stored of what it brings.
    var isForParts: Bool { isStorable && range != nil && !isForWhole }

    /// Whether the client's `Range` goes upstream: not on a HEAD, which has none, nor where it is malformed or an attack.
    var forwardsRange: Bool {
        switch request.method {
        case "GET": range != nil && !isForWhole || hasForeignRange
        case "HEAD": false
        default: true
        }
    }

    /// Whether the client sent conditions of its own besides `If-Range`.
    var hasConditions: Bool { !Preconditions(fields: request.fields, now: 0).isEmpty }

    /// The same request with the whole fetched for it.
    var forWhole: Demand {
        var demand = self
        demand.isForWhole = true
        return demand
    }

    /// The key under which parts of the response are stored: apart from the whole, so that no look-up for a whole ever
    /// finds them.
    ///
    /// Upstream, principal and URL are the response's own; invalidations and cleanings meet both alike. No request has such a
    /// context: each line of one has a `=`.
    var partsKey: DocumentKey {
        var key = key
        key.context += key.context.isEmpty ? "parts" : "\nparts"
        return key
    }

    /// Names the part that it asks for, among those who may wait for one another's; nil where its response depends on what its
    /// client has, or is no part.
    var partKey: DocumentKey? {
        guard isForParts, !hasConditions, !request.fields.contains("if-range") else { return nil }
        var key = partsKey
        for line in request.fields.all("range") { key.context += "\n" + String(decoding: line, as: UTF8.self) }
        return key
    }

    /// Whether parts may be served for it.
    ///
    /// Where a model says what a JSON response is made of, a part could show an object otherwise than it is known by now, and
    /// cannot be recomposed. There parts only save bytes of the whole.
    func mayBeServed(parts: ReadyResponse) -> Bool {
        !parts.isJSON || upstream.reading(self, status: 200, fields: parts.answer.fields).rule == nil
    }
}

extension ReadyResponse {
    /// The request fields that ask for the one gap between stored parts, provided that nothing has changed since.
    var fieldsAskingForGap: [Field] {
        guard let gap = parts?.gap, let tag = preconditions.entityTag else { return [] }
        return [
            Field("Range", "bytes=\(gap.lowerBound)-\(gap.upperBound - 1)"),
            Field(name: Array("If-Range".utf8), value: tag.bytes),
        ]
    }

    /// Whether asking for one gap would make these parts whole: they have a strong tag, and one range is missing.
    ///
    /// - Parameter limit: of the whole's length; a larger one would not be stored.
    func isCompletable(limit: Int) -> Bool {
        guard let tag = preconditions.entityTag, !tag.isWeak, !tag.isOwn, let parts, let length = parts.length else {
            return false
        }
        return parts.gap != nil && length <= limit
    }
}
