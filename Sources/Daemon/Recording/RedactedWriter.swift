import HTTPSemantics
import Proxy
import Settings

/// Adds exchanges to a recording, redacted, and looks through what is written for secrets that were recognised late.
///
/// For one thread at a time.
final class RedactedWriter {
    let writer: RecordingWriter
    private let redactor: Redactor
    private var upstreams: [String: ProxiedUpstream]
    private var credentials: [[UInt8]: Int] = [:]
    /// The number of secrets known when the written files were last searched, and the number of searches.
    private(set) var looked = (learned: 0, times: 0)

    /// Why an exchange is left out.
    enum Omission {
        /// No reader would accept it.
        case unfit(RecordedExchange.Flaw)
        /// A body cannot be decoded for this reason, so that it may contain secrets that nobody finds.
        case unsearchable(String)
    }

    /// - Parameter credentials: Fields with credentials that were sent, and are in no exchange.
    init(_ writer: RecordingWriter, upstreams: [ProxiedUpstream], credentials: Fields = Fields()) {
        self.writer = writer
        self.upstreams = Dictionary(upstreams.map { ($0.name, $0) }) { first, _ in first }
        redactor = Redactor(numbers: true, first: writer.nextPlaceholder)
        for upstream in upstreams { redactor.learnCredentials(of: upstream, in: credentials) }
    }

    /// Notes by which rules and credentials of its upstream the next exchange is redacted.
    func use(_ upstream: ProxiedUpstream) {
        upstreams[upstream.name] = upstream
        // Larder's own may have changed since the last exchange.
        redactor.learnCredentials(of: upstream)
    }

    /// Redacts an exchange and adds it.
    ///
    /// - Parameters:
    ///   - route: The path that selects the route of its response.
    ///   - looksBack: Whether the files written so far are searched first for secrets that this exchange made known.
    /// - Returns: Why it was left out; nil if it was added.
    @discardableResult
    func append(
        _ exchange: WholeExchange,
        of upstream: String,
        route: String,
        credential: Int?,
        looksBack: Bool = false
    ) throws(RecordingError) -> Omission? {
        let redacted: WholeExchange
        do throws(UndecodableContent) {
            redacted = try self.redacted(exchange, of: upstream, route: route)
        } catch { return .unsearchable(error.reason) }
        if looksBack { try lookThrough() }
        let response = redacted.response
        let line = RecordedExchange(
            upstream: upstream,
            credential: credential,
            session: redacted.session,
            arrivalTime: redacted.arrivalTime.map { RecordingTime.text($0) },
            request: .init(method: redacted.method, target: redacted.target, fields: redacted.requestFields?.recorded),
            response: .init(status: response.status, fields: response.fields.recorded, delay: response.delay)
        )
        if let flaw = line.flaw ?? flaw(ofTarget: redacted, upstream) { return .unfit(flaw) }
        try writer.append(line, requestBody: redacted.requestBody, responseBody: response.body)
        return nil
    }

    /// The flaw of a target that no client's request can have at the upstream.
    private func flaw(ofTarget exchange: WholeExchange, _ name: String) -> RecordedExchange.Flaw? {
        guard let upstream = upstreams[name] else { return nil }
        let (method, target, fields) = (exchange.method, exchange.target, exchange.requestFields ?? Fields())
        guard IncomingRequest(recorded: method, target, fields: fields, upstream) == nil else { return nil }
        return RecordedExchange.Flaw("target", "it is not below \(upstream.settings.url)")
    }

    /// - Throws: The reason why a body cannot be read, so that it may contain secrets.
    func redacted(_ exchange: WholeExchange, of upstream: String, route: String) throws(UndecodableContent)
        -> WholeExchange
    {
        guard let upstream = upstreams[upstream] else { return exchange }
        var exchange = exchange
        try redactor.redact(&exchange, of: upstream, route: route)
        return exchange
    }

    /// The number of a request's credentials, by first appearance.
    func number(of credentials: [UInt8]) -> Int {
        let number = self.credentials[credentials] ?? self.credentials.count + 1
        self.credentials[credentials] = number
        return number
    }

    /// Begins the numbers of credentials anew, as for a recording from elsewhere.
    func beginCredentials() { credentials = [:] }

    /// Removes secrets that were written before they were known as such; reads all written files if there are any.
    ///
    /// For example, a token in a response that a later request was made with.
    func lookThrough() throws(RecordingError) {
        guard redactor.learned > looked.learned else { return }
        looked = (redactor.learned, looked.times + 1)
        try writer.rewrite { bytes, fields in
            guard let fields else { return redactor.replacingKnown(inLines: bytes) }
            return redactor.replacingKnown(bytes, fields)
        }
    }

    /// What looks secret and was not redacted, with how often each was seen.
    var lookalikes: [String: Int] { redactor.lookalikes.found }
}
