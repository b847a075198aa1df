package import HTTPSemantics

/// The means to answer one request, once, from any thread.
///
/// Everything returns at once; the worker writes when the socket can take it. A reply that is dropped without a response
/// answers 500 by itself; one dropped within a response cuts the connection. When the client has left, calls have no
/// effect, and `onDisconnect` has told.
package final class Reply: Sendable {
    let channel: ReplyChannel

    init(_ channel: ReplyChannel) {
        self.channel = channel
    }

    deinit {
        channel.submit([.drop])
    }

    /// Sends a 1xx answer ahead of the final one; not to HTTP/1.0 clients, who do not know them.
    package func informational(status: Int, fields: Fields) {
        channel.submit([.informational(status: status, fields: fields)])
    }

    /// Begins the response.
    ///
    /// The connection adds Date when it is missing, and alone decides about Connection, Transfer-Encoding and
    /// Content-Length. Where no body is allowed (HEAD, 204, 304) whatever is written is dropped; a Content-Length there
    /// comes from `framing`, or from the fields when that is `.none`.
    package func start(status: Int, reason: String? = nil, fields: Fields, framing: ReplyFraming) {
        submit([.start(status: status, reason: reason, fields: fields, framing: framing)])
    }

    /// Adds to the body; the array is shared, not copied.
    ///
    /// Whoever writes much looks at `backlog`.
    package func write(_ chunk: [UInt8]) {
        if !chunk.isEmpty { submit([.write(chunk)]) }
    }

    /// Ends the response; trailers are sent if it is chunked.
    package func finish(trailers: Fields = Fields()) {
        submit([.finish(trailers: trailers)])
    }

    /// Gives the whole response.
    package func respond(status: Int, fields: Fields, body: [UInt8] = []) {
        submit([
            .start(status: status, reason: nil, fields: fields, framing: .length(body.count)),
            .write(body),
            .finish(trailers: Fields()),
        ])
    }

    /// Gives a problem document as the whole response.
    package func respond(_ problem: ProblemDocument, fields: Fields = Fields()) {
        var fields = fields
        fields.set("Content-Type", ProblemDocument.mediaType)
        respond(status: problem.status, fields: fields, body: problem.bytes)
    }

    /// Cuts the connection, so that a response that cannot be completed looks cut short to the client too.
    package func abort() {
        channel.submit([.abort])
    }

    /// Bytes written here that the socket has not taken yet.
    package var backlog: Int { channel.backlog }

    /// Calls back once when the backlog is below `limit` bytes, or the client gone.
    ///
    /// On the worker's thread.
    package func onDrain(below limit: Int, _ callback: @escaping @Sendable () -> Void) {
        channel.onDrain(below: limit, callback)
    }

    /// Calls back once if the client leaves before the response is finished.
    ///
    /// On the worker's thread; at once on the caller's when the client has left already.
    package func onDisconnect(_ callback: @escaping @Sendable () -> Void) {
        channel.onDisconnect(callback)
    }

    private func submit(_ operations: [ReplyChannel.Operation]) {
        let isInOrder = channel.submit(operations)
        assert(isInOrder, "a reply was used out of order: start, write, finish, once each but write")
    }
}
