import TestSupport
import DaemonTestSupport
import Testing

@testable import CachePolicy
@testable import HTTPSemantics
@testable import Proxy

/// Random and mutated field values through every parser: none may trap, and none may loosen what a strict directive says.
@Suite struct FuzzTests {
    private static let seeds = [
        "max-age=60, no-cache=\"a, b\", stale-if-error=5, private", "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994", "W/\"a\", \"b\\\", *", "bytes=0-5,-7,9-", "bytes 0-5/10", "gzip;q=0.5, br, *;q=0",
        "https://api.example.com:443/a/../b?c#d", "<https://api.example.com/a>; rel=\"next\"", "[::1]:8080",
        "/a/%2e%2e/b%zz",
        "[\"https:\\/\\/api.example.com\\/x\", {\"https://api.example.com\":1}]", "2147483649", "\"",
    ].map { bytes($0) }

    private static func value(_ random: inout SeededGenerator) -> [UInt8] {
        if Bool.random(using: &random) {
            return (0..<Int.random(in: 0...24, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
        }
        var value = seeds.randomElement(using: &random) ?? []
        for _ in 0..<Int.random(in: 0...4, using: &random) {
            let index = Int.random(in: 0...value.count, using: &random)
            switch Int.random(in: 0..<3, using: &random) {
            case 0: value.insert(UInt8.random(in: 0...255, using: &random), at: index)
            case 1 where index < value.count: value.remove(at: index)
            default: value = Array(value.prefix(index)) + (seeds.randomElement(using: &random) ?? []).suffix(3)
            }
        }
        return value
    }

    @Test(arguments: 0..<4 as Range<UInt64>)
    func `no value crashes any parser`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let rewriter = LinkRewriter(upstream: "https://api.example.com/v3", authority: "localhost:1", prefix: "/p")
        let guarding = Guard(listeners: [.tcp(host: "127.0.0.1", port: 8787), .unix(path: "larder.sock")])
        for _ in 0..<Fuzzing.rounds(1500) {
            let value = Self.value(&random)
            let other = Self.value(&random)
            let message = Fields(
                [
                    "cache-control", "date", "expires", "age", "vary", "etag", "last-modified", "larder-cache-control",
                    "location",
                    "link", "connection", "accept", "accept-language", "if-none-match", "if-match", "if-modified-since",
                ]
                .map { Field(name: bytes($0), value: Bool.random(using: &random) ? value : other) }
            )
            let policy = ResponsePolicy(
                request: Request(method: "GET", target: "/", fields: message),
                status: Int.random(in: 100...599, using: &random),
                fields: message,
                times: ExchangeTimes(request: exampleDate, response: exampleDate),
                settings: CachePolicySettings()
            )
            #expect(StoredPolicy(bytes: policy.stored.bytes) == policy.stored)
            #expect(policy.stored.lifetime >= 0 && policy.stored.initialAge >= 0)
            _ = policy.stored.reuse(at: exampleDate + 5, for: RequestDirectives(fields: message))
            let conditions = Preconditions(fields: message, now: exampleDate)
            _ = conditions.isNotModified(method: "GET", against: .init(fields: message, policy: policy.stored))
            if let selection = VarySelection(policy.vary, request: message) {
                #expect(selection.matches(message))
                #expect(VarySelection(bytes: selection.bytes) == selection)
            }
            _ = VarySelection(bytes: value)
            _ = RangeField(lines: [value])?.select(length: 10)
            _ = ContentRange(value)
            _ = try? TargetNormaliser(basePath: "/v3").normalise(path: [0x2F] + value, query: other)
            _ = ContextFields().canonical(message)
            _ = PrincipalFields().redacted(target: value)
            _ = InvalidationTargets.find(method: "POST", url: "https://api.example.com/a", status: 201, fields: message)
            var links = message
            rewriter.rewrite(&links)
            _ = rewriter.rewritten(body: value)
            value.withUnsafeBytes { value in
                other.withUnsafeBytes { other in
                    _ = guarding.check(.init(authority: value, origin: other, secFetchSite: value))
                    _ = guarding.check(.init(authority: nil, origin: value, secFetchSite: nil))
                }
            }
        }
    }

    @Test(arguments: 0..<2 as Range<UInt64>)
    func `garbage before or after no-store does not cancel it`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<Fuzzing.rounds(1500) {
            // A quoted string may well hold the directive as text, so quotes are left out.
            let garbage = Self.value(&random).filter { $0 != 0x22 }
            #expect(ResponseDirectives(Fields([Field("Cache-Control", garbage + bytes(", no-store"))])).noStore)
            #expect(ResponseDirectives(Fields([Field("Cache-Control", bytes("no-store, ") + garbage)])).noStore)
            #expect(
                ResponseDirectives(Fields([garbage, bytes("No-Store")].map { Field("Cache-Control", $0) })).noStore
            )
        }
    }

    @Test(arguments: 0..<2 as Range<UInt64>)
    func `no target escapes its base path`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let targetNormaliser = TargetNormaliser(basePath: "/v3")
        let parts = ["..", ".", "%2e", "%2E", "/", "a", "%2f", "%5c", "%2F", ".%2e", ""].map { bytes($0) }
        for _ in 0..<Fuzzing.rounds(4000) {
            let path =
                [0x2F] + Array((0..<6).map { _ in parts[Int.random(in: 0..<parts.count, using: &random)] }.joined())
            guard let target = try? targetNormaliser.normalise(path: path, query: nil) else { continue }
            #expect(target.starts(with: bytes("/v3")))
            // However often a server decodes dots and slashes, the depth never falls below the base.
            var depth = 0
            let decoded = text(target).dropFirst(3).lowercased().replacing("%2e", with: ".").replacing("%2f", with: "/")
                .replacing("%5c", with: "/")
            for segment in decoded.split(separator: "/") {
                depth += segment == ".." ? -1 : segment == "." ? 0 : 1
                #expect(depth >= 0, "\(text(path)) → \(text(target))")
            }
        }
    }
}
