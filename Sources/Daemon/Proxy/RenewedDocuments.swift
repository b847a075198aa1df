import Store

/// What was last made of the fields of documents by a 304 or a HEAD; more than can be on their way into the store at a time.
///
/// Who reads a document before its renewal is committed, because memory has no room for it, finds it here.
struct RenewedDocuments {
    /// What a renewal changes: the rest of the document is as it was.
    struct Renewal {
        /// The fields in the form of `StoredHead`.
        var head: [UInt8]
        var policy: AnswerPolicy
    }

    private static let limit = 4096
    private var known: [DocumentID: Renewal] = [:]
    private var order: [DocumentID] = []
    private var next = 0

    /// The last renewal of a document, committed or not; nil where none is known.
    subscript(id: DocumentID) -> Renewal? { known[id] }

    mutating func insert(_ renewal: Renewal, of id: DocumentID) {
        guard known.updateValue(renewal, forKey: id) == nil else { return }
        guard order.count == Self.limit else { return order.append(id) }
        known[order[next]] = nil
        order[next] = id
        next = (next + 1) % Self.limit
    }
}
