package import HTTPSemantics

/// The head of an upstream's final response, fit to be passed on.
package struct UpstreamHead: Sendable, Equatable {
    var version: Version
    package var status: Int
    /// The reason phrase as it came; empty in HTTP/2.
    var reason: [UInt8]
    /// In order and with the bytes received.
    ///
    /// Without hop-by-hop fields and those that `Connection` names; without those that are about the encoded body when
    /// it has been decoded (`Content-Encoding`, `Content-Length`, digests).
    package var fields: Fields
    /// The content codings that have been taken off the body, as the response named them; nil when it came plain.
    var decodedFrom: String?
    /// Whether the body is not in the coding that its fields claim: it goes on as it came, and is worth keeping to nobody.
    package var isGarbled = false

    /// The reason phrase as it is passed on; nil where there is none, though some clients show, or even want, one.
    package var reasonPhrase: String? { reason.isEmpty ? nil : String(decoding: reason, as: UTF8.self) }

    /// The protocol's version in which the response came.
    enum Version: Sendable, Equatable {
        case http10
        case http11
        case http2
    }
}

extension Fields {
    /// Whether a content coding that nobody here knows is still on the body.
    package var isContentCoded: Bool {
        all("content-encoding").flatMap { FieldSyntax.members($0) }
            .contains { !$0.isEmpty && !FieldSyntax.equalsIgnoringCase($0, "identity".utf8) }
    }
}

extension UpstreamHead {
    /// Whether the response is a stream of server-sent events, which ends when it ends.
    package var isEventStream: Bool { fields.isEventStream }

    /// Whether the body is several parts of a response, each with a head of its own (RFC 9110 §14.6).
    package var isMultipart: Bool { fields.hasType("multipart/byteranges") }

    /// The lines that set cookies.
    package var cookies: [Field] { fields.lines.filter { $0.isNamed("set-cookie") } }
}

extension Fields {
    /// Whether they announce a stream of server-sent events.
    package var isEventStream: Bool { hasType("text/event-stream") }

    /// Whether the body is of this media type, whatever its parameters.
    fileprivate func hasType(_ name: String) -> Bool {
        guard let type = self[first: "content-type"] else { return false }
        return FieldSyntax.equalsIgnoringCase(FieldSyntax.essence(of: type[...]), name.utf8)
    }
}
