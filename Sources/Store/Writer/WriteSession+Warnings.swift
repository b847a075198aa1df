import GRDB
import Mapping

/// Warnings: one row for each kind and subject, counted; so many rows at most.
extension WriteSession {
    static let warningLimit: Int64 = 1000

    /// Counts what the mapping had to say of a body.
    ///
    /// - Parameter url: what was asked for.
    func warn(_ warnings: [MappingWarning], about rule: BodyRule?, url: String, at time: Int64) throws {
        guard !warnings.isEmpty else { return }
        try warn(
            warnings.map { warning in
                StoredWarning(
                    kind: warning.kind.rawValue,
                    subject: (warning.model ?? rule?.model ?? "") + (warning.property.map { ".\($0)" } ?? ""),
                    message: warning.message,
                    url: url,
                    pointer: warning.pointer ?? "",
                    count: warning.count
                )
            },
            at: time
        )
    }

    func warn(_ warnings: [StoredWarning], at time: Int64) throws {
        for warning in warnings {
            try query(
                """
                INSERT INTO _warnings VALUES (?1, ?2, ?3, ?6, ?7, ?4, ?5, ?5)
                ON CONFLICT DO UPDATE SET message = ?3, url = ?6, pointer = ?7, count = count + ?4, last = ?5
                """
            ).run(
                .string(warning.kind),
                .string(warning.subject),
                .string(warning.message),
                .integer(Int64(warning.count)),
                .integer(time),
                .string(warning.url),
                .string(warning.pointer)
            )
        }
        let count = try query("SELECT count(*) FROM _warnings").first { $0.integer(0) } ?? 0
        guard count > Self.warningLimit else { return }
        try query(
            """
            DELETE FROM _warnings WHERE (kind, subject) IN
            (SELECT kind, subject FROM _warnings ORDER BY last LIMIT ?)
            """
        ).run(.integer(count - Self.warningLimit))
    }
}
