import HTTPSemantics
import HTTPServer
import Store

/// Why a reader of changes has missed some: said in the place of what is missing, never passed over.
///
/// What such a reader has to do is to read anew what it wants to know, and to go on from there.
package struct ChangeReset: Sendable, Equatable {
    enum Reason: String, Sendable {
        /// The number is none that this store gave: another store's, of the future, or of a commit lost with the power.
        case unknown
        /// Older changes than are kept.
        case evicted
        /// Changes of objects that a clean has removed, their names with them.
        case cleaned
    }

    package static let eventName = "reset"

    let reason: Reason
    /// For people.
    let message: String
    /// The number after which changes are missing, where it is known.
    var after: Int64?
    /// The number after which nothing is missing any more.
    let upTo: Int64

    static func unknown(upTo: Int64) -> ChangeReset {
        ChangeReset(
            reason: .unknown,
            message: "the number to go on after is none of this store's; what happened before \(upTo) is not told",
            upTo: upTo
        )
    }

    static func evicted(after: Int64, upTo: Int64) -> ChangeReset {
        ChangeReset(
            reason: .evicted,
            message: "the changes after \(after) up to \(upTo) are no longer kept",
            after: after,
            upTo: upTo
        )
    }

    static func cleaned(_ count: Int, after: Int64, upTo: Int64) -> ChangeReset {
        ChangeReset(
            reason: .cleaned,
            message:
                "between \(after) and \(upTo) there were \(count) changes of objects that a clean has removed since",
            after: after,
            upTo: upTo
        )
    }

    var document: JSONText {
        var members: [(name: String, value: JSONText)] = [
            ("reason", .string(reason.rawValue)), ("message", .string(message)),
        ]
        if let after { members.append(("after", .integer(after))) }
        return .object(members + [("upTo", .integer(upTo))])
    }

    var event: [UInt8] { EventStreamText.event(Self.eventName, id: upTo, data: document.bytes) }
}

extension ObjectChange {
    /// As programs are told of it, on one line.
    ///
    /// - Parameter number: its number for the outside.
    func document(_ number: Int64, withValues: Bool) -> JSONText {
        var members: [(name: String, value: JSONText)] = [
            ("sequence", .integer(number)), ("kind", .string(kind.name)), ("upstream", .string(upstream)),
            ("principal", .string(principal)), ("context", .string(context)), ("model", .string(model)),
            ("id", .raw(id.onOneLine)), ("time", .string(StoreTime.text(time))),
        ]
        if withValues { members.append(("object", json.map { .raw($0.onOneLine) } ?? .null)) }
        return .object(members)
    }

    func event(_ number: Int64, withValues: Bool) -> [UInt8] {
        EventStreamText.event(kind.name, id: number, data: document(number, withValues: withValues).bytes)
    }
}
