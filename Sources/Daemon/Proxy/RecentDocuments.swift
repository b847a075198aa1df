import Store

/// What there is to know of the documents that were changed last, while readers of the store may still find them as they were.
///
/// Bounded: more changes than can be on their way into the store, or out of it, at a time.
struct RecentDocuments<Value> {
    private static var limit: Int { 4096 }
    /// With the place of its last change in the order.
    private var known: [DocumentID: (value: Value, place: Int)] = [:]
    /// The documents of the last changes; what was changed several times is there as often.
    private var order: [DocumentID] = []
    private var next = 0

    /// What was last noted of a document, whether it is committed or not; nil where nothing is known.
    subscript(id: DocumentID) -> Value? { known[id]?.value }

    mutating func insert(_ value: Value, of id: DocumentID) {
        if order.count < Self.limit {
            order.append(id)
        } else {
            let oldest = order[next]
            if known[oldest]?.place == next { known[oldest] = nil }
            order[next] = id
        }
        known[id] = (value, next)
        next = (next + 1) % Self.limit
    }

    /// Forgets what was last noted of a document, if that is what is meant.
    mutating func remove(_ id: DocumentID, where isMeant: (Value) -> Bool) {
        if let value = self[id], isMeant(value) { known[id] = nil }
    }
}
