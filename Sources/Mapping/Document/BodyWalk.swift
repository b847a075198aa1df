/// One pass over a body that validates it and notes where the objects of declared models begin and end.
///
/// Only members that a model declares are looked at; everything else is scanned over. Nothing is copied.
struct BodyWalk {
    /// An object met on the way, in the order of first bytes.
    ///
    /// Its name is nil while it is being read, and stays so if it
    /// has no identity: then its bytes belong to whatever it lies in.
    struct Found {
        var start: Int
        var end = 0
        var model: Int
        /// The index behind the last object within this one.
        var subtreeEnd = 0
        var name: ObjectName?
        var keys: [(member: String, value: String)] = []
        var modified: String?
    }

    /// The value of a member that the model reads: identity, key or modified.
    private struct Capture {
        var start = 0
        var end = 0
        var isRepeated = false
    }

    private let text: UnsafeBufferPointer<UInt8>
    private let scanner: JSONScanner
    private let models: [CompiledModel]
    private let tree: PathTree.View
    /// The captures of all objects that are open, innermost last.
    private var captures: [Capture] = []
    private(set) var found: [Found] = []
    private(set) var notes = WarningNotes()

    init(_ text: UnsafeBufferPointer<UInt8>, models: [CompiledModel], tree: PathTree.View) {
        self.text = text
        self.models = models
        self.tree = tree
        scanner = JSONScanner(text, allowsReferences: false)
    }

    /// Walks the whole body; the offset of its end or a `JSONScanner.Failure`.
    mutating func walk(model: Int, isList: Bool, root: [String]) -> Int {
        let end =
            root.isEmpty
            ? content(scanner.skipSpace(0), model: model, isList: isList, depth: 0)
            : envelope(scanner.skipSpace(0), root[...], model: model, isList: isList, depth: 0)
        guard end >= 0 else { return end }
        let textEnd = scanner.skipSpace(end)
        return textEnd == text.count ? textEnd : JSONScanner.Failure.malformed
    }

    // MARK: What the rule speaks of

    /// Goes down the envelope's key path.
    private mutating func envelope(
        _ position: Int,
        _ path: ArraySlice<String>,
        model: Int,
        isList: Bool,
        depth: Int
    ) -> Int {
        guard let name = path.first else { return content(position, model: model, isList: isList, depth: depth) }
        guard scanner.byte(position) == UInt8(ascii: "{") else {
            notes.note(.envelopeMissing, at: position)
            return scanner.scanValue(position, depth: depth)
        }
        var hits = 0
        let before = found.count
        let end = members(position, depth: depth) { walk, nameStart, nameEnd, isEscaped, value in
            guard walk.isName(nameStart, nameEnd, isEscaped, name) else {
                return walk.scanner.scanValue(value, depth: depth + 1)
            }
            hits += 1
            return walk.envelope(value, path.dropFirst(), model: model, isList: isList, depth: depth + 1)
        }
        if hits != 1 {
            // Twice is no observation: which of the two would it be?
            found.removeSubrange(before...)
            notes.note(.envelopeMissing, at: position)
        }
        return end
    }

    /// The value that the rule says is an object or a list of them.
    private mutating func content(_ position: Int, model: Int, isList: Bool, depth: Int) -> Int {
        switch scanner.byte(position) {
        case UInt8(ascii: "{"):
            if isList { notes.note(.objectForList, at: position, model: models[model].name) }
            return object(position, model: model, depth: depth, isExpected: true)
        case UInt8(ascii: "["):
            if isList { return elements(position, model: model, depth: depth, areExpected: true) }
            notes.note(.arrayForObject, at: position, model: models[model].name)
        case UInt8(ascii: "n"):
            break
        default:
            notes.note(.notAnObject, at: position, model: models[model].name)
        }
        return scanner.scanValue(position, depth: depth)
    }

    // MARK: Values of declared models

    private mutating func elements(_ open: Int, model: Int, depth: Int, areExpected: Bool) -> Int {
        guard depth < JSONScanner.maximumDepth else { return JSONScanner.Failure.tooDeep }
        var position = scanner.skipSpace(open + 1)
        if scanner.byte(position) == UInt8(ascii: "]") { return position + 1 }
        while true {
            position =
                scanner.byte(position) == UInt8(ascii: "{")
                ? object(position, model: model, depth: depth + 1, isExpected: areExpected)
                : scanner.scanValue(position, depth: depth + 1)
            guard position >= 0 else { return position }
            position = scanner.skipSpace(position)
            let byte = scanner.byte(position)
            guard byte == UInt8(ascii: ",") else {
                return byte == UInt8(ascii: "]") ? position + 1 : JSONScanner.Failure.malformed
            }
            position = scanner.skipSpace(position + 1)
        }
    }

    private mutating func object(_ start: Int, model index: Int, depth: Int, isExpected: Bool) -> Int {
        let slot = found.count
        let firstCapture = captures.count
        found.append(Found(start: start, model: index))
        for _ in 0..<models[index].captureCount { captures.append(Capture()) }
        let end = members(start, of: models[index].root, firstCapture: firstCapture, depth: depth)
        guard end >= 0 else { return end }
        close(slot, end: end, firstCapture: firstCapture, isExpected: isExpected)
        captures.removeLast(captures.count - firstCapture)
        return end
    }

    /// The members of an object at a node of a model's paths.
    private mutating func members(_ start: Int, of node: Int, firstCapture: Int, depth: Int) -> Int {
        let declared = tree.nodes[node]
        guard declared.hasChildren else { return scanner.scanValue(start, depth: depth) }
        return members(start, depth: depth) { walk, nameStart, nameEnd, isEscaped, value in
            guard let child = walk.child(of: declared, nameStart, nameEnd, isEscaped) else {
                return walk.scanner.scanValue(value, depth: depth + 1)
            }
            return walk.member(value, at: child, firstCapture: firstCapture, depth: depth + 1)
        }
    }

    /// The value of a declared member.
    private mutating func member(_ start: Int, at index: Int, firstCapture: Int, depth: Int) -> Int {
        let node = tree.nodes[index]
        let end: Int
        switch scanner.byte(start) {
        case UInt8(ascii: "{") where node.relation >= 0:
            if node.isMany { notes.note(.objectForList, at: start, model: models[Int(node.relation)].name) }
            end = object(start, model: Int(node.relation), depth: depth, isExpected: false)
        case UInt8(ascii: "[") where node.relation >= 0 && node.isMany:
            end = elements(start, model: Int(node.relation), depth: depth, areExpected: false)
        case UInt8(ascii: "{") where node.hasChildren:
            end = members(start, of: index, firstCapture: firstCapture, depth: depth)
        default:
            if node.relation >= 0, scanner.byte(start) == UInt8(ascii: "[") {
                notes.note(.arrayForObject, at: start, model: models[Int(node.relation)].name)
            }
            end = scanner.scanValue(start, depth: depth)
        }
        guard node.captures != 0, end >= 0 else { return end }
        var bits = node.captures
        while bits != 0 {
            let capture = firstCapture + bits.trailingZeroBitCount
            bits &= bits - 1
            captures[capture].isRepeated = captures[capture].end > 0
            captures[capture].start = start
            captures[capture].end = end
        }
        return end
    }

    // MARK: The end of an object

    private mutating func close(_ slot: Int, end: Int, firstCapture: Int, isExpected: Bool) {
        let model = models[found[slot].model]
        found[slot].end = end
        found[slot].subtreeEnd = found.count
        found[slot].name = name(of: model, at: found[slot].start, firstCapture: firstCapture, isExpected: isExpected)
        guard found[slot].name != nil else {
            if found.count == slot + 1 { found.removeLast() }
            return
        }
        for (offset, key) in model.keys.enumerated() {
            let capture = captures[firstCapture + model.identityCount + offset]
            guard capture.end > 0, !capture.isRepeated else { continue }
            if case .text(let value) = Identity.read(literal(capture)) { found[slot].keys.append((key, value)) }
        }
        guard model.modifiedPath != nil else { return }
        let capture = captures[firstCapture + model.modifiedCapture]
        guard capture.end > 0, !capture.isRepeated else { return }
        found[slot].modified = String(decoding: literal(capture), as: UTF8.self)
    }

    private mutating func name(
        of model: CompiledModel,
        at start: Int,
        firstCapture: Int,
        isExpected: Bool
    ) -> ObjectName? {
        guard model.hasIdentity else { return nil }
        var parts: [String] = []
        for index in 0..<model.identityCount {
            let capture = captures[firstCapture + index]
            guard capture.end > 0 else {
                if isExpected { notes.note(.identityMissing, at: start, model: model.name) }
                return nil
            }
            guard !capture.isRepeated else {
                notes.note(.identityRepeated, at: start, model: model.name)
                return nil
            }
            switch Identity.read(literal(capture)) {
            case .text(let text):
                parts.append(text)
            case .none:
                if isExpected { notes.note(.identityMissing, at: start, model: model.name) }
                return nil
            case .unusable:
                notes.note(.identityUnusable, at: start, model: model.name)
                return nil
            }
        }
        return ObjectName(model: model.name, identity: Identity.join(parts))
    }

    private func literal(_ capture: Capture) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(rebasing: text[capture.start..<capture.end])
    }

    // MARK: Members

    /// Goes over the members of the object that begins here; `value` scans each value and returns its end.
    @inline(__always)
    private mutating func members(
        _ open: Int,
        depth: Int,
        _ value: (inout BodyWalk, _ nameStart: Int, _ nameEnd: Int, _ isEscaped: Bool, _ value: Int) -> Int
    ) -> Int {
        guard depth < JSONScanner.maximumDepth else { return JSONScanner.Failure.tooDeep }
        var position = scanner.skipSpace(open + 1)
        if scanner.byte(position) == UInt8(ascii: "}") { return position + 1 }
        while true {
            guard scanner.byte(position) == UInt8(ascii: "\"") else { return JSONScanner.Failure.malformed }
            let name = scanner.scanName(position)
            guard name.end >= 0 else { return name.end }
            let valueStart = scanner.skipColon(name.end)
            guard valueStart >= 0 else { return valueStart }
            position = value(&self, position, name.end, name.isEscaped, valueStart)
            guard position >= 0 else { return position }
            position = scanner.skipSpace(position)
            let byte = scanner.byte(position)
            guard byte == UInt8(ascii: ",") else {
                return byte == UInt8(ascii: "}") ? position + 1 : JSONScanner.Failure.malformed
            }
            position = scanner.skipSpace(position + 1)
        }
    }

    @inline(__always)
    private func child(of node: PathTree.Node, _ open: Int, _ end: Int, _ isEscaped: Bool) -> Int? {
        isEscaped
            ? escapedChild(of: node, open, end)
            : tree.child(of: node, scanner.base + open + 1, end - open - 2, readable: text.count - open - 1)
    }

    @inline(never)
    private func escapedChild(of node: PathTree.Node, _ open: Int, _ end: Int) -> Int? {
        guard var name = JSONString.text(UnsafeBufferPointer(rebasing: text[open..<end])), !name.isEmpty else {
            return nil
        }
        return name.withUTF8 { tree.child(of: node, $0.baseAddress!, $0.count, readable: $0.count) }
    }

    private func isName(_ open: Int, _ end: Int, _ isEscaped: Bool, _ name: String) -> Bool {
        if isEscaped {
            return JSONString.text(UnsafeBufferPointer(rebasing: text[open..<end]))
                .map { $0.utf8.elementsEqual(name.utf8) } ?? false
        }
        return name.utf8.elementsEqual(text[open + 1..<end - 1])
    }
}

/// Warnings while a body is walked: cheap notes of offsets, worded only once the body is known to be JSON.
struct WarningNotes {
    /// A body that does not fit at all would otherwise warn of each element.
    static let limit = 20

    struct Note {
        var kind: MappingWarning.Kind
        var offset: Int
        var model: String?
    }

    private(set) var notes: [Note] = []

    mutating func note(_ kind: MappingWarning.Kind, at offset: Int, model: String? = nil) {
        guard notes.count < Self.limit else { return }
        // A list whose every element lacks an identity is one finding, not a hundred.
        if notes.contains(where: { $0.kind == kind && $0.model == model }) { return }
        notes.append(Note(kind: kind, offset: offset, model: model))
    }
}
