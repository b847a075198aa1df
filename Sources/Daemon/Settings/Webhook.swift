import HTTPSemantics
package import Mapping
import Synchronization
import Yams

extension Configuration {
    /// A path to which an upstream sends what has changed.
    package struct Webhook: Sendable, Equatable {
        /// The last segment of its path; unique among all upstreams.
        package var name = ""
        package var file = ""
        package let secret = WebhookSecret()
        /// Where a payload shows objects, in the order of the file.
        package var objects: [Subject] = []
        /// The names of the events that count, which may contain `*`; empty for all.
        var events: [String] = []
        /// The label of the principal for whom a payload is an observation.
        package var principal: String?
        /// The fields of the requests whose representation a payload has, as `Name: value`.
        package var headers: [String] = []

        /// A place in a payload and the model of what is there.
        package struct Subject: Sendable, Equatable {
            package var path: String
            package var model: String
        }

        package init() {}

        /// What a payload contains; nil without objects, which only a faulty config has.
        package var rule: BodyRule? {
            let rules = objects.map { BodyRule(model: $0.model, arity: .one, root: $0.path) }
            guard let first = rules.first else { return nil }
            return BodyRule(model: first.model, arity: first.arity, root: first.root, also: Array(rules.dropFirst()))
        }

        /// Whether an event of this name counts.
        package func counts(_ event: String?) -> Bool {
            guard !events.isEmpty else { return true }
            guard let event else { return false }
            return events.contains { Glob($0).matches(Array(event.utf8)) }
        }

        /// How a service signs its deliveries, and names them.
        package enum Signature: String, Sendable, CaseIterable {
            /// `X-Hub-Signature-256`: an HMAC of the body.
            case github
            /// `X-Gitlab-Token`: the secret itself.
            case gitlab
            /// `Stripe-Signature`: a time, and an HMAC of it and the body.
            case stripe
        }
    }
}

/// The secrets of a webhook, of which there are two while one replaces the other; hidden from logs and errors.
///
/// They may change while the daemon runs. Any thread.
package final class WebhookSecret: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    private let lines = Mutex<[[UInt8]]>([])

    /// Every secret that a sender may have.
    package var all: [[UInt8]] { lines.withLock(\.self) }

    /// Reads a file, each line of which is a secret; throws if it has none, or is not Larder's alone.
    ///
    /// - Returns: whether they differ from the former ones.
    @discardableResult
    package func read(_ path: String) throws(InvalidValue) -> Bool {
        let found = try FileBytes.readSecret(path, called: "the webhook's secret").split(separator: 0x0A).map { line in
            Array(line.reversed().drop { $0 == 0x0D || $0 == 0x20 || $0 == 0x09 }.reversed())
        }.filter { !$0.isEmpty }
        if found.isEmpty { throw InvalidValue("\"\(path)\" is empty; put the webhook's secret on its first line") }
        if found.joined().contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) {
            throw InvalidValue("\"\(path)\" must contain secrets without control characters, one on each line")
        }
        return lines.withLock { lines in
            defer { lines = found }
            return lines != found
        }
    }

    package static func == (one: WebhookSecret, other: WebhookSecret) -> Bool { one.all == other.all }

    package var description: String { "[secret]" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// A webhook as the file has it, with its places.
struct WebhookDraft: ConfigSection {
    var settings = Configuration.Webhook()
    var place: Place?
    var places: [String: Place] = [:]
    var objectPlaces: [Place?] = []

    static let keys: [ConfigKey<WebhookDraft>] = documented([
        """
        The file that contains the secret, which the service has, too; only Larder's user may be able to read it. It is read \
        again when it changes. While one secret replaces another, write both, each on a line.
        """:
            .parsed(
                "secret",
                wanted: "a file's path",
                example: "\"${CREDENTIALS_DIRECTORY}/github-webhook\"",
                isRequired: true
            ) { path, draft in
                draft.settings.file = path
                try draft.settings.secret.read(path)
            },
        """
        Where a payload shows an object, and of which model: key paths with dots. What shows the object is then fetched again \
        when it is next requested, for every principal.
        """: .objects,
        """
        The events that count, such as issues; "*" stands for any text. GitHub names them in X-GitHub-Event, GitLab in \
        X-Gitlab-Event, Stripe in the payload's type. Default: all.
        """: .texts("events", \.settings.events, example: "[issues, issue_comment]"),
        """
        The label of a principal, as `larder documents` shows it. What a payload shows of an object that is known to this \
        principal also becomes known at once, if the model's "modified" member proves that it is newer. Default: nobody's.
        """:
            .parsed("principal", wanted: "a principal's label", example: "p-1a2b3c4d") { text, draft in
                let digits = text.hasPrefix("p-") ? text.utf8.dropFirst(2) : Substring("").utf8
                let isLabel = digits.count == 8 && digits.allSatisfy { "0123456789abcdef".utf8.contains($0) }
                guard isLabel || text == "anonymous" else {
                    throw InvalidValue(
                        "\"\(text)\" is not a principal's label; write one that `larder documents` shows, such as p-1a2b3c4d, or "
                            + "anonymous"
                    )
                }
                draft.settings.principal = text
            },
        """
        For "principal": the fields of its requests that choose a representation, as "Name: value"; a payload has the one that \
        they ask for.
        """:
            .texts("headers", \.settings.headers, example: "[\"Accept: application/vnd.github+json\"]") { line in
                let name = line.prefix { $0 != ":" }
                return name.utf8.count < line.utf8.count && FieldName.complaint(String(name)) == nil
                    ? nil : "is not a header field; write it as \"Name: value\""
            },
    ])
}

extension ConfigKey<WebhookDraft> {
    fileprivate static var objects: ConfigKey {
        ConfigKey("objects", .named(.text, name: "user"), example: "{ user: User }", isRequired: true) {
            (node, draft, reader) in
            guard let pairs = reader.pairs(node, wanted: "key paths, each with the model of the object there")
            else { return }
            if pairs.isEmpty { reader.errorAtPath(node.place, "there is none; write for example `{ user: User }`") }
            for (path, place, value) in pairs {
                if let complaint = BodyRule.complaint(aboutRoot: path) {
                    reader.errorAtPath(place, "\"\(path)\" is not a key path: \(complaint)")
                    continue
                }
                guard let model = reader.text(value, wanted: "the name of a model") else { continue }
                draft.settings.objects.append(.init(path: path, model: model))
                draft.objectPlaces.append(value.place)
            }
        }
    }
}

extension ConfigKey<UpstreamDraft> {
    static var webhooks: ConfigKey {
        ConfigKey(
            "webhooks",
            .named(.section(WebhookDraft.keys.map(\.facts)), name: "users"),
            comparing: ConfigChange.comparison(of: \.settings.webhooks, named: \.name)
        ) { node, draft, reader in
            for (name, place, value) in reader.pairs(node, wanted: "names of webhooks, each with its keys") ?? [] {
                var webhook = WebhookDraft(place: place)
                webhook.settings.name = name
                reader.check(name: name, at: place, of: "a webhook")
                webhook.places = reader.under(name) { $0.section(value, into: &webhook) }
                draft.webhooks.append(webhook)
                draft.settings.webhooks.append(webhook.settings)
            }
        }
    }
}

extension ConfigDraft {
    /// Checks the names of webhooks, which are in one path whatever upstream they belong to.
    func validateWebhookNames(_ reader: inout ConfigReader) {
        var known: [String: String] = [:]
        for upstream in upstreams {
            for webhook in upstream.webhooks {
                let name = webhook.settings.name
                guard let other = known[name.lowercased()] else {
                    known[name.lowercased()] = upstream.settings.name
                    continue
                }
                reader.error(
                    webhook.place,
                    "the upstream \"\(other)\" has a webhook of this name, too; rename one, because nothing but the name is in "
                        + "its path"
                )
            }
        }
    }

    /// Checks the webhooks of one upstream against its models.
    func validateWebhooks(of upstream: UpstreamDraft, _ reader: inout ConfigReader) {
        guard !upstream.webhooks.isEmpty else { return }
        if upstream.settings.webhookSignature == nil {
            let words = Configuration.Webhook.Signature.allCases.map(\.rawValue).joined(separator: ", ")
            reader.error(
                upstream.places["webhooks"],
                "it is not known how the upstream signs what it sends; add \"webhook_signature\" with one of \(words)"
            )
        }
        let models = Dictionary(models(for: upstream).map { ($0.declaration.name, $0) }) { first, _ in first }
        for webhook in upstream.webhooks {
            for (subject, place) in zip(webhook.settings.objects, webhook.objectPlaces) {
                guard let model = models[subject.model] else {
                    reader.once(place, Self.unknownModel(subject.model, models.keys))
                    continue
                }
                let lineage = Self.lineage(of: model, among: models)
                if !Self.hasIdentity(model, among: models) {
                    reader.once(
                        place,
                        "objects of \"\(subject.model)\" have no identity, so a delivery names none; give the model one, or "
                            + "remove \"\(subject.path)\""
                    )
                } else if lineage[0].declaration.identity.contains(where: ContextValue.isSpelled) {
                    reader.once(
                        place,
                        "objects of \"\(subject.model)\" are identified by what a request says, not by a delivery; remove "
                            + "\"\(subject.path)\""
                    )
                }
            }
            validateObserver(of: webhook, models, &reader)
        }
    }

    private func validateObserver(
        of webhook: WebhookDraft,
        _ models: [String: ModelDraft],
        _ reader: inout ConfigReader
    ) {
        guard webhook.settings.principal != nil else {
            if !webhook.settings.headers.isEmpty {
                reader.error(
                    webhook.places["headers"],
                    "\"headers\" is for the requests of a \"principal\", and there is none; add it, or remove \"headers\""
                )
            }
            return
        }
        let hasTime = webhook.settings.objects.contains { subject in
            guard let model = models[subject.model] else { return true }
            return Self.lineage(of: model, among: models).contains { $0.declaration.modified != nil }
        }
        if !hasTime {
            reader.warning(
                webhook.places["principal"],
                "no model of its objects has \"modified\", so no delivery can be known to be newer, and \"principal\" has no "
                    + "effect; add \"modified\" to the model, or remove \"principal\""
            )
        }
    }
}
