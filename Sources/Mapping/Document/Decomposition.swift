/// The result of decomposing a body.
public enum Decomposition: Sendable {
    /// The body contains at least one object.
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
    /// The warnings for parts that did not fit.
    public var warnings: [MappingWarning]
    /// The offsets in the skeleton of objects whose members are the rule's objects, in order.
    public var keyed: [Int] = []
    /// Whether the body contains a secret and must not reach the disk.
    ///
    /// The parts given here are without the secrets, so they do not recompose to the received body.
    public var showsSecret = false

    /// The JSON pointer (RFC 6901) of an occurrence within the body.
    ///
    /// Nil if there is none with this index. Costs a pass over the body up to there.
    public func pointer(toOccurrence index: Int) -> String? {
        guard occurrences.indices.contains(index) else { return nil }
        // The texts around the next reference, outermost first, with the last reference found in each.
        var open: [(text: [UInt8], reference: Range<Int>)] = [(skeleton, 0..<0)]
        for occurrence in occurrences[...index] {
            while let (text, last) = open.last {
                if let found = text.withUnsafeBufferPointer({ Reference.next(in: $0, from: last.upperBound) }) {
                    open[open.count - 1].reference = found
                    break
                }
                open.removeLast()
            }
            open.append((occurrence.payload, 0..<0))
        }
        return open.dropLast().map { text, reference in
            text.withUnsafeBufferPointer { JSONPointer.text(to: reference.lowerBound, in: $0) }
        }.joined()
    }

    /// By occurrence, whether it is within another object, or one of several in a response about a single object.
    public func areEmbedded(in kind: Observation.Kind) -> [Bool] {
        Self.areEmbedded(skeleton: skeleton, payloads: occurrences.map(\.payload), in: kind)
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
        recompose(skeleton: skeleton, payloads: occurrences.map(\.payload)) == body
    }
}

/// One object as shown at one place of a body.
public struct Occurrence: Sendable {
    /// The name of the object.
    public var name: ObjectName
    /// The object's bytes with a reference literal in place of each object within it; valid JSON.
    public var payload: [UInt8]
    /// The declared keys found in the object: the entry of `keys` and the canonical text of the value.
    public var keys: [(member: String, value: String)]
    /// Keys that the route's path gives the object and its bytes do not.
    public var boundKeys: [(member: String, value: String)] = []
}

/// Rebuilds a body from its skeleton and its payloads in pre-order.
///
/// Nil if the number of payloads does not match. Costs one pass over all bytes. Before a body is stored, the result is
/// checked against the received bytes.
public func recompose(skeleton: [UInt8], payloads: [[UInt8]]) -> [UInt8]? {
    var output: [UInt8] = []
    output.reserveCapacity(payloads.reduce(skeleton.count) { $0 + $1.count })
    // The texts being copied, innermost last: the payload (-1 for the skeleton) and the position in it.
    var open: [(payload: Int, position: Int)] = [(-1, 0)]
    var next = 0
    while let (payload, position) = open.last {
        let source = payload < 0 ? skeleton : payloads[payload]
        let reference = source.withUnsafeBufferPointer { source in
            let reference = Reference.next(in: source, from: position)
            output.append(
                contentsOf: UnsafeBufferPointer(rebasing: source[position..<(reference?.lowerBound ?? source.count)])
            )
            return reference
        }
        if let reference {
            guard next < payloads.count else { return nil }
            open[open.count - 1].position = reference.upperBound
            open.append((next, 0))
            next += 1
        } else {
            open.removeLast()
        }
    }
    return next == payloads.count ? output : nil
}
