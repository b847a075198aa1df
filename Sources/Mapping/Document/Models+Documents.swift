extension Models {
    /// The pins of a document as their models' versions of today read them; nil where that is how they are.
    ///
    /// - Parameters:
    ///   - skeleton: the document's.
    ///   - pins: the payloads, in pre-order.
    ///   - declared: by pin, the version of its model that it was stored under.
    public func migrated(skeleton: [UInt8], pins: [[UInt8]], declared: [Int]) -> [[UInt8]]? {
        guard haveVersions, let tree = PinTree(skeleton: skeleton, pins: pins) else { return nil }
        var isChanged = false
        let migrated = pins.indices.map { pin in
            guard let name = tree.name(of: pin), declared[pin] < version(of: name.model) else { return pins[pin] }
            let payload = migrate(pins[pin], of: name.model, from: declared[pin])
            if payload != pins[pin] { isChanged = true }
            return payload
        }
        return isChanged ? migrated : nil
    }
}
