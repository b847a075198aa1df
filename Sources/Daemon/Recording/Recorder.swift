import CachePolicy
import Dispatch
import Foundation
import HTTPSemantics
import HTTPServer
package import Logging
import Mapping
package import Proxy
import Synchronization

/// Records exchanges: the client's request and its response, before Larder's own additions.
///
/// May be called on any thread; one queue redacts and writes the exchanges, in the order of their completion.
package final class Recorder: Sendable {
    private let queue = DispatchQueue(label: "larder.recording")
    private let work: RecorderWork

    /// - Parameter writer: The writer, which the recorder owns from now on.
    package init(_ writer: sending RecordingWriter, upstreams: [ProxiedUpstream], log: Logger) {
        work = RecorderWork(writer, upstreams: upstreams, log: log)
    }

    /// Records an exchange once it is complete; must be called before its body is read or its response begins.
    ///
    /// - Parameter body: The request body, if it has already been read.
    func watch(_ incoming: IncomingRequest, _ reply: Reply, body: [UInt8]? = nil) {
        // A view is derived from a response, and an event from several.
        guard incoming.live == nil, incoming.view == .wire else { return queue.async { self.work.skipped(.ownForm) } }
        if body == nil { incoming.message.body?.keepCopy(limit: RecordingFolder.bodyLimit) }
        reply.observe(ExchangeWatch(incoming, body: body, recorder: self))
    }

    /// - Parameter response: Nil if it was too large.
    fileprivate func finished(_ watch: ExchangeWatch, _ response: WholeExchange.Response?) {
        queue.async {
            self.work.record(watch, response)
            // No crash loses more than a second.
            if self.work.plansFlush() { self.queue.asyncAfter(deadline: .now() + .seconds(1)) { self.work.flush() } }
        }
    }

    fileprivate func aborted() { queue.async { self.work.skipped(.cutShort) } }

    /// Writes the complete exchanges and returns a summary; later ones are not recorded.
    ///
    /// - Parameter isRemovedIfEmpty: Whether a recording begun by this recorder is removed if it has no exchange.
    package func close(isRemovedIfEmpty: Bool = false) -> RecordingSummary {
        queue.sync { work.close(isRemovedIfEmpty: isRemovedIfEmpty) }
    }

    var count: Int { queue.sync { work.summary.count } }
}

package struct RecordingSummary: Sendable, Equatable {
    package var count = 0
    package var skipped: [Reason: Int] = [:]
    /// The reason why recording ended early; nil if it did not.
    package var failure: String?
    /// The last reason why Larder itself responded with an error; nil if it did not.
    package var problem: String?
    /// What looks secret and was recorded as it is, with how often: names of values, kinds of tokens, paths.
    package var lookalikes: [String: Int] = [:]
    /// The last exchange left out because it could not be searched for secrets, with the reason.
    var unsearchable: String?

    package init() {}

    /// Why an exchange was not recorded; the text continues a sentence about several.
    package enum Reason: String, Sendable, CaseIterable {
        /// The response or the request broke off.
        case cutShort = "broke off"
        case tooLarge = "are larger than 256 MiB"
        /// Larder's own problem document.
        case ownProblem = "are errors of Larder's own, such as an upstream that could not be asked"
        /// See `RecordedExchange.flaw`.
        case unfit = "have a method, target, status or field that HTTP does not allow"
        case ownForm = "asked for a view other than wire or for events, which replays make themselves"
        /// Of its request only the digest is stored.
        case read = "are responses to a POST, of whose body only the digest is stored"
        case failed = "came after recording had ended"
        /// A body cannot be decoded.
        case unsearchable = "could not be searched for secrets"
    }

    mutating func leaveOut(_ exchange: WholeExchange, _ omission: RedactedWriter.Omission) {
        switch omission {
        case .unfit: skipped[.unfit, default: 0] += 1
        case .unsearchable(let reason):
            skipped[.unsearchable, default: 0] += 1
            let path = exchange.target.prefix { $0 != "?" }
            unsearchable = "a body of \(exchange.method) \(String(path).printable) \(reason)"
        }
    }

    /// The summary for people, one sentence per line.
    ///
    /// - Parameter folder: where the recording is; nil if nothing was recorded.
    package func sentences(folder: String?) -> [String] {
        var lines = folder.map { ["recorded \(count) exchange\(count == 1 ? "" : "s") in \($0)"] } ?? []
        let hasOnlyFailed = count == 0 && Set(skipped.keys) == [.ownProblem]
        if hasOnlyFailed, let problem { lines.append("every request to the API failed: \(problem)") }
        for reason in Reason.allCases where !hasOnlyFailed {
            if let count = skipped[reason] { lines.append("not recorded: \(count) that \(reason.rawValue)") }
        }
        if let unsearchable { lines.append("for example, \(unsearchable)") }
        if let failure { lines.append("recording ended early: \(failure)") }
        if !lookalikes.isEmpty {
            let names = lookalikes.sorted { $0.key < $1.key }.map { "\($0.key) (\($0.value))" }.joined(separator: ", ")
            lines.append("values that look secret and were recorded as they are: \(names)")
            lines.append("look at them before you share the recording; \"secret:\" in their models keeps them out")
        }
        return lines
    }
}

private final class ExchangeWatch: ReplyObserver {
    private struct State {
        /// The response so far; nil once it is too large, or handed over.
        var response: WholeExchange.Response? = .init()
        var isComplete = false
    }

    let incoming: IncomingRequest
    let time: Double
    private let ownBody: [UInt8]?
    private let recorder: Recorder
    private let state = Mutex(State())

    init(_ incoming: IncomingRequest, body: [UInt8]?, recorder: Recorder) {
        (self.incoming, self.recorder) = (incoming, recorder)
        ownBody = body
        time = Date().timeIntervalSince1970
    }

    /// The request body; nil if it is incomplete.
    var body: [UInt8]? {
        if let ownBody { return ownBody }
        guard let body = incoming.message.body else { return [] }
        return body.isComplete ? body.copy : nil
    }

    func began(status: Int, fields: Fields, length: Int?) {
        var fields = fields
        // For a HEAD response the length is the only information about the body.
        if incoming.message.method == "HEAD", let length { fields.set("Content-Length", String(length)) }
        state.withLock { [fields] in $0.response = .init(status: status, fields: fields) }
    }

    func wrote(_ bytes: [UInt8]) {
        state.withLock { state in
            state.response?.body += bytes
            if state.response?.body.count ?? 0 > RecordingFolder.bodyLimit { state.response = nil }
        }
    }

    func finished() {
        let response = state.withLock { state in
            state.isComplete = true
            return state.response.take()
        }
        recorder.finished(self, response)
    }

    func aborted() {
        let isComplete = state.withLock { state in
            defer { state.isComplete = true }
            return state.isComplete
        }
        if !isComplete { recorder.aborted() }
    }
}

/// The recorder's state; used on its queue only.
private final class RecorderWork: @unchecked Sendable {  // the queue of `Recorder` guards it
    private var writer: RedactedWriter?
    private let log: Logger
    private(set) var summary = RecordingSummary()
    private var isFlushPlanned = false
    /// The number of exchanges that were there at the last flush.
    private var flushed = 0

    init(_ writer: RecordingWriter, upstreams: [ProxiedUpstream], log: Logger) {
        self.writer = RedactedWriter(writer, upstreams: upstreams)
        self.log = log
    }

    func skipped(_ reason: RecordingSummary.Reason) { summary.skipped[reason, default: 0] += 1 }

    func record(_ watch: ExchangeWatch, _ response: WholeExchange.Response?) {
        guard let writer, summary.failure == nil else { return skipped(.failed) }
        guard let response else { return skipped(.tooLarge) }
        guard let requestBody = watch.body else { return skipped(.cutShort) }
        if let problem = Self.ownProblem(response) {
            summary.problem = problem
            return skipped(.ownProblem)
        }
        let (incoming, method) = (watch.incoming, watch.incoming.message.method)
        writer.use(incoming.upstream)
        let received = Self.received(response.fields, isHead: method == "HEAD", variesBy: incoming.upstream)
        let (fields, body) = incoming.withUpstreamLinks(received, body: response.body)
        let exchange = WholeExchange(
            method: method,
            target: incoming.target,
            requestFields: Self.sent(incoming.message.fields),
            requestBody: requestBody,
            response: .init(status: response.status, fields: fields, body: body),
            arrivalTime: watch.time,
            session: incoming.session.isEmpty ? nil : incoming.session
        )
        do throws(RecordingError) {
            let omission = try writer.append(
                exchange,
                of: incoming.upstream.name,
                route: incoming.route,
                credential: incoming.clientCredentials.map { writer.number(of: $0) },
                looksBack: writer.looked.times < Self.looks
            )
            if let omission { summary.leaveOut(exchange, omission) } else { summary.count += 1 }
        } catch {
            summary.failure = error.description
            log.error("recording has ended: what follows is not recorded", metadata: ["error": "\(error)"])
        }
    }

    /// The limit for searches, beyond which the next one happens at the end.
    ///
    /// A search reads all written files, so it must not run for each request if an API's credentials change with each.
    private static let looks = 50

    /// Whether a flush is to be planned now: something was written, and none is planned yet.
    func plansFlush() -> Bool {
        guard writer != nil, !isFlushPlanned, summary.count > flushed else { return false }
        isFlushPlanned = true
        return true
    }

    func flush() {
        (isFlushPlanned, flushed) = (false, summary.count)
        writer?.writer.flush()
    }

    func close(isRemovedIfEmpty: Bool) -> RecordingSummary {
        do throws(RecordingError) {
            try writer?.lookThrough()
        } catch { summary.failure = summary.failure ?? "\(error); secrets may be left in it" }
        summary.lookalikes = writer?.lookalikes ?? summary.lookalikes
        writer?.writer.flush()
        if isRemovedIfEmpty { writer?.writer.removeIfEmpty() }
        writer = nil
        return summary
    }

    // MARK: The recorded parts of a message

    /// The request's fields as they go upstream.
    private static func sent(_ fields: Fields) -> Fields {
        var fields = UpstreamFields.make(from: fields, removingConditions: false)
        fields.remove("via")
        return fields
    }

    private static func received(_ fields: Fields, isHead: Bool, variesBy upstream: ProxiedUpstream) -> Fields {
        var fields = fields.withoutHopByHop()
        if !isHead { fields.remove("content-length") }
        fields.remove("age")
        removeLast("cache-status", from: &fields) { $0.hasPrefix("larder") }
        removeLast("via", from: &fields) { $0.hasSuffix(" larder") }
        let own = upstream.ownInVary.map { $0.lowercased() }
        guard let vary = fields.combined("vary") else { return fields }
        let others = vary.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { !own.contains($0.lowercased()) }
        fields.remove("vary")
        if !others.isEmpty { fields.append("Vary", others.joined(separator: ", ")) }
        return fields
    }

    /// Removes Larder's member from the end of a list.
    private static func removeLast(_ name: String, from fields: inout Fields, where isOwn: (String) -> Bool) {
        guard let list = fields.combined(name) else { return }
        var members = FieldSyntax.members(Array(list.utf8)).map { String(decoding: $0, as: UTF8.self) }
        if let last = members.last, isOwn(last.trimmingCharacters(in: .whitespaces)) { members.removeLast() }
        fields.remove(name)
        if !members.isEmpty { fields.append("\(name)", members.joined(separator: ", ")) }
    }

    /// The reason that a problem document of Larder's own contains; nil for other responses.
    private static func ownProblem(_ response: WholeExchange.Response) -> String? {
        guard response.fields.text("content-type") == ProblemDocument.mediaType,
            response.body.starts(with: #"{"type":"urn:larder:"#.utf8), let problem = JSONOutline(response.body)
        else { return nil }
        return (problem["detail"] ?? problem["title"])?.text
    }
}
