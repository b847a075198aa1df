import Glibc
import HTTPSemantics
import Store

/// How the rows of the store are shown to programs.
extension StoreCount {
    /// `objects`, `documents`, `bytes` and the number of objects per model.
    var members: [(name: String, value: JSONText)] {
        [
            ("objects", .integer(objects)), ("documents", .integer(documents)), ("bytes", .integer(bytes)),
            (
                "models",
                .object(models.sorted { $0.key < $1.key }.map { (name: $0.key, value: .integer($0.value)) })
            ),
        ]
    }
}

extension ObjectRow {
    /// Who the object is, and what is known of it in the very bytes that the store has.
    var document: JSONText { .object(ownMembers + unknownMember + [("object", .raw(json))]) }

    /// Since when nobody knows what has become of it; none where that is known.
    var unknownMember: [(name: String, value: JSONText)] {
        unknownSince.map { [("unknown", .string(StoreTime.text($0)))] } ?? []
    }

    /// Who the object is, and since when it is known so.
    var ownMembers: [(name: String, value: JSONText)] {
        [
            ("upstream", .string(upstream)), ("principal", .string(principal)), ("context", .string(context)),
            ("model", .string(model)), ("id", .string(identity)), ("observed", .string(StoreTime.text(observed))),
        ]
    }
}

extension DocumentRow {
    var document: JSONText {
        [
            "upstream": .string(upstream), "principal": .string(principal), "context": .string(context),
            "url": .string(url), "status": .integer(status), "objects": .integer(objects), "bytes": .integer(bytes),
            "received": .string(StoreTime.text(end)), "used": .string(StoreTime.text(used)),
        ]
    }
}

extension StoredWarning {
    var document: JSONText {
        [
            "kind": .string(kind), "subject": .string(subject), "message": .string(message),
            "url": .string(url), "pointer": .string(pointer), "count": .integer(count),
            "first": .string(StoreTime.text(first)), "last": .string(StoreTime.text(last)),
        ]
    }
}

extension Page {
    /// The rows under their name, and the cursor of the next page while there is one.
    func document(_ name: String, _ row: (Row) -> JSONText) -> JSONText {
        var members: [(name: String, value: JSONText)] = [(name, .array(rows.map(row)))]
        // A text: cursors are to be handed back, not reckoned with.
        if let next { members.append(("next", .string(String(next)))) }
        return .object(members)
    }
}

/// Which part of a list is asked for.
struct Paging: Sendable, Equatable {
    static let maximum = 1000
    static let parameters = [
        AdminRoute.Parameter(
            name: "limit",
            kind: .integer,
            sentence: "Rows of a page, 1 to \(maximum); 100 unless said otherwise."
        ),
        AdminRoute.Parameter(name: "after", sentence: "The `next` of the page before."),
    ]

    var limit = 100
    var after: Int64?

    init(_ request: AdminRequest) throws(Problem) {
        if let text = request.value("limit") {
            guard let number = Int(text), (1...Self.maximum).contains(number) else {
                throw .badRequest("limit must be a number from 1 to \(Self.maximum)")
            }
            limit = number
        }
        if let text = request.value("after") {
            guard let cursor = Int64(text) else { throw .badRequest("after must be the next of the page before") }
            after = cursor
        }
    }
}

/// Whose data is asked for.
enum Ownership {
    static let parameters = [
        AdminRoute.Parameter(name: "upstream", sentence: "An upstream's name; every upstream's unless given."),
        AdminRoute.Parameter(
            name: "principal",
            sentence: "A principal's label, such as `anonymous`; every principal's unless given."
        ),
    ]
}

extension AdminRequest {
    /// A parameter of the query; nil when it is absent or empty.
    func value(_ name: String) -> String? {
        query.first { $0.name == name }.flatMap { $0.value.isEmpty ? nil : $0.value }
    }
}

/// Times of the store's clock as people and programs read them (RFC 3339, UTC, milliseconds).
enum StoreTime {
    /// `2026-11-21T09:52:33.250Z` for microseconds since 1970.
    static func text(_ microseconds: Int64) -> String {
        let milliseconds = max(0, microseconds) / 1000
        var seconds = time_t(milliseconds / 1000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        return "\(padded(parts.tm_year + 1900, 4))-\(padded(parts.tm_mon + 1, 2))-\(padded(parts.tm_mday, 2))T"
            + "\(padded(parts.tm_hour, 2)):\(padded(parts.tm_min, 2)):\(padded(parts.tm_sec, 2))"
            + ".\(padded(Int32(milliseconds % 1000), 3))Z"
    }

    private static func padded(_ number: Int32, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
