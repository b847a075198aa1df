extension UpstreamHead {
    /// Whether the answer is a stream of server-sent events, which ends when it ends.
    var isEventStream: Bool {
        fields.text("content-type")?.lowercased().hasPrefix("text/event-stream") ?? false
    }

    /// The lines that set cookies.
    var cookies: [Field] { fields.lines.filter { $0.isNamed("set-cookie") } }
}
