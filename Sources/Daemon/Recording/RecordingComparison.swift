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
    /// One request whose response has changed.
    package struct Finding: Sendable {
        /// Method and target, such as `GET /users/1`.
        package var request: String
        /// The most severe first.
        package var drifts: [Drift]
    }

    package var findings: [Finding] = []
    /// The requests that were not compared, each with the reason.
    package var skipped: [(request: String, reason: String)] = []
    package var compared = 0
    /// The new responses, by the number of the exchange that they replace.
    package var updates: [Int: WholeExchange.Response] = [:]

    package init() {}

    /// Whether programs written for the recorded responses may fail with the new ones.
    package var isBreaking: Bool { findings.contains { $0.drifts.contains { $0.severity == .breaking } } }

    package mutating func compare(_ number: Int, of recording: RecordingContents, with new: WholeExchange.Response)
        throws(RecordingError)
    {
        let exchange = recording.exchanges[number]
        let drifts = Drift.between(try recording.folder.whole(exchange.response), new)
        compared += 1
        guard !drifts.isEmpty else { return }
        findings.append(Finding(request: exchange.title, drifts: drifts))
        updates[number] = new
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
        for number in old.exchanges.indices {
            let exchange = old.exchanges[number]
            let key = try Self.key(exchange, old, exchange.upstream)
            guard let other = places[key]?.first else {
                findings.append(
                    Finding(request: exchange.title, drifts: [Drift(.breaking, "not in \(new.folder.path)")])
                )
                continue
            }
            places[key]?.removeFirst()
            try compare(number, of: old, with: try new.folder.whole(new.exchanges[other].response))
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

    /// Writes the new responses into the recording, redacted; those that cannot be searched for secrets are left out, and listed
    /// as not compared.
    ///
    /// - Parameter credentials: The fields with which the new responses were asked for, besides the recorded ones.
    package mutating func update(
        _ recording: RecordingContents,
        upstreams: [ProxiedUpstream],
        credentials: Fields
    ) throws(RecordingError) {
        guard !updates.isEmpty else { return }
        let editor = try RecordingWriter(recording.folder, config: recording.manifest.config, recorded: 0)
        let redactors = RedactedWriter(editor, upstreams: upstreams, credentials: credentials)
        var exchanges = recording.exchanges
        for (number, update) in updates.sorted(by: { $0.key < $1.key }) {
            let exchange = exchanges[number]
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
                updates[number] = nil
                skipped.append((exchange.title, "the new body \(error.reason)"))
                continue
            }
            var updated = exchange
            updated.response = .init(status: response.status, fields: response.fields.recorded)
            // What no reader would accept must not get in.
            guard updated.flaw == nil else { continue }
            exchanges[number] = updated
            exchanges[number].response.body = try editor.writeBody(response.body, response.fields)
        }
        try editor.replace(exchanges)
        let used = Set(exchanges.flatMap { [$0.request.body, $0.response.body] }.compactMap(\.self))
        for number in updates.keys {
            guard let old = recording.exchanges[number].response.body, !used.contains(old) else { continue }
            unlink("\(recording.folder.path)/\(old)")
        }
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
    /// A sentence for people.
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
        var kinds: [String: Set<JSONOutline.Kind>] = [:]
        var values: [String: [ArraySlice<UInt8>]] = [:]

        init(_ outline: JSONOutline) {
            for value in outline.values {
                if kinds[value.path] == nil { paths.append(value.path) }
                kinds[value.path, default: []].insert(value.kind)
                if value.kind != .object, value.kind != .array { values[value.path, default: []].append(value.bytes) }
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

    private static func words(_ kinds: Set<JSONOutline.Kind>) -> String {
        kinds.map(\.rawValue).sorted().joined(separator: " or ")
    }
}
