import GRDB
import Mapping

/// What patterns make worthless.
extension WriteSession {
    /// Keeps out answers to requests sent before now, and says which documents there are by now.
    func bar(_ patterns: [InvalidationPattern]) -> DocumentID {
        let now = clock.now()
        for pattern in patterns { barriers.invalidated(pattern, at: now) }
        return numbers.document
    }

    func documents(matching pattern: InvalidationPattern, until last: DocumentID) throws -> [DocumentID] {
        try PatternSearch(database: database).documents(matching: [pattern], until: last)
    }
}

/// Finds documents by patterns of their paths: a look at every document of the upstreams.
struct PatternSearch {
    let database: Database

    /// The documents up to an id that one of the patterns matches.
    func documents(matching patterns: [InvalidationPattern], until last: DocumentID) throws -> [DocumentID] {
        var found: [DocumentID] = []
        for (upstream, patterns) in Dictionary(grouping: patterns, by: \.upstream) {
            try Query(
                database,
                """
                SELECT id, url FROM _documents WHERE id <= ?1 AND scope IN
                (SELECT s.id FROM _scopes s JOIN _names u ON u.id = s.upstream WHERE u.text = ?2)
                """
            ).each(.id(last), .string(upstream)) { row in
                let url = row.string(1)
                if patterns.contains(where: { $0.matches(url: url) }) { found.append(row.id(0)) }
            }
        }
        return found
    }
}
