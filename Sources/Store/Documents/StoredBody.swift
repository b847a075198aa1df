import GRDB
import Mapping

/// A document's body as it lies in the file: literal, or a skeleton and its pins.
struct StoredBody {
    let pins: [Pin]
    let skeleton: [UInt8]?
    let literal: [UInt8]?
    /// Where in the skeleton objects begin whose members are the document's objects.
    let keyed: [Int]

    init(document id: DocumentID, in database: Database) throws {
        let row = try Query(database, "SELECT pins, skeleton, body, keyed FROM _bodies WHERE document = ?")
            .first(.integer(id)) { row in
                (
                    pins: row.bytes(0),
                    skeleton: row.isNull(1) ? nil : row.bytes(1),
                    literal: row.isNull(2) ? nil : row.bytes(2),
                    keyed: row.bytes(3)
                )
            }
        guard let row else { throw StoreError.corrupt("the body of document \(id) is missing") }
        pins = try Pins.decode(row.pins)
        skeleton = row.skeleton
        literal = row.literal
        keyed = try Self.decode(row.keyed)
    }

    /// Places in a skeleton as bytes, each as its distance from the one before.
    static func encode(_ keyed: [Int]) -> [UInt8] {
        var writer = VariableWriter()
        for (place, last) in zip(keyed, [0] + keyed) { writer.append(UInt64(place - last)) }
        return writer.bytes
    }

    private static func decode(_ bytes: [UInt8]) throws -> [Int] {
        var reader = VariableReader(bytes)
        var keyed: [Int] = []
        while !reader.isAtEnd {
            guard let distance = reader.next(), let place = Int(exactly: UInt64(keyed.last ?? 0) &+ distance) else {
                throw StoreError.corrupt("a document's places are cut short")
            }
            keyed.append(place)
        }
        return keyed
    }

    static func pins(of id: DocumentID, in database: Database) throws -> [Pin] {
        let bytes = try Query(database, "SELECT pins FROM _bodies WHERE document = ?")
            .first(.integer(id)) { $0.bytes(0) }
        return try Pins.decode(bytes ?? [])
    }

    /// The payloads of the pins, in their order.
    func payloads(in database: Database) throws -> [[UInt8]] {
        var known: [Int64: [UInt8]] = [:]
        let query = try Query(database, "SELECT payload FROM _versions WHERE id = ?")
        return try pins.map { pin in
            if let payload = known[pin.version] { return payload }
            guard let payload = try query.first(.integer(pin.version), read: { $0.bytes(0) }) else {
                throw StoreError.corrupt("version \(pin.version) is missing")
            }
            known[pin.version] = payload
            return payload
        }
    }

    /// The body as it was received.
    func received(payloads: [[UInt8]]) throws -> [UInt8] {
        if let literal { return literal }
        guard let skeleton, let body = recompose(skeleton: skeleton, payloads: payloads) else {
            throw StoreError.corrupt("a body cannot be put together")
        }
        return body
    }
}
