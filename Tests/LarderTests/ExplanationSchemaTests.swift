import Foundation
import Testing

@testable import Admin
@testable import HTTPSemantics
@testable import Larder

/// What `/explain` writes is what the OpenAPI document describes.
@Suite struct ExplanationSchemaTests {
    /// One of everything.
    static let whole = Explanation(
        request: .init(
            method: "GET",
            upstream: "api",
            url: .init(client: "/api/x", upstream: "/x", readAs: "client"),
            sent: "https://api.example.com/x",
            key: "/x",
            route: .init(path: "x", method: "GET", model: "[X]"),
            principal: .init(label: "p-12345678", isKnown: true, fields: ["authorization"]),
            context: ["accept-language=de"],
            view: "wire"
        ),
        overrides: .init(
            cache: "force",
            fresh: "5m",
            stale: "1h",
            negative: "1m",
            varyIgnore: ["user-agent"],
            keySort: true,
            keyIgnore: ["utm_*"]
        ),
        variants: [
            .init(
                isSelected: true,
                status: 200,
                selection: ["x-a=1"],
                inMemory: true,
                document: 7,
                form: "received",
                isDirty: false,
                objects: 2,
                bytes: 1234,
                age: 10,
                timeToLive: -5,
                entityTag: "\"a\"",
                lastModified: "Sun, 06 Nov 1994 08:49:37 GMT"
            )
        ],
        others: [
            .init(
                principal: "p-87654321",
                context: ["accept=a/b"],
                differences: ["accept: a/b instead of none"],
                status: 200,
                selection: ["x-a"],
                age: 1,
                timeToLive: 2
            )
        ],
        unstored: .init(
            status: 403,
            secondsAgo: 9,
            rule: "no-store",
            decidedBy: "upstream",
            reason: "the upstream said Cache-Control: no-store",
            differences: ["another credential"]
        ),
        freshness: .init(
            isFresh: false,
            terms: [.init(name: "lifetime", seconds: 5, source: "Cache-Control: max-age")],
            rules: ["no-cache"]
        ),
        mode: "online",
        online: .init(
            action: "fetch",
            status: 200,
            cacheStatus: "larder; fwd=stale",
            reason: "it has been stale for 5 s"
        ),
        offline: .init(action: "serve", status: 200, cacheStatus: "larder; hit", reason: "nobody is asked"),
        upstream: .init(
            conditions: ["If-None-Match: \"a\""],
            notModified: "renews it",
            storing: "is not stored: its route says cache: never",
            failure: "it is passed on"
        ),
        remedy: "The response says nothing of caching."
    )

    private func object(_ json: [UInt8]) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(json)) as? [String: Any])
    }

    /// Complains where value and schema differ.
    private func compare(_ value: Any, _ schema: [String: Any], at path: String) {
        switch schema["type"] as? String {
        case "object":
            let (members, described) = (
                value as? [String: Any] ?? [:], schema["properties"] as? [String: [String: Any]] ?? [:]
            )
            #expect(members.keys.allSatisfy { $0 == $0.lowercased() }, "\(path)")
            #expect(members.keys.sorted() == described.keys.sorted(), "\(path)")
            for (name, member) in members { compare(member, described[name] ?? [:], at: "\(path).\(name)") }
        case "array":
            let items = schema["items"] as? [String: Any] ?? [:]
            #expect((value as? [Any])?.isEmpty == false, "\(path)")
            for element in value as? [Any] ?? [] { compare(element, items, at: "\(path)[]") }
        case "string": #expect(value is String, "\(path)")
        case "integer": #expect(value is Int, "\(path)")
        case "boolean": #expect(value is Bool, "\(path)")
        case let other: Issue.record("\(path) has the type \(other ?? "none")")
        }
    }

    @Test func `the explanation's schema describes exactly its members`() throws {
        compare(
            try object(AdminJSON.encode(Self.whole)),
            try object(ResponseSchema.make(of: Explanation.self).bytes),
            at: ""
        )
    }

    @Test func `members that may be missing are not required`() throws {
        var least = Self.whole
        (least.overrides, least.unstored, least.freshness, least.upstream) = (nil, nil, nil, nil)
        (least.request.route, least.online.status, least.remedy) = (nil, nil, nil)
        let required = try object(ResponseSchema.make(of: Explanation.self).bytes)["required"] as? [String] ?? []
        #expect(Set(try object(AdminJSON.encode(least)).keys) == Set(required))
        #expect(try AdminJSON.decode(Explanation.self, from: AdminJSON.encode(least)) == least)
    }

    @Test func `the explanation's text contains every member`() {
        var explanation = Self.whole
        explanation.variants[0].entityTag = "\"a\u{1B}[31m\""
        let text = explanation.text
        #expect(!text.contains("\u{1B}"))
        for piece in [
            "p-12345678 (by authorization)", "accept-language=de", "GET  x  [X]", "cache: force; fresh: 5m",
            "vary ignores user-agent", "key sorted", "in memory and on disk as document 7", "If-None-Match: \"a\"",
            "rules: no-cache", "5 s  Cache-Control: max-age", "accept: a/b instead of none",
            "the upstream said Cache-Control: no-store (no-store, decided by: upstream)",
            "its request had another credential", "is not stored: its route says cache: never",
        ] {
            #expect(text.contains(piece), "\(piece) in\n\(text)")
        }
    }
}
