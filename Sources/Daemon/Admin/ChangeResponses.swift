import HTTPServer
import Store

/// `GET /changes` as a page.
package struct ChangesResponse: AdminBody {
    package static let sentences = [
        "changes": "The oldest first.", "resets": "What is missing between them, if anything is.",
        "next": "What to give as `since` to go on.", "more": "Whether there are more changes now.",
    ]
    package var changes: [ChangeResponse]
    package var resets: [ChangeReset]?
    package var next: String
    package var more: Bool
}

/// One change of an object; also the data of an event.
package struct ChangeResponse: AdminBody {
    package static let sentences = [
        "sequence": "The change's number.", "kind": "`created`, `changed`, `deleted` or `unknown`.",
        "upstream": "The upstream's name.", "principal": "The principal's label.",
        "context": "The representation that was asked for.", "model": "The model's name.",
        "id": "The identity, as in `/objects`.", "time": "When it was committed (RFC 3339).",
        "object": "With `values`: its newest known members; null if none are known.",
    ]
    package var sequence: Int64
    package var kind: String
    package var upstream: String
    package var principal: String
    package var context: String
    package var model: String
    package var id: String
    package var time: String
    package var object: RawJSON?

    /// - Parameter number: its number for the outside.
    init(_ change: ObjectChange, number: Int64, withValues: Bool) {
        (sequence, kind, time) = (number, change.kind.name, StoreTime.text(change.time))
        (upstream, principal, context) = (change.upstream, change.principal, change.context)
        (model, id) = (change.model, change.identity)
        if withValues { object = RawJSON(change.json?.onOneLine ?? Array("null".utf8)) }
    }

    var event: [UInt8] { EventStreamText.event(kind, id: sequence, data: AdminJSON.encode(self)) }
}

/// Why changes are missing, in the place of what is missing.
///
/// The client has to read anew what it wants to know, and can go on from there.
package struct ChangeReset: AdminBody, Equatable {
    package static let sentences = [
        "reason":
            "`unknown`: the number is not one of this store's; `evicted`: the changes are no longer kept; `cleaned`: a clean removed their objects.",
        "message": "The same as a sentence.", "after": "The number after which changes are missing, if it is known.",
        "upTo": "The number after which nothing is missing any more.",
    ]

    package static let eventName = "reset"

    let reason: String
    package let message: String
    var after: Int64?
    let upTo: Int64

    /// The number is another store's, of the future, or of a commit that was lost with the power.
    static func unknown(upTo: Int64) -> ChangeReset {
        ChangeReset(
            reason: "unknown",
            message: "the given number is not one of this store's; changes before \(upTo) are not sent",
            upTo: upTo
        )
    }

    /// The changes are older than those that are kept.
    static func evicted(after: Int64, upTo: Int64) -> ChangeReset {
        ChangeReset(
            reason: "evicted",
            message: "the changes after \(after) up to \(upTo) are no longer kept",
            after: after,
            upTo: upTo
        )
    }

    /// A clean has removed the objects, and their names with them.
    static func cleaned(_ count: Int, after: Int64, upTo: Int64) -> ChangeReset {
        ChangeReset(
            reason: "cleaned",
            message:
                "changes between \(after) and \(upTo) that are missing here, as a clean has removed their objects: \(count)",
            after: after,
            upTo: upTo
        )
    }

    var event: [UInt8] { EventStreamText.event(Self.eventName, id: upTo, data: AdminJSON.encode(self)) }
}
