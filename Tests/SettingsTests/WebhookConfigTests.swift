import Glibc
import Mapping
import TestSupport
import Testing

@testable import Settings

/// `webhooks:` of an upstream.
struct WebhookConfigTests {
    private let folder = TemporaryFolder()
    private let secret: String

    init() throws { secret = try folder.write("s3cret\n", to: "secret") }

    private func config(_ hook: String, signature: String = "webhook_signature: github, ", models: String? = nil)
        -> String
    {
        let models = models ?? "Issue: { identity: id, modified: at }, Plain: { identity: id }, Part: { identity: [] }"
        return """
            models: { \(models) }
            upstreams: { a: { url: "https://a.example", \(signature)webhooks: { h: { \(hook) } } } }
            """
    }

    private func found(_ yaml: String) -> [String] {
        ConfigFile.parse(yaml, file: "x", environment: [:]).diagnostics.map(\.description)
    }

    @Test func `a webhook has a secret, and paths in its payloads with their models`() throws {
        let keys =
            "secret: \(secret), objects: { issue: Issue, data.object: Plain }, events: [\"issue*\"], principal: p-0123abcd, "
            + "headers: [\"Accept: application/json\"]"
        let hook = try #require(try settings(config(keys)).upstreams[0].webhooks.first)
        #expect(hook.name == "h" && hook.secret.all == [Array("s3cret".utf8)])
        #expect(hook.objects == [.init(path: "issue", model: "Issue"), .init(path: "data.object", model: "Plain")])
        #expect(hook.rule?.model == "Issue" && hook.rule?.also.map(\.root) == ["data.object"])
        #expect(hook.counts("issues") && !hook.counts("star") && !hook.counts(nil))
        #expect(hook.principal == "p-0123abcd" && hook.headers == ["Accept: application/json"])
        #expect("\(hook)".contains("s3cret") == false)
    }

    @Test func `presets say how their services sign`() throws {
        for (preset, signature) in [("github", "github"), ("gitlab", "gitlab"), ("stripe", "stripe")] {
            let model = preset == "stripe" ? "Customer" : "Issue"
            let yaml = """
                include: \(preset)
                upstreams: { \(preset): { webhooks: { changes: { secret: \(secret), objects: { issue: \(model) } } } } }
                """
            let upstream = try settings(yaml).upstreams[0]
            #expect(upstream.webhookSignature?.rawValue == signature)
            #expect(upstream.webhooks.map(\.name) == ["changes"])
        }
    }

    @Test func `an including file changes a webhook key by key`() throws {
        let base = try folder.write(config("secret: \(secret), objects: { issue: Issue }"), to: "base.yaml")
        let yaml = "include: \(base)\nupstreams: { a: { webhooks: { h: { events: [x] } } } }"
        let hook = try #require(try settings(yaml).upstreams[0].webhooks.first)
        #expect(hook.events == ["x"] && hook.objects.count == 1 && !hook.file.isEmpty)
    }

    @Test(
        arguments: [
            ("objects: { i: Issue }", "\"secret\" is missing"),
            ("secret: SECRET", "\"objects\" is missing"),
            ("secret: SECRET, objects: {}", "there is none; write for example `{ user: User }`"),
            ("secret: SECRET, objects: { i: Isue }", "there is no model \"Isue\"; did you mean \"Issue\"?"),
            ("secret: SECRET, objects: { i: Part }", "objects of \"Part\" have no identity, so a delivery names none"),
            ("secret: SECRET, objects: { /i: Issue }", "names are separated by dots; write \"i\""),
            ("secret: SECRET, objects: { i: Issue }, principal: ada", "\"ada\" is not a principal's label"),
            ("secret: SECRET, objects: { i: Issue }, principal: p-0123ABCD", "is not a principal's label"),
            ("secret: SECRET, objects: { i: Plain }, principal: anonymous", "no model of its objects has \"modified\""),
            ("secret: SECRET, objects: { i: Issue }, headers: [\"Accept: x\"]", "\"headers\" is for the requests of a"),
            (
                "secret: SECRET, objects: { i: Issue }, principal: anonymous, headers: [x]",
                "\"x\" is not a header field"
            ),
            ("secret: SECRET, object: { i: Issue }, objects: { i: Issue }", "unknown key \"object\""),
            ("secret: SECRET.missing, objects: { i: Issue }", "the webhook's secret cannot be read"),
            ("secret: SECRET.empty, objects: { i: Issue }", "is empty; put the webhook's secret on its first line"),
            ("secret: SECRET.open, objects: { i: Issue }", "every user of this machine may read"),
            ("secret: SECRET.binary, objects: { i: Issue }", "must contain secrets without control characters"),
        ]
    )
    func `a mistake in a webhook is reported once, with what to write instead`(hook: String, part: String) throws {
        try folder.write(" \n\n", to: "secret.empty")
        try folder.write("a\u{1}b", to: "secret.binary")
        #expect(chmod(try folder.write("s", to: "secret.open"), 0o644) == 0)
        let found = found(config(hook.replacing("SECRET", with: secret)))
        #expect(found.count == 1 && found.first?.contains(part) == true, "\(found)")
    }

    @Test func `an upstream with webhooks says how it signs, and names are unique among all upstreams`() {
        let hook = "secret: \(secret), objects: { i: Issue }"
        let unsigned = found(config(hook, signature: ""))
        #expect(
            unsigned.count == 1 && unsigned[0].contains("add \"webhook_signature\" with one of github, gitlab, stripe")
        )
        let upstream = "url: \"https://a.example\", webhook_signature: github"
        let twice = found(
            """
            models: { Issue: { identity: id } }
            upstreams:
              a: { \(upstream), prefix: /a, webhooks: { h: { \(hook) } } }
              b: { \(upstream), prefix: /b, webhooks: { H: { \(hook) } } }
            """
        )
        #expect(twice.count == 1 && twice[0].contains("the upstream \"a\" has a webhook of this name, too"), "\(twice)")
        let name = found(config(hook).replacing("h: {", with: "\"h/1\": {"))
        #expect(name.count == 1 && name[0].contains("\"h/1\" is not a name for a webhook"), "\(name)")
    }

    @Test func `a model that is identified by a part of the request cannot be used in a webhook`() {
        let found = found(
            config("secret: \(secret), objects: { i: Page }", models: "Page: { identity: \"@query.page\" }")
        )
        #expect(found.count == 1 && found[0].contains("are identified by what a request says"), "\(found)")
    }
}
