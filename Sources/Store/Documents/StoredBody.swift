import GRDB
import Mapping

/// A document's body as stored: literal, or a skeleton and its pins.
struct StoredBody {
    let pins: [Pin]
    let skeleton: [UInt8]?
    let literal: [UInt8]?
    /// The offsets in the skeleton of JSON objects whose members are the document's objects.
    let keyed: [Int]

    init(document id: DocumentID, in database: Database) throws {
        let found = try database.query(
            """
            SELECT b.pins, coalesce(b.skeleton, s.skeleton), coalesce(b.body, s.body), coalesce(b.keyed, s.keyed),
                coalesce(b.compressed, s.compressed)
            FROM _bodies b LEFT JOIN _shared_bodies s ON s.id = b.shared WHERE b.document = ?
            """
        ).first(id, read: StoredBody.init)
        guard let found else { throw StoreError.corrupt("the body of document \(id) is missing") }
        self = found
    }

    private init(_ row: QueryRow) throws {
        pins = try Pins.decode(row.bytes(0))
        skeleton = row.isNull(1) ? nil : row.bytes(1)
        literal =
            if !row.isNull(4) {
                try row.withBytes(4, CompressedBody.body)
            } else {
                row.isNull(2) ? nil : row.bytes(2)
            }
        keyed = try Self.decode(row.bytes(3))
    }

    /// Encodes offsets in a skeleton, each as the distance from the previous one.
    static func encode(_ keyed: [Int]) -> [UInt8] {
        var writer = VariableWriter()
        for (place, last) in zip(keyed, [0] + keyed) { writer.append(UInt64(place - last)) }
        return writer.bytes
    }

    private static func decode(_ bytes: [UInt8]) throws -> [Int] {
        var reader = VariableReader(bytes, of: "a document's places are")
        var keyed: [Int] = []
        while !reader.isAtEnd {
            let place = UInt64(keyed.last ?? 0) &+ (try reader.next())
            guard let place = Int(exactly: place) else {
                throw StoreError.corrupt("a document's places are too far on")
            }
            keyed.append(place)
        }
        return keyed
    }

    static func pins(of id: DocumentID, in database: Database) throws -> [Pin] {
        try database.query("SELECT pins FROM _bodies WHERE document = ?")
            .first(id) { try Pins.decode($0.bytes(0)) } ?? []
    }

    static func changedObjects(among objects: Set<ObjectID>, since sequence: CommitNumber, in database: Database) throws
        -> Set<ObjectID>
    {
        var changed: Set<ObjectID> = []
        let query = try database.query("SELECT id FROM _objects WHERE id BETWEEN ?1 AND ?2 AND changed > ?3")
        for run in RowRuns.of(objects.lazy.map(\.rawValue)) {
            try query.each(run.lowerBound, run.upperBound, sequence) { row in
                if objects.contains(row.id(0)) { changed.insert(row.id(0)) }
            }
        }
        return changed
    }

    func payloads(in database: Database) throws -> [[UInt8]] {
        var known: [VersionID: [UInt8]] = [:]
        known.reserveCapacity(pins.count)
        for pin in pins { known[pin.version] = [] }
        let query = try database.query("SELECT id, payload FROM _versions WHERE id BETWEEN ? AND ?")
        var found = 0
        for run in RowRuns.of(known.keys.lazy.map(\.rawValue)) {
            try query.each(run.lowerBound, run.upperBound) { row in
                guard let index = known.index(forKey: row.id(0)) else { return }
                known.values[index] = row.bytes(1)
                found += 1
            }
        }
        guard found == known.count else { throw StoreError.corrupt("a version is missing") }
        return pins.map { known[$0.version] ?? [] }
    }

    /// The model version under which each pin was stored, in their order.
    func declaredVersions(in database: Database) throws -> [Int] {
        var declared: [VersionID: Int] = [:]
        let sql = "SELECT id, declared FROM _versions WHERE id BETWEEN ? AND ? AND declared IS NOT NULL"
        let query = try database.query(sql)
        for run in RowRuns.of(Set(pins.map(\.version.rawValue))) {
            try query.each(run.lowerBound, run.upperBound) { declared[$0.id(0)] = Int($0.integer(1)) }
        }
        return pins.map { declared[$0.version] ?? 0 }
    }

    /// The payloads of the pins migrated to the current model versions; nil if they need no migration.
    func migrated(_ payloads: [[UInt8]], by models: Models?, in database: Database) throws -> [[UInt8]]? {
        guard let models, models.haveVersions, let skeleton, !pins.isEmpty else { return nil }
        return models.migrated(skeleton: skeleton, pins: payloads, declared: try declaredVersions(in: database))
    }

    /// For each pin, whether its object is embedded in another one, or one of several, in a response of this kind.
    func areEmbedded(in kind: Observation.Kind, _ database: Database) throws -> [Bool] {
        guard kind != .list, pins.count > 1 else { return Array(repeating: false, count: pins.count) }
        let payloads = try payloads(in: database)
        return DecomposedBody.areEmbedded(skeleton: skeleton ?? [], payloads: payloads, in: kind)
    }

    func received(payloads: [[UInt8]]) throws -> [UInt8] {
        if let literal { return literal }
        guard let skeleton, let body = recompose(skeleton: skeleton, payloads: payloads) else {
            throw StoreError.corrupt("a body cannot be put together")
        }
        return body
    }
}

/// The version of an object that a document shows at one place.
struct Pin: Hashable {
    var object: ObjectID
    var version: VersionID
}

/// Encodes the pins of a document in pre-order.
enum Pins {
    /// Encodes each pin as a difference to the previous one: the objects of one response mostly have close numbers.
    static func encode(_ pins: [Pin]) -> [UInt8] {
        var writer = VariableWriter()
        var last = Pin(object: .zero, version: .zero)
        for pin in pins {
            writer.append(signed: pin.object.rawValue - last.object.rawValue)
            writer.append(signed: pin.version.rawValue - last.version.rawValue)
            last = pin
        }
        return writer.bytes
    }

    static func decode(_ bytes: [UInt8]) throws(StoreError) -> [Pin] {
        var reader = VariableReader(bytes, of: "a document's pins are")
        var pins: [Pin] = []
        var last = Pin(object: .zero, version: .zero)
        while !reader.isAtEnd {
            let object = last.object.rawValue &+ (try reader.nextSigned())
            let version = last.version.rawValue &+ (try reader.nextSigned())
            last = Pin(object: ObjectID(rawValue: object), version: VersionID(rawValue: version))
            pins.append(last)
        }
        return pins
    }
}

/// Groups rows that are read by number: rows close together are read in one range.
///
/// The rows of one response mostly have consecutive numbers. A step to the next row costs a tenth of a look-up from the
/// root of the table.
enum RowRuns {
    /// Ascending ranges that contain all of these numbers, with gaps of less than eight.
    static func of(_ numbers: some Sequence<Int64>) -> [ClosedRange<Int64>] {
        var runs: [ClosedRange<Int64>] = []
        for number in numbers.sorted() {
            if let last = runs.last, number &- last.upperBound <= 8 {
                runs[runs.count - 1] = last.lowerBound...number
            } else {
                runs.append(number...number)
            }
        }
        return runs
    }
}
