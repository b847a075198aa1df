import Store

/// The documents dropped last; more than can be on their way out of the store at a time.
struct DroppedDocuments {
    private static let limit = 4096
    private var known: Set<DocumentID> = []
    private var order: [DocumentID] = []
    private var next = 0

    func contains(_ id: DocumentID) -> Bool { known.contains(id) }

    mutating func insert(_ id: DocumentID) {
        guard known.insert(id).inserted else { return }
        guard order.count == Self.limit else { return order.append(id) }
        known.remove(order[next])
        order[next] = id
        next = (next + 1) % Self.limit
    }
}
