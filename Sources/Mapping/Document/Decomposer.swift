/// Decomposes bodies into objects; every byte has one owner, the innermost declared model with an identity (law 5).
public struct Decomposer: Sendable {
    let models: Models
    private let objectLimit: Int

    /// Creates a decomposer for the models of one upstream.
    ///
    /// - Parameter objectLimit: a body with more objects is not decomposed, because each takes about a kilobyte of
    ///   memory until it is stored, however few bytes it has.
    public init(models: Models, objectLimit: Int = .max) { (self.models, self.objectLimit) = (models, objectLimit) }

    /// Decomposes one body; parts that do not fit stay literal, with a warning.
    ///
    /// Costs one scan and one copy of the body. Objects in clusters, or identified by their surroundings, are read a
    /// bounded number of times more.
    public func decompose(_ body: [UInt8], as rule: BodyRule, in context: MappingContext = .none) -> Decomposition {
        let plan: BodyPlan
        do throws(MappingWarning) { plan = try BodyPlan(rule, models) } catch { return .opaque(error) }
        return walk(body, plan, context, objectLimit: objectLimit) { walk, end in
            guard end >= 0 else { return .opaque(failure(end, in: walk.text)) }
            let warnings = walk.notes.warnings(about: body)
            guard walk.secrets.isEmpty else {
                let stripped = JSONSlice(body).map { strip($0, of: walk.secrets.sorted()) } ?? []
                var parts = DecomposedBody(skeleton: stripped, occurrences: [], warnings: [])
                if case .objects(let decomposed) = decompose(stripped, as: rule, in: context) { parts = decomposed }
                (parts.warnings, parts.showsSecret) = (warnings, true)
                return .objects(parts)
            }
            guard body.isUTF8 else { return .opaque(.notUTF8) }
            guard walk.found.contains(where: { $0.name != nil }) else { return .opaque(warnings.first) }
            return .objects(DecomposedBody(walk, warnings: warnings))
        }
    }

    /// The ranges of secret values in a body, in order; empty if the body does not match its rule.
    public func secretPlaces(in body: [UInt8], as rule: BodyRule, in context: MappingContext = .none) -> [Range<Int>] {
        guard models.haveSecrets, let plan = try? BodyPlan(rule, models) else { return [] }
        return walk(body, plan, context, objectLimit: .max) { walk, end in
            guard end >= 0 else { return [] }
            let scanner = JSONScanner(walk.text, allowsReferences: true)
            return walk.secrets.sorted().map { start in start..<max(start, scanner.scanValue(start, depth: 0)) }
        }
    }

    /// Walks a body and passes the walk and its result to `finish`.
    private func walk<Result>(
        _ body: [UInt8],
        _ plan: BodyPlan,
        _ context: MappingContext,
        objectLimit: Int,
        _ finish: (BodyWalk, _ end: Int) -> Result
    ) -> Result {
        body.withUnsafeBufferPointer { text in
            models.tree.withView { tree in
                var walk = BodyWalk(
                    body: body,
                    text: text,
                    scanner: JSONScanner(text, allowsReferences: false),
                    plan: plan,
                    models: models,
                    tree: tree,
                    context: context,
                    objectLimit: objectLimit,
                    budget: text.count * 8
                )
                let end = walk.walk()
                return finish(walk, end)
            }
        }
    }

    /// A body without the members and elements at these offsets, which must not reach the disk.
    private func strip(_ body: JSONSlice, of secrets: [Int]) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(body.range.count)
        func firstSecret(in value: JSONSlice) -> Int? {
            let first = secrets.boundary(where: { $0 >= value.range.lowerBound })
            return first < secrets.count && value.range.contains(secrets[first]) ? secrets[first] : nil
        }
        func isSecret(_ value: JSONSlice) -> Bool { firstSecret(in: value) == value.range.lowerBound }
        func write(_ value: JSONSlice) {
            guard firstSecret(in: value) != nil else { return output.append(contentsOf: value.bytes) }
            let isObject = value.kind == .object
            output.append(isObject ? UInt8(ascii: "{") : UInt8(ascii: "["))
            for member in value.members where !isSecret(member.value) {
                output.appendComma()
                output.append(contentsOf: value.text[member.nameRange])
                output.append(UInt8(ascii: ":"))
                write(member.value)
            }
            for element in value.elements where !isSecret(element) {
                output.appendComma()
                write(element)
            }
            output.append(isObject ? UInt8(ascii: "}") : UInt8(ascii: "]"))
        }
        write(body)
        return output
    }

    private func failure(_ failure: Int, in text: UnsafeBufferPointer<UInt8>) -> MappingWarning? {
        switch failure {
        case JSONScanner.Failure.tooDeep: return MappingWarning(.tooDeep)
        case JSONScanner.Failure.reserved:
            return MappingWarning(.reservedText, "A string of the body begins with \\u0001, which is reserved.")
        case JSONScanner.Failure.tooManyObjects:
            let many = "The body contains more than \(objectLimit) objects (limits: objects)."
            return MappingWarning(.tooManyObjects, many + " It is stored whole, and none of its objects.")
        default:
            // An empty body is normal: 204, HEAD.
            guard text.contains(where: { $0 > 0x20 }) else { return nil }
            return MappingWarning(.notJSON, "The body is not JSON.")
        }
    }
}

extension DecomposedBody {
    /// Cuts a body along the objects found in it.
    fileprivate init(_ walk: BodyWalk, warnings: [MappingWarning]) {
        let found = walk.found
        var occurrences: [Occurrence] = []
        occurrences.reserveCapacity(found.count)
        for (index, object) in found.enumerated() {
            guard let name = object.name else { continue }
            let payload = walk.cut(object.start..<object.end, index + 1..<object.subtreeEnd)
            let bound = index == walk.boundSlot ? walk.boundKeys(of: object) : []
            occurrences.append(Occurrence(name: name, payload: payload, keys: object.keys, boundKeys: bound))
        }
        skeleton = walk.cut(0..<walk.text.count, found.indices)
        (self.occurrences, self.warnings) = (occurrences, warnings)
        // A container within another object belongs to that object.
        let containers = walk.keyedStarts.filter { start in
            !found.contains { $0.name != nil && $0.start < start && start < $0.end }
        }
        keyed = containers.map { start in
            walk.cut(0..<start, 0..<(found.firstIndex { $0.start > start } ?? found.count)).count
        }.sorted()
    }
}

extension BodyWalk {
    /// Copies a range of the body, with references in place of the objects directly in it, which are among `inner`.
    fileprivate func cut(_ range: Range<Int>, _ inner: Range<Int>) -> [UInt8] {
        var size = range.count
        forEachChild(inner) { child, _ in size += 48 - (child.end - child.start) }
        var output: [UInt8] = []
        output.reserveCapacity(max(size, 16))
        var position = range.lowerBound
        forEachChild(inner) { child, name in
            output.append(contentsOf: literal(position..<child.start))
            Reference.append(name, to: &output)
            position = child.end
        }
        output.append(contentsOf: literal(position..<range.upperBound))
        return output
    }

    @inline(__always)
    private func forEachChild(_ inner: Range<Int>, _ body: (Found, ObjectName) -> Void) {
        var index = inner.lowerBound
        while index < inner.upperBound {
            if let name = found[index].name {
                body(found[index], name)
                index = found[index].subtreeEnd
            } else {
                // An object without an identity: its contents belong to the enclosing object.
                index += 1
            }
        }
    }
}

/// The result of decomposing a body.
public enum Decomposition: Sendable {
    case objects(DecomposedBody)
    /// The body is kept as it is: it is not JSON, is too deep, uses the reserved prefix, or contains no object.
    case opaque(MappingWarning?)
}

/// A body split into its objects and the literal rest.
public struct DecomposedBody: Sendable {
    /// The body with a reference literal in place of each outermost object; valid JSON.
    public var skeleton: [UInt8]
    /// The objects in pre-order, by their first bytes; recomposition consumes payloads in this order.
    public var occurrences: [Occurrence]
    public var warnings: [MappingWarning]
    /// The offsets in the skeleton of objects whose members are the rule's objects, in order.
    public var keyed: [Int] = []
    /// Whether the body contains a secret and must not reach the disk; the parts do not show it.
    public var showsSecret = false

    private var payloads: [[UInt8]] { occurrences.map(\.payload) }

    /// The JSON pointer (RFC 6901) of an occurrence within the body; nil if there is none with this index.
    public func pointer(toOccurrence index: Int) -> String? {
        guard occurrences.indices.contains(index) else { return nil }
        return PinTree(skeleton: skeleton, pins: payloads)?.pointer(to: index)
    }

    /// By occurrence, whether it is within another object, or one of several in a response about a single object.
    public func areEmbedded(in kind: Observation.Kind) -> [Bool] {
        Self.areEmbedded(skeleton: skeleton, payloads: payloads, in: kind)
    }

    /// The same for a document's pins; in a list, none counts as embedded.
    public static func areEmbedded(skeleton: [UInt8], payloads: [[UInt8]], in kind: Observation.Kind) -> [Bool] {
        guard kind != .list, payloads.count > 1, let tree = PinTree(skeleton: skeleton, pins: payloads) else {
            return Array(repeating: false, count: payloads.count)
        }
        return payloads.indices.map { kind == .write ? tree.isInner($0) : tree.isEmbedded($0) }
    }

    /// Whether recomposition yields exactly these bytes.
    public func recomposes(to body: [UInt8]) -> Bool {
        guard let recomposed = recompose(skeleton: skeleton, payloads: payloads) else { return false }
        return recomposed.withUnsafeBufferPointer { recomposed in
            body.withUnsafeBufferPointer { recomposed.hasSameBytes(as: $0) }
        }
    }
}

/// One object as shown at one place of a body.
public struct Occurrence: Sendable {
    public var name: ObjectName
    /// The object's bytes with a reference literal in place of each object within it; valid JSON.
    public var payload: [UInt8]
    /// The declared keys found in the object: the entry of `keys` and the canonical text of the value.
    public var keys: [(member: String, value: String)]
    /// Keys that the route's path gives the object and its bytes do not.
    public var boundKeys: [(member: String, value: String)] = []
}

/// Rebuilds a body from its skeleton and its payloads in pre-order; nil if their number does not match.
///
/// Before a body is stored, the result is checked against the received bytes.
public func recompose(skeleton: [UInt8], payloads: [[UInt8]]) -> [UInt8]? {
    var output: [UInt8] = []
    output.reserveCapacity(payloads.reduce(skeleton.count) { $0 + $1.count })
    let isWhole = PinTree.walk(skeleton: skeleton, pins: payloads) { _, stretch, _ in
        output.append(contentsOf: stretch)
    }
    return isWhole ? output : nil
}
