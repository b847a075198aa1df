import HTTPSemantics
import Mapping
import Settings
import Testing

@testable import Proxy

/// The proof that a delivery comes from the service that knows the secret.
struct WebhookProofTests {
    private let secret = Array("It's a Secret to Everybody".utf8)

    @Test func `GitHub's own example is signed by its secret alone`() throws {
        let fields: Fields = [
            "X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
        ]
        let proof = try WebhookProof(fields, .github, now: 0)
        let body = Array("Hello, World!".utf8)
        #expect(proof.isMade(of: body, by: [secret]))
        #expect(proof.isMade(of: body, by: [[1], secret]))
        #expect(!proof.isMade(of: body + [10], by: [secret]))
        #expect(!proof.isMade(of: body, by: [[1], secret + [1]]))
        #expect(!proof.isMade(of: body, by: []))
    }

    @Test(arguments: [
        ("t=1000,v1=CODE", 1300, true), ("t=1000,v1=CODE", 1301, false), ("t=1000,v1=CODE", 700, true),
        ("t=1000,v1=CODE", 699, false), ("t=-1,v1=CODE", 0, true), ("t=9223372036854775807,v1=CODE", -5, false),
        ("t=1e3,v1=CODE", 1000, false), ("v1=CODE", 1000, false), ("t=1000", 1000, false), ("", 1000, false),
        ("t=1000,v1=ab", 1000, false), ("t=1000, v1=CODE", 1000, true), ("t=1000,v1=CODE,v1=CODE", 1000, true),
        ("t=1000" + String(repeating: ",v1=CODE", count: 9), 1000, false),
    ])
    func `a signed time may be five minutes away`(text: String, now: Int64, isAccepted: Bool) {
        let code = String(repeating: "ab", count: 32)
        let fields: Fields = ["Stripe-Signature": text.replacing("CODE", with: code)]
        #expect(((try? WebhookProof(fields, .stripe, now: now)) != nil) == isAccepted)
    }

    @Test func `a token of another length, or a field that occurs twice, proves nothing`() throws {
        let proof = try WebhookProof(["X-Gitlab-Token": "It's a Secret"], .gitlab, now: 0)
        #expect(!proof.isMade(of: [], by: [secret]))
        let twice: Fields = ["X-Gitlab-Token": "a", "x-gitlab-token": "a"]
        #expect(throws: ProblemDocument.webhookUnsigned("X-Gitlab-Token occurs more than once.")) {
            try WebhookProof(twice, .gitlab, now: 0)
        }
        #expect(throws: ProblemDocument.webhookUnsigned("X-Gitlab-Token is missing.")) {
            try WebhookProof([:], .gitlab, now: 0)
        }
    }

    @Test func `the path of a webhook is recognised in its one spelling`() {
        func name(_ path: String) -> String? { Array(path.utf8).withUnsafeBytes { IncomingDelivery.name(in: $0) } }
        #expect(name("/.well-known/larder/webhooks/issues") == "issues")
        #expect(name("/.well-known/larder/webhooks/a/b") == "a/b")
        #expect(name("/.well-known/larder/webhooks/")?.isEmpty == true)
        for path in [
            "/", "/.", "/a/.well-known/larder/webhooks/issues", "/.well-known/larder/webhooks", "/.well-known/x",
        ] {
            #expect(name(path) == nil, "\(path)")
        }
    }
}
