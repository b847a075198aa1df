extension UpstreamHead {
    /// Whether the answer is a stream of server-sent events, which ends when it ends.
    var isEventStream: Bool {
        fields.text("content-type")?.lowercased().hasPrefix("text/event-stream") ?? false
    }
}
