import Foundation
import Mapping
import Store
import TestSupport
import Testing

/// Whatever is evicted, removed, restarted or shrunk: a document shows the newest observed values, or it is gone.
@Suite struct EvictionModelTests {
    /// What a store has observed, in a simple form.
    struct Observed {
        struct Document {
            var body: String
            /// Issues shown, in order; each with its literal of what belongs to the document.
            var issues: [(issue: Int, score: Int)]
            var isList: Bool
        }

        /// The newest title of each issue, the newest login of each user, by scope.
        var titles: [String: [Int: String]] = [:]
        var logins: [String: [Int: String]] = [:]
        var documents: [String: [String: Document]] = [:]

        static func body(_ document: Document, titles: [Int: String], logins: [Int: String], filler: String) -> String {
            let issues = document.issues.map { issue, score in
                let title = titles[issue] ?? "?"
                let login = logins[issue % 3] ?? "?"
                return
                    #"{"id":\#(issue), "title":"\#(title)","score":\#(score),"user":{"id":\#(issue % 3),"login":"\#(login)"},"x":"\#(filler)"}"#
            }
            return document.isList ? "[\n" + issues.joined(separator: ",\n") + "]" : issues[0]
        }
    }

    /// One of the scopes that must not mix.
    struct Scope {
        var name: String
        var principal: PrincipalID
        var context: String
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func `with eviction, documents show the newest observed values or are missing`(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let filler = String(repeating: "y", count: 12_000)
        var bench = try Bench(maximumFileBytes: 4 << 20)
        let mine = try await bench.store.principal([UInt8](repeating: 1, count: 32))
        let scopes = [
            Scope(name: "all", principal: .anonymous, context: ""),
            Scope(name: "de", principal: .anonymous, context: "de"),
            Scope(name: "mine", principal: mine, context: ""),
        ]
        var observed = Observed()
        var (found, composed) = (0, 0)
        for step in 0..<500 {
            let scope = scopes.randomElement(using: &random)!
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<60:
                let isList = Bool.random(using: &random)
                let count = isList ? Int.random(in: 1...6, using: &random) : 1
                let shown = (0..<12).shuffled(using: &random).prefix(count)
                let url =
                    isList ? "/lists/\(Int.random(in: 0..<40, using: &random))" : "/issues/\(shown[0])/\(step % 10)"
                var document = Observed.Document(
                    body: "",
                    issues: shown.map { ($0, Int.random(in: 0..<9, using: &random)) },
                    isList: isList
                )
                for issue in shown {
                    if Bool.random(using: &random) || observed.titles[scope.name]?[issue] == nil {
                        observed.titles[scope.name, default: [:]][issue] = "t\(step)"
                    }
                    if observed.logins[scope.name]?[issue % 3] == nil || Int.random(in: 0..<4, using: &random) == 0 {
                        observed.logins[scope.name, default: [:]][issue % 3] = "l\(step)"
                    }
                }
                document.body = Observed.body(
                    document,
                    titles: observed.titles[scope.name]!,
                    logins: observed.logins[scope.name]!,
                    filler: filler
                )
                // Far enough apart that no list lags.
                bench.time.advance(60_000_000)
                try await bench.receive(
                    url,
                    document.body,
                    isList ? issues : issue,
                    principal: scope.principal,
                    context: scope.context,
                    kind: .detail
                )
                observed.documents[scope.name, default: [:]][url] = document
            case 60..<65:
                guard let url = observed.documents[scope.name]?.keys.randomElement(using: &random) else { continue }
                let key = bench.key(url, principal: scope.principal, context: scope.context)
                bench.store.remove(at: key)
                await bench.store.flush()
                #expect(try await bench.store.documents(at: key).isEmpty)
                observed.documents[scope.name]?[url] = nil
            case 65..<68:
                // Shut and opened again, with less room or more.
                await bench.store.close()
                let limits: [Int64] = [4 << 20, 5 << 20, 8 << 20]
                bench = try Bench(
                    folder: bench.folder,
                    time: bench.time,
                    maximumFileBytes: limits.randomElement(using: &random)!
                )
            default:
                let urls = (observed.documents[scope.name] ?? [:]).keys.sorted()
                guard let url = urls.randomElement(using: &random), let document = observed.documents[scope.name]?[url]
                else {
                    continue
                }
                let key = bench.key(url, principal: scope.principal, context: scope.context)
                guard let stored = try await bench.store.documents(at: key).first else {
                    observed.documents[scope.name]?[url] = nil
                    continue
                }
                found += 1
                let newest = Observed.body(
                    document,
                    titles: observed.titles[scope.name]!,
                    logins: observed.logins[scope.name]!,
                    filler: filler
                )
                let shown = String(decoding: stored.body, as: UTF8.self)
                #expect(shown == newest, "seed \(seed), step \(step), \(scope.name) \(url): \(stored.form)")
                #expect((stored.form == .composed) == (newest != document.body))
                if stored.form == .composed { composed += 1 }
                let received = try await bench.store.received(stored.id)
                // The writer may have evicted it in between.
                if let received { #expect(String(decoding: received, as: UTF8.self) == document.body) }
                bench.store.touchUsed([stored.id])
                guard shown == newest else { return }
            }
        }
        #expect(found > 20 && composed > 5, "\(found) \(composed)")
        await bench.store.close()
        #expect(sqlite(bench.folder.file(), "PRAGMA integrity_check") == "ok")
    }
}
