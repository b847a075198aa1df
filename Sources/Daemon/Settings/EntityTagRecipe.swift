import CachePolicy
import HTTPSemantics
import Yams

/// How an upstream makes its entity tags (`etag:`).
///
/// A tag is the SHA-256, in hexadecimal digits, of the values of these request fields as far as the request has them, each
/// followed by a colon, and then of the body.
package struct EntityTagRecipe: Sendable, Equatable {
    /// The names of the request fields, and at the end `body`; empty if no recipe is declared.
    var sha256: [String] = []

    /// The names of the request fields, in lower case.
    package var fields: [String] { sha256.dropLast().map { $0.lowercased() } }

    static let body = "body"

    /// What is wrong with a list that is not a field for each member, and the body at the end.
    static func complaint(_ members: [String]) -> String? {
        guard members.last?.lowercased() == body else {
            return "the last member must be body: the tag covers the request fields before it, and then the body"
        }
        var seen: Set<String> = []
        for member in members where !seen.insert(member.lowercased()).inserted { return "\"\(member)\" occurs twice" }
        return nil
    }
}

extension EntityTagRecipe: ConfigSection {
    static let keys: [ConfigKey<EntityTagRecipe>] = documented([
        """
        A tag is the SHA-256 of the values of these request fields, as far as a request has them and each followed by a \
        colon, and then of the body, before compression.
        """: ConfigKey(
            "sha256",
            .list(.text),
            example: "[Accept, Authorization, Cookie, body]",
            comparing: ConfigChange.comparison(of: \.sha256, .list(.text))
        ) { node, recipe, reader in
            guard let members = reader.checkedTexts(node, FieldName.complaint) else { return }
            if let complaint = EntityTagRecipe.complaint(members) { return reader.errorAtPath(node.place, complaint) }
            recipe.sha256 = members
        }
    ])
}

extension ConfigDraft {
    /// Checks that stored responses can be validated across principals as the settings say.
    func validateAcross(_ upstream: UpstreamDraft, _ reader: inout ConfigReader) {
        let settings = upstream.settings
        if let unknown = settings.etag.fields.first(where: {
            FieldName.complaint($0) == nil && !Self.isKnown($0, in: settings)
        }) {
            let word = settings.etag.sha256.first { $0.lowercased() == unknown } ?? unknown
            reader.error(
                upstream.places["etag"],
                "etag.sha256: \"\(word)\" is neither a field of \"principal\" nor one of \"context\"; correct the name, or add it there"
            )
        }
        guard settings.validateAcross != .off else { return }
        let place = upstream.places["validate_across"]
        if settings.validateAcross == .computed, settings.etag.sha256.isEmpty {
            reader.error(
                place,
                "computed needs to know how the upstream makes its entity tags; add for example "
                    + "`etag: { sha256: [Accept, Authorization, Cookie, body] }`, or write off"
            )
        } else if settings.shared {
            reader.error(
                place,
                "with \"shared\", clients have their responses in common already; write off, or remove \"shared\""
            )
        }
    }

    /// Whether Larder distinguishes requests by the values of a field.
    private static func isKnown(_ field: String, in settings: Configuration.Upstream) -> Bool {
        let name = Array(field.utf8)
        if settings.principal.contains(where: { PrincipalWords.name(of: $0).lowercased() == field }) { return true }
        if name.withUnsafeBytes({ bytes in
            ContextFields(settings.context).matchers.contains { $0.matches(bytes) }
        }) {
            return true
        }
        return switch NameMeaning.ofField(name) {
        case .credential, .identity: true
        case .harmless, .unknown: false
        }
    }
}
