/// What was read from around an object goes back to where it was read.
extension UnmapRun {
    /// A value that belongs to an object around the one that shows it.
    struct Surrounding {
        /// The value with its path, put together apart.
        var node: Int
        /// The object that the path begins at.
        var origin: Int
        /// Where the value is shown.
        var pointer: String?
        var model: String
    }

    /// Where the object is written that a path begins at; nil if there is none.
    func node(of origin: PropertyPlan.Place.Origin) -> Int? {
        switch origin {
        case .object: frames.last?.node
        case .parent: frames.count > 1 ? frames[frames.count - 2].node : isEnveloped ? WireBuilder.root : nil
        case .root: builder.isObject(WireBuilder.root) ? WireBuilder.root : frames.first?.node
        }
    }

    /// Whether a property is written back: to a place of its own, or to one around the object that is there.
    func isWritten(_ property: PropertyPlan) -> Bool {
        switch property.output {
        case .none, .given: false
        case .place(let place): node(of: place.origin) != nil
        case .itself, .parts: true
        }
    }

    /// Lays the values that belong to objects around into these, once all of them have been written: what they have
    /// themselves stays, and of several objects within that say something the first one counts.
    mutating func writeSurroundings() {
        for value in surroundings where !builder.fill(value.origin, from: value.node) {
            let message = "Another value stands in its place in the object around; it is not written back."
            warn(.notWritten, message, at: value.pointer, model: value.model)
        }
        surroundings = []
        builder.spellWholes()
    }

    /// Tells of a value that belongs to an object around, if that is not there.
    mutating func warnIfUnreachable(_ output: PropertyPlan.Output, _ target: Target) {
        guard case .place(let place) = output, node(of: place.origin) == nil else { return }
        let message = "The object around that it belongs to is not there; it is not written back."
        warn(.notWritten, message, at: target.shown, model: target.model)
    }

    /// Holds a value against what the list or the object that holds its object will say of it: its position, its name.
    mutating func compare(_ json: [UInt8], with source: PropertyPlan.ContextSource, _ target: Target) {
        guard let standing = frames.last?.standing else { return }
        let given: JSONSlice? =
            switch source {
            case .index: standing.position.flatMap { JSONSlice(Array(String($0).utf8)) }
            case .key: standing.key.map { documents[$0.document].slice($0.node) }
            case .url, .capture, .header, .parent, .root: nil
            }
        if let given, let said = JSONSlice(json), said.isEqual(to: given) { return }
        let what = if case .index = source { "position" } else { "name" }
        let message = "The object has another \(what) than this; it is not written back."
        warn(.notWritten, message, at: target.shown, model: target.model)
    }
}
