import Foundation
package import HTTPSemantics
import Mapping
package import Proxy
import Settings

extension RecordingContents {
    fileprivate var origins: [String: String] {
        let settings = ConfigFile.parse(manifest.config, file: folder.manifest, environment: [:]).settings
        return settings.upstreams.reduce(into: [:]) { origins, upstream in
            var url = upstream.url
            url.basePath = ""
            origins[upstream.name] = url.canonical
        }
    }
}

/// The differences between a recording and other responses to the same requests.
package struct RecordingComparison: Sendable {
    /// A response that has changed, of one exchange or of several with the same request and response.
    package struct Finding: Sendable {
        /// Method and target, such as `GET /users/1`.
        package var request: String
        /// The numbers of the exchanges whose response has changed; none if one recording does not have the request.
        fileprivate var numbers: [Int] = []
        /// The most severe first.
        package var drifts: [Drift]

        fileprivate var isBreaking: Bool { drifts.first?.severity == .breaking }
    }

    /// A request that can be compared with the API, with the exchanges that it is compared with.
    package struct Candidate: Sendable {
        /// The numbers of the exchanges, in their order.
        fileprivate var numbers: [Int] = []
        /// A recorded write of any session that may have made what the request asks for; nil for none.
        fileprivate var maker: String?

        /// The exchange whose request is sent.
        package var number: Int { numbers[0] }
    }

    /// A request that was left out, and why.
    package struct Omission: Sendable, Hashable {
        package var request: String
        package var reason: String
    }

    package var findings: [Finding] = []
    /// The requests that were not compared.
    package private(set) var skipped: [Omission] = []
    /// The requests whose new responses were not written.
    package private(set) var kept: [Omission] = []
    package private(set) var compared = 0
    /// The new responses, by the number of the exchange that they replace.
    package private(set) var updates: [Int: WholeExchange.Response] = [:]
    /// The updates that say only that a credential is missing or not valid, each with the reason to leave it out.
    private var refusals: [Int: String] = [:]
    /// What is in `skipped` and `kept`: several exchanges may have one request and one reason.
    private var listed: Set<Omission> = []

    package init() {}

    /// Whether programs written for the recorded responses may fail with the new ones.
    ///
    /// - Parameter isUpdated: Whether the recording has the new ones now, as far as `update` has written them.
    package func isBreaking(isUpdated: Bool) -> Bool {
        findings.contains { finding in
            let isWritten = !finding.numbers.isEmpty && finding.numbers.allSatisfy { updates[$0] != nil }
            return finding.isBreaking && !(isUpdated && isWritten)
        }
    }

    /// Notes a request that is not compared.
    package mutating func skip(_ request: String, _ reason: String) {
        let omission = Omission(request: request, reason: reason)
        if listed.insert(omission).inserted { skipped.append(omission) }
    }

    /// The safe requests that can be compared with the API: those before a recorded write to their path.
    ///
    /// A replay shows a session its own writes and those of no session. The API does not have what these have made, so
    /// requests that come after them are listed as not compared.
    package mutating func comparable(_ recording: RecordingContents) -> [Candidate] {
        var writes: [String: RecordedWrites] = [:]
        var all = RecordedWrites()
        var (places, found): ([String: Int], [Candidate]) = ([:], [])
        for (number, exchange) in recording.exchanges.enumerated() {
            let session = exchange.session ?? ""
            guard ["GET", "HEAD"].contains(exchange.request.method) else {
                writes[session, default: RecordedWrites()].insert(exchange)
                all.insert(exchange)
                continue
            }
            if let write = writes[session]?.write(before: exchange) ?? writes[""]?.write(before: exchange) {
                skip(exchange.title, "it follows a recorded \(write), which is not sent again")
                continue
            }
            let key = "\(exchange.upstream) \(exchange.title) \(exchange.request.fields ?? [])"
            let place = places[key] ?? found.count
            if place == found.count {
                places[key] = place
                found.append(Candidate())
            }
            found[place].maker = found[place].maker ?? all.write(before: exchange)
            found[place].numbers.append(number)
        }
        return found
    }

    /// Compares the API's response to a request with the last one of each session, and with the others that are the same.
    ///
    /// - Parameter isAnonymous: Whether the request was sent without a credential.
    package mutating func compare(
        _ candidate: Candidate,
        of recording: RecordingContents,
        with new: WholeExchange.Response,
        isAnonymous: Bool
    ) throws(RecordingError) {
        let title = recording.exchanges[candidate.number].title
        var groups: [(old: WholeExchange.Response, numbers: [Int])] = []
        let sessions = Dictionary(grouping: candidate.numbers) { recording.exchanges[$0].session ?? "" }
        for numbers in sessions.values.sorted(by: { $0[0] < $1[0] }) {
            let last = try recording.folder.whole(recording.exchanges[numbers[numbers.count - 1]].response)
            var same: [Int] = []
            for number in numbers.dropLast() {
                let old = try recording.folder.whole(recording.exchanges[number].response)
                if old.hasContent(of: last) { same.append(number) }
            }
            same.append(numbers[numbers.count - 1])
            if same.count < numbers.count {
                skip(title, "these responses came before another one, and the API has only one now")
            }
            if let maker = candidate.maker, last.status < 400, [404, 410].contains(new.status) {
                skip(title, "the API does not have it, and a recorded \(maker) of another session may have made it")
            } else if let place = groups.firstIndex(where: { $0.old.hasContent(of: last) }) {
                groups[place].numbers += same
            } else {
                groups.append((last, same))
            }
        }
        for (old, numbers) in groups {
            let session = groups.count > 1 ? recording.exchanges[numbers[0]].session : nil
            let name = recording.exchanges[numbers[0]].title(of: session)
            compare(name, numbers, old, with: new, isAnonymous: isAnonymous)
        }
    }

    private mutating func compare(
        _ request: String,
        _ numbers: [Int],
        _ old: WholeExchange.Response,
        with new: WholeExchange.Response,
        isAnonymous: Bool
    ) {
        let drifts = Drift.between(old, new)
        compared += 1
        guard !drifts.isEmpty else { return }
        findings.append(Finding(request: request, numbers: numbers, drifts: drifts))
        let isRefused = old.status < 400 && (new.status == 401 || new.status == 403 && isAnonymous)
        for number in numbers {
            updates[number] = new
            guard isRefused else { continue }
            refusals[number] =
                isAnonymous
                ? "its \(new.status) says that a credential is missing; send one with --header NAME=@VARIABLE"
                : "its 401 says that the credential is not valid"
        }
    }

    package init(_ old: RecordingContents, _ new: RecordingContents) throws(RecordingError) {
        let (oldOrigins, newOrigins) = (old.origins, new.origins)
        /// The name in the old recording for an upstream of the new one, whose names may be others.
        func name(of upstream: String) -> String {
            if newOrigins.count == 1, let only = oldOrigins.keys.first, oldOrigins.count == 1 { return only }
            // Upstreams with the same origin have different base paths, which targets contain.
            let known = oldOrigins.filter { $0.value == newOrigins[upstream] }.keys
            return known.contains(upstream) ? upstream : known.sorted().first ?? upstream
        }
        var places: [String: [Int]] = [:]
        for (number, exchange) in new.exchanges.enumerated() {
            places[try Self.key(exchange, new, name(of: exchange.upstream)), default: []].append(number)
        }
        let keys = try old.exchanges.map { exchange throws(RecordingError) in
            try Self.key(exchange, old, exchange.upstream)
        }
        var pairs: [Int: Int] = [:]
        /// Pairs the exchanges that have no partner yet, in their order, with those whose session suits.
        func pair(_ suits: (_ old: String?, _ new: String?) -> Bool) {
            for (number, exchange) in old.exchanges.enumerated() where pairs[number] == nil {
                let found = places[keys[number]]?.firstIndex { suits(exchange.session, new.exchanges[$0].session) }
                if let found { pairs[number] = places[keys[number]]?.remove(at: found) }
            }
        }
        pair { $0 == $1 }
        // A replay gives a session what was recorded without one, too, and never what is another session's.
        pair { $0 == nil || $1 == nil }
        let sessions = Dictionary(grouping: old.exchanges, by: \.title).mapValues { Set($0.map(\.session)).count }
        for number in old.exchanges.indices {
            let exchange = old.exchanges[number]
            let session = sessions[exchange.title, default: 1] > 1 ? exchange.session : nil
            let title = exchange.title(of: session)
            guard let other = pairs[number] else {
                findings.append(Finding(request: title, drifts: [Drift(.breaking, "not in \(new.folder.path)")]))
                continue
            }
            compare(
                title,
                [number],
                try old.folder.whole(exchange.response),
                with: try new.folder.whole(new.exchanges[other].response),
                isAnonymous: new.exchanges[other].credential == nil
            )
        }
        for number in places.values.flatMap(\.self).sorted() {
            let title = new.exchanges[number].title
            findings.append(Finding(request: title, drifts: [Drift(.notice, "not in \(old.folder.path)")]))
        }
    }

    private static func key(_ exchange: RecordedExchange, _ recording: RecordingContents, _ upstream: String)
        throws(RecordingError) -> String
    {
        let body = try recording.folder.body(exchange.request.body)
        return "\(upstream) \(exchange.title) \(Data(body).base64EncodedString())"
    }

    /// Keeps the recorded responses where the new ones show only that a credential is missing.
    ///
    /// - Parameter acceptsBreaking: If false, also where they would break programs that were written for them.
    package mutating func keepRecorded(_ recording: RecordingContents, acceptsBreaking: Bool) {
        let broken = acceptsBreaking ? [] : Set(findings.filter(\.isBreaking).flatMap(\.numbers))
        let reason = "its changes are breaking; --accept-breaking takes them over"
        for number in updates.keys.sorted() {
            guard let reason = refusals[number] ?? (broken.contains(number) ? reason : nil) else { continue }
            keep(number, of: recording, reason)
        }
    }

    private mutating func keep(_ number: Int, of recording: RecordingContents, _ reason: String) {
        updates[number] = nil
        let omission = Omission(request: recording.exchanges[number].title, reason: reason)
        if listed.insert(omission).inserted { kept.append(omission) }
    }

    /// Writes the new responses into the recording, redacted; those that cannot be searched for secrets are left out, and listed.
    ///
    /// Bodies keep their files, and the lines of all other exchanges stay as they are. Times are those of the recording.
    ///
    /// - Parameter credentials: The fields with which the new responses were asked for, besides the recorded ones.
    package mutating func update(_ recording: RecordingContents, upstreams: [ProxiedUpstream], credentials: Fields)
        throws(RecordingError)
    {
        guard !updates.isEmpty else { return }
        let editor = try RecordingWriter(recording.folder, config: recording.manifest.config, recorded: 0)
        let redactors = RedactedWriter(editor, upstreams: upstreams, credentials: credentials)
        // Several lines may name one body.
        let users = recording.exchanges.flatMap { [$0.request.body, $0.response.body] }.compactMap(\.self).counted
        let shared = Set(users.filter { $0.count > 1 }.map(\.text))
        var changed: [Int: RecordedExchange] = [:]
        for (number, update) in updates.sorted(by: { $0.key < $1.key }) {
            let exchange = recording.exchanges[number]
            let (request, upstream) = (exchange.request, upstreams.first { $0.name == exchange.upstream })
            let plain = WholeExchange(
                method: request.method,
                target: request.target,
                requestFields: request.fields.map(Fields.init(recorded:)),
                response: update
            )
            let route = upstream?.route(ofURL: request.target) ?? ""
            let response: WholeExchange.Response
            do throws(UndecodableContent) {
                response = try redactors.redacted(plain, of: exchange.upstream, route: route).response
            } catch {
                keep(number, of: recording, "the new body \(error.reason)")
                continue
            }
            var updated = exchange
            updated.response.status = response.status
            updated.response.fields = exchange.timed(response.fields).recorded
            // What no reader would accept must not get in.
            if let flaw = updated.flaw {
                keep(number, of: recording, "\(flaw.part): \(flaw.complaint)")
                continue
            }
            let old = exchange.response.body.flatMap { shared.contains($0) ? nil : $0 }
            updated.response.body = try editor.writeBody(response.body, response.fields, over: old)
            if updated != exchange { changed[number] = updated }
        }
        try editor.replace(changed)
        let exchanges = recording.exchanges.enumerated().map { changed[$0] ?? $1 }
        let named = Set(exchanges.flatMap { [$0.request.body, $0.response.body] })
        for number in changed.keys {
            guard let old = recording.exchanges[number].response.body, !named.contains(old) else { continue }
            unlink("\(recording.folder.path)/\(old)")
        }
    }
}

/// The paths that a recording's writes went to, as far as it was read.
private struct RecordedWrites {
    /// The last write to each path of each upstream, and to the paths below it.
    private var own: [String: String] = [:]
    private var below: [String: String] = [:]

    mutating func insert(_ exchange: RecordedExchange) {
        guard !["OPTIONS", "TRACE"].contains(exchange.request.method) else { return }
        let paths = Self.paths(exchange)
        if let path = paths.last { own[path] = exchange.title }
        for path in paths { below[path] = exchange.title }
    }

    /// The write to an exchange's path, to one above it, or to one below it; nil for none.
    func write(before exchange: RecordedExchange) -> String? {
        let paths = Self.paths(exchange)
        return paths.lazy.compactMap { own[$0] }.first ?? paths.last.flatMap { below[$0] }
    }

    /// The path of an exchange and those above it, without the root, the longest last.
    private static func paths(_ exchange: RecordedExchange) -> [String] {
        var path = exchange.upstream
        let segments = exchange.request.target.prefix { $0 != "?" }.split(separator: "/")
        return segments.map { segment in
            path += "/\(segment)"
            return path
        }
    }
}

extension WholeExchange.Response {
    /// Whether two recorded responses have the same status, media type and body.
    fileprivate func hasContent(of other: Self) -> Bool {
        status == other.status && body == other.body
            && ProxiedUpstream.mediaType(fields) == ProxiedUpstream.mediaType(other.fields)
    }
}

extension RecordedExchange {
    /// Its title, with a session where that distinguishes it from others.
    fileprivate func title(of session: String?) -> String {
        title + (session.map { " (session \($0.printable))" } ?? "")
    }

    /// The fields of a newer response as if it had come at the time of this one: a replay's clock stands there.
    fileprivate func timed(_ fields: Fields) -> Fields {
        let now = Int64(Date().timeIntervalSince1970)
        func date(_ fields: Fields) -> Int64? { fields[.date].flatMap { HTTPDate.parse($0, now: now) } }
        guard let new = date(fields), let old = date(Fields(recorded: response.fields)) ?? seconds
        else { return fields }
        var fields = fields
        ReplayClock.shift(&fields, by: old - new, now: now)
        return fields
    }
}

/// A difference between a response and the recorded one.
package struct Drift: Sendable, Equatable {
    /// How much the difference affects programs written for the recorded response.
    package enum Severity: String, Sendable, CaseIterable, Comparable {
        /// A status or a type has changed, or a member is missing.
        case breaking
        /// A member is new.
        case notice
        /// Values have changed.
        case info

        package static func < (left: Severity, right: Severity) -> Bool {
            allCases.firstIndex(of: left)! < allCases.firstIndex(of: right)!
        }
    }

    package var severity: Severity
    package var text: String

    init(_ severity: Severity, _ text: String) { (self.severity, self.text) = (severity, text) }

    /// The differences between two responses, the most severe first.
    static func between(_ old: WholeExchange.Response, _ new: WholeExchange.Response) -> [Drift] {
        var drifts: [Drift] = []
        let (oldType, newType) = (ProxiedUpstream.mediaType(old.fields), ProxiedUpstream.mediaType(new.fields))
        if old.status != new.status {
            drifts.append(Drift(.breaking, "status: was \(old.status), is now \(new.status)"))
        }
        if oldType != newType {
            drifts.append(Drift(.breaking, "content type: was \(oldType ?? "none"), is now \(newType ?? "none")"))
        }
        if let before = JSONOutline(old.body), let after = JSONOutline(new.body) {
            drifts += between(Shape(before), Shape(after))
        } else if old.body != new.body {
            drifts.append(Drift(.info, "body: other bytes; were \(old.body.count), are now \(new.body.count)"))
        }
        return drifts.enumerated().sorted { ($0.element.severity, $0.offset) < ($1.element.severity, $1.offset) }
            .map(\.element)
    }

    /// The types and values of a JSON text at each of its paths.
    private struct Shape {
        var paths: [String] = []
        var kinds: [String: Set<JSONKind>] = [:]
        var values: [String: [ArraySlice<UInt8>]] = [:]

        init(_ outline: JSONOutline) {
            for (path, value) in outline.values {
                if kinds[path] == nil { paths.append(path) }
                kinds[path, default: []].insert(value.kind)
                if value.kind != .object, value.kind != .array { values[path, default: []].append(value.bytes) }
            }
        }
    }

    private static func between(_ old: Shape, _ new: Shape) -> [Drift] {
        var drifts: [Drift] = []
        // Paths below a missing value, a null or an empty list are not reported.
        var silent: [String] = []
        for path in old.paths where !silent.contains(where: { isBelow(path, $0) }) {
            let before = old.kinds[path]!.subtracting([.null])
            guard let kinds = new.kinds[path] else {
                silent.append(path)
                // An empty list does not show the type of its elements.
                if path.hasSuffix("[]") {
                    drifts.append(Drift(.info, "\(name(path.dropLast(2))): the list is empty now"))
                } else {
                    drifts.append(Drift(.breaking, "\(name(path)): gone"))
                }
                continue
            }
            let after = kinds.subtracting([.null])
            if !before.isEmpty, !after.isEmpty, !after.isSubset(of: before) {
                silent.append(path)
                drifts.append(Drift(.breaking, "\(name(path)): was \(words(before)), is now \(words(after))"))
            } else if after.isEmpty, !before.isEmpty {
                silent.append(path)
                drifts.append(Drift(.info, "\(name(path)): null now"))
            } else if let values = old.values[path], let others = new.values[path], values != others {
                drifts.append(Drift(.info, "\(name(path)): other values"))
            }
        }
        for path in new.paths where old.kinds[path] == nil && !silent.contains(where: { isBelow(path, $0) }) {
            silent.append(path)
            let parent = path.hasSuffix("[]") ? String(path.dropLast(2)) : nil
            if let parent, old.kinds[parent] != nil { continue }
            drifts.append(Drift(.notice, "\(name(path)): new"))
        }
        return drifts
    }

    private static func isBelow(_ path: String, _ other: String) -> Bool {
        guard path.hasPrefix(other), let next = path.dropFirst(other.count).first else { return false }
        return other.isEmpty || next == "." || next == "["
    }

    private static func name(_ path: some StringProtocol) -> String { path.isEmpty ? "the body" : String(path) }

    private static func words(_ kinds: Set<JSONKind>) -> String {
        kinds.map(\.rawValue).sorted().joined(separator: " or ")
    }
}
