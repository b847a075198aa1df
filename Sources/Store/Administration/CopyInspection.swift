import GRDB
import Mapping

/// A stored response as the caller's own code reads it: what the store keeps for it as opaque bytes.
public struct OpaqueResponse: Sendable {
    public var status: Int
    /// The `Vary` selection.
    public var variant: [UInt8]
    public var head: [UInt8]
    /// The input for computing freshness.
    public var policy: [UInt8]
}

/// Reads everything in a rebuilt copy as the store will read it, and refuses what the store cannot have written.
///
/// `CopyRebuilding` has checked the types and ranges of columns; this is about bytes that are decoded.
struct CopyInspection {
    let database: Database
    let models: [UpstreamKey: UpstreamModels]
    /// No time may be later, in microseconds.
    let latest: Int64
    /// The most bytes that a body may have: a few rows, shown very often, make an endless one.
    let bodyLimit: Int
    let isServable: @Sendable (OpaqueResponse) -> Bool

    func run() throws {
        try database.query("SELECT payload FROM _versions").each { row in
            guard Self.isObject(row.bytes(0)) else { throw StoreError.corrupt("a version is not a JSON object") }
        }
        try database.query("SELECT id, length, status, variant, head, policy FROM _documents").each { row in
            try check(row.id(0), length: row.integer(1))
            let (status, variant) = (Int(row.integer(2)), row.bytes(3))
            let response = OpaqueResponse(status: status, variant: variant, head: row.bytes(4), policy: row.bytes(5))
            guard isServable(response) else { throw StoreError.corrupt("the fields of a response cannot be served") }
        }
        try database.query(
            """
            SELECT \(StoredState.columns), m.text, u.text, o.version FROM _objects o
            JOIN _collections c ON c.id = o.collection JOIN _scopes s ON s.id = c.scope
            JOIN _names m ON m.id = c.model JOIN _names u ON u.id = s.upstream
            """
        ).each { row in
            let stored = try StoredState(row, from: 0)
            try check(stored)
            let base = stored.entries.first.flatMap { $0.observation == .zero ? nil : $0.version.rawValue }
            guard row.isNull(9) ? base == nil : row.integer(9) == base else {
                throw StoreError.corrupt("an object's version is not the one that its state names")
            }
            // Throws if a row that it needs is missing.
            _ = try stored.state(of: row.string(7), models[row.upstream(8)]?.models, in: database)
        }
    }

    private static func isObject(_ text: [UInt8]) -> Bool {
        text.first { $0 > 0x20 } == UInt8(ascii: "{") && JSONBody.isWhole(text)
    }

    // MARK: Documents

    private func check(_ id: DocumentID, length: Int64) throws {
        let stored = try StoredBody(document: id, in: database)
        let objects = try database.query("SELECT 1 FROM _objects WHERE id = ?")
        for pin in stored.pins where try objects.integer(pin.object) == nil {
            throw StoreError.corrupt("a response shows an object that is missing")
        }
        if let skeleton = stored.skeleton {
            guard JSONBody.isWhole(skeleton), stored.keyed.allSatisfy(skeleton.indices.contains) else {
                throw StoreError.corrupt("the shape of a body is not JSON")
            }
        }
        let payloads = try stored.payloads(in: database)
        var size = max(stored.skeleton?.count ?? 0, stored.literal?.count ?? 0)
        for payload in payloads {
            size += payload.count
            guard size <= 2 * bodyLimit else { throw StoreError.corrupt("a body is larger than any that is stored") }
        }
        if let skeleton = stored.skeleton {
            guard let body = recompose(skeleton: skeleton, payloads: payloads), JSONBody.isWhole(body) else {
                throw StoreError.corrupt("a body cannot be put together")
            }
        }
        guard try stored.received(payloads: payloads).count == length else {
            throw StoreError.corrupt("a body has another length than its row says")
        }
    }

    // MARK: Objects

    private func check(_ state: StoredState) throws {
        let versions = try database.query("SELECT 1 FROM _versions WHERE id = ?")
        for entry in state.entries {
            // The last entry may stand for versions that are rows of their own.
            let isStored = try entry.version == .zero || versions.integer(entry.version) != nil
            guard isStored, RowBounds.numbers ~= entry.uses, RowBounds.numbers ~= entry.observation.rawValue else {
                throw StoreError.corrupt("an object's state names a version that is missing")
            }
        }
        guard state.merged.map(Self.isObject) ?? true, state.accumulated.isEmpty || Self.isObject(state.accumulated)
        else { throw StoreError.corrupt("an object's values are not JSON") }
        let observations = try database.query("SELECT 1 FROM _observations WHERE id = ?")
        for source in state.knowledge.sources where try observations.integer(source) == nil {
            throw StoreError.corrupt("an object names a response that is missing")
        }
        guard state.knowledge.hasPossibleTimes(until: latest) else {
            throw StoreError.corrupt("a value was observed at no possible time")
        }
        guard case .groups(let groups) = state.knowledge else { return }
        for value in groups.flatMap({ [$0.doubt?.value, $0.former?.value] }).compactMap(\.self) {
            guard JSONBody.isWhole(value) else { throw StoreError.corrupt("a former or doubtful value is not JSON") }
        }
    }
}
