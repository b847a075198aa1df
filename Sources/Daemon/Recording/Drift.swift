import Mapping

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

    package init(_ severity: Severity, _ text: String) {
        self.severity = severity
        self.text = text
    }

    /// The parts of a response that are compared.
    package struct Response: Sendable {
        package var status: Int
        package var contentType: String?
        package var body: [UInt8]

        package init(status: Int, contentType: String?, body: [UInt8]) {
            (self.status, self.contentType, self.body) = (status, contentType, body)
        }

        fileprivate var essence: String {
            (contentType ?? "").prefix { $0 != ";" }.lowercased().filter { $0 != " " }
        }
    }

    /// The differences between two responses, the most severe first.
    package static func between(_ old: Response, _ new: Response) -> [Drift] {
        var drifts: [Drift] = []
        if old.status != new.status {
            drifts.append(Drift(.breaking, "status: was \(old.status), is now \(new.status)"))
        }
        if old.essence != new.essence {
            drifts.append(Drift(.breaking, "content type: was \(shown(old.essence)), is now \(shown(new.essence))"))
        }
        if let before = JSONOutline(old.body), let after = JSONOutline(new.body) {
            drifts += between(Shape(before), Shape(after))
        } else if old.body != new.body {
            drifts.append(Drift(.info, "body: other bytes; were \(old.body.count), are now \(new.body.count)"))
        }
        return drifts.enumerated().sorted { ($0.element.severity, $0.offset) < ($1.element.severity, $1.offset) }
            .map(\.element)
    }

    private static func shown(_ text: String) -> String { text.isEmpty ? "none" : text }

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
        path.hasPrefix(other) && path.count > other.count
            && (other.isEmpty
                || ["." as Character, "["].contains(path[path.index(path.startIndex, offsetBy: other.count)]))
    }

    private static func name(_ path: some StringProtocol) -> String { path.isEmpty ? "the body" : String(path) }

    private static func words(_ kinds: Set<JSONOutline.Kind>) -> String {
        kinds.map(\.rawValue).sorted().joined(separator: " or ")
    }
}
