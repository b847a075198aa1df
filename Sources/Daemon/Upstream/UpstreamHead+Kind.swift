package import HTTPSemantics

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
