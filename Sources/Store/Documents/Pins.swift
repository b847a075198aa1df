/// Which version of which object a document shows at one place.
struct Pin: Hashable {
    var object: ObjectID
    var version: Int64
}

/// The pins of a document in pre-order, as bytes.
enum Pins {
    /// Differences to the pin before: what came in one answer has near numbers.
    static func encode(_ pins: [Pin]) -> [UInt8] {
        var writer = VariableWriter()
        var last = Pin(object: .zero, version: 0)
        for pin in pins {
            writer.append(signed: pin.object.rawValue - last.object.rawValue)
            writer.append(signed: pin.version - last.version)
            last = pin
        }
        return writer.bytes
    }

    static func decode(_ bytes: [UInt8]) throws(StoreError) -> [Pin] {
        var reader = VariableReader(bytes)
        var pins: [Pin] = []
        var last = Pin(object: .zero, version: 0)
        while !reader.isAtEnd {
            guard let object = reader.nextSigned(), let version = reader.nextSigned() else {
                throw .corrupt("a document's pins are cut short")
            }
            last = Pin(object: ObjectID(rawValue: last.object.rawValue &+ object), version: last.version &+ version)
            pins.append(last)
        }
        return pins
    }
}
