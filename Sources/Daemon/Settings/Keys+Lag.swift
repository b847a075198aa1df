import HTTPSemantics
package import Mapping
import Yams

/// How far the responses of an upstream may lag behind its newest data (`lag`).
package struct ResponseLag: ConfigSection, Equatable {
    package var lists: Duration = .seconds(30)
    var details: Duration = .zero

    static let range: ClosedRange<Duration> = .zero ... .seconds(86_400)

    static let keys: [ConfigKey<ResponseLag>] = [
        .duration(
            "lists",
            \.lists,
            in: range,
            isWhole: true,
            "For lists, searches, and objects that are embedded in others."
        ),
        .duration(
            "details",
            \.details,
            in: range,
            isWhole: true,
            "For responses that show one object, if lagging replicas serve them. Your own write may stay invisible that long."
        ),
    ]

    /// As the store takes it.
    package var stored: Lag { Lag(lists: lists.seconds * 1_000_000, details: details.seconds * 1_000_000) }

    static let key = ConfigKey<UpstreamDraft>(
        "lag",
        .either([.duration(range, isWhole: true), .section(keys.map(\.facts))]),
        fallback: Units.text(ResponseLag().lists),
        """
        How far responses of this upstream may lag behind its newest data. A single duration is for lists and searches; \
        {lists: 30s, details: 5s} sets both.
        """
    ) { node, draft, reader in
        if node.mapping != nil {
            reader.section(node, into: &draft.settings.lag)
        } else if let lists = reader.duration(node, in: range, isWhole: true) {
            draft.settings.lag.lists = lists
        }
    }
}
