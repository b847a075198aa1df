import HTTPSemantics
import Recording

extension RecordingSummary {
    /// For programs.
    ///
    /// - Parameter folder: Where it is; nil if nothing was recorded.
    func json(folder: String?) -> JSONText {
        var members: [(name: String, value: JSONText)] = [
            ("exchanges", .integer(count)),
            (
                "not_recorded",
                .object(
                    skipped.sorted { $0.key.rawValue < $1.key.rawValue }.map {
                        (name: "\($0.key)".snakeCased, value: .integer($0.value))
                    }
                )
            ),
            (
                "look_secret",
                .object(suspects.sorted { $0.key < $1.key }.map { (name: $0.key, value: .integer($0.value)) })
            ),
        ]
        if let folder { members.insert(("folder", .string(folder)), at: 0) }
        if let failure { members.append(("failure", .string(failure))) }
        if let problem { members.append(("problem", .string(problem))) }
        return .object(members)
    }
}

extension String {
    fileprivate var snakeCased: String {
        reduce(into: "") { $0 += $1.isUppercase ? "_\($1.lowercased())" : "\($1)" }
    }
}

/// The report of a replay, for people and for programs.
struct ReplayReport {
    let missing: [Replayer.Miss]
    let unused: [String]

    /// Combines equal titles, with their number.
    private static func counted(_ titles: [String]) -> [(title: String, count: Int)] {
        var (order, counts): ([String], [String: Int]) = ([], [:])
        for title in titles {
            if counts[title] == nil { order.append(title) }
            counts[title, default: 0] += 1
        }
        return order.map { ($0, counts[$0] ?? 0) }
    }

    /// The maximum number of lines of each kind.
    private static let limit = 20

    /// Lines for people; empty if everything went as recorded.
    var lines: [String] {
        var lines: [String] = []
        if !missing.isEmpty {
            let all = Self.counted(missing.map(\.request))
            lines.append("asked for, and not recorded:")
            for (title, count) in all.prefix(Self.limit) {
                lines.append("  \(title)\(count > 1 ? " (\(count) times)" : "")")
                guard let miss = missing.first(where: { $0.request == title }) else { continue }
                if miss.recorded > 0 {
                    let times = miss.recorded == 1 ? "once" : "\(miss.recorded) times"
                    lines.append("    recorded \(times), and asked for more often")
                }
                for near in miss.nearest {
                    lines.append("    nearest: \(near.request)")
                    lines += near.differences.map { "      \($0)" }
                }
            }
            if all.count > Self.limit { lines.append("  … and \(all.count - Self.limit) more") }
        }
        if !unused.isEmpty {
            let all = Self.counted(unused)
            lines.append("recorded, and never asked for:")
            lines += all.prefix(Self.limit).map { "  \($0.title)\($0.count > 1 ? " (\($0.count) times)" : "")" }
            if all.count > Self.limit { lines.append("  … and \(all.count - Self.limit) more") }
        }
        return lines
    }

    var json: JSONText {
        .object([
            (
                "not_recorded",
                .array(
                    missing.map { miss in
                        .object([
                            ("request", .string(miss.request)), ("recorded", .integer(miss.recorded)),
                            (
                                "nearest",
                                .array(
                                    miss.nearest.map { near in
                                        .object([
                                            ("request", .string(near.request)),
                                            ("differences", .array(near.differences.map { .string($0) })),
                                        ])
                                    }
                                )
                            ),
                        ])
                    }
                )
            ),
            ("never_used", .array(unused.map { .string($0) })),
        ])
    }
}
