import Store

/// What there is to know of the documents that were changed last, while readers of the store may still find them as they were.
///
/// Bounded: more than can be on their way into the store, or out of it, at a time.
struct RecentDocuments<Value> {
    private static var limit: Int { 4096 }
    private var known: [DocumentID: Value] = [:]
    private var order: [DocumentID] = []
    private var next = 0

    /// What was last noted of a document, whether it is committed or not; nil where nothing is known.
    subscript(id: DocumentID) -> Value? { known[id] }

    mutating func insert(_ value: Value, of id: DocumentID) {
        guard known.updateValue(value, forKey: id) == nil else { return }
        guard order.count == Self.limit else { return order.append(id) }
        known[order[next]] = nil
        order[next] = id
        next = (next + 1) % Self.limit
    }
}
