/// What became of a body that was to be taken apart.
public enum Decomposition: Sendable {
    /// The body holds at least one object.
    case objects(DecomposedBody)
    /// The body is kept as it is: it is not JSON, too deep, uses the reserved spelling, or holds no object.
    case opaque(MappingWarning?)
}

/// A body taken apart into the objects it is made of and the literal rest.
public struct DecomposedBody: Sendable {
    /// The body with a reference literal in the place of each outermost object; valid JSON.
    public var skeleton: [UInt8]
    /// The objects in pre-order, by their first byte: the order in which recomposition consumes payloads.
    public var occurrences: [Occurrence]
    /// What did not fit.
    public var warnings: [MappingWarning]
    /// Where in the skeleton objects begin whose members are the objects that the rule speaks of, in order.
    public var keyed: [Int] = []
    /// Whether the body shows a secret: it must not reach a disk, and what is given here is the body without it, which
    /// does not recompose to what was received.
    public var showsSecret = false

    /// The JSON pointer (RFC 6901) of an occurrence within the body; nil if there is none of this index.
    ///
    /// Costs a pass over the body up to there.
    public func pointer(toOccurrence index: Int) -> String? {
        guard occurrences.indices.contains(index) else { return nil }
        // The texts around the next reference, outermost first, and the last reference met in each.
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

    /// By occurrence, whether it stands within another object, or beside others in a response about one object.
    public func areEmbedded(in kind: Observation.Kind) -> [Bool] {
        Self.areEmbedded(skeleton: skeleton, payloads: occurrences.map(\.payload), in: kind)
    }

    /// The same of a document's pins; in a list all are alike.
    public static func areEmbedded(skeleton: [UInt8], payloads: [[UInt8]], in kind: Observation.Kind) -> [Bool] {
        guard kind != .list, payloads.count > 1, let tree = PinTree(skeleton: skeleton, pins: payloads) else {
            return Array(repeating: false, count: payloads.count)
        }
        return payloads.indices.map { kind == .write ? tree.isInner($0) : tree.isEmbedded($0) }
    }

    /// Whether putting it together again gives these very bytes.
    public func recomposes(to body: [UInt8]) -> Bool {
        recompose(skeleton: skeleton, payloads: occurrences.map(\.payload)) == body
    }
}

/// One object as one place of a body shows it.
public struct Occurrence: Sendable {
    /// Which object.
    public var name: ObjectName
    /// The object's bytes with a reference literal in the place of each object within it; valid JSON.
    public var payload: [UInt8]
    /// The declared keys found in it: the entry of `keys` and the canonical text of its value.
    public var keys: [(member: String, value: String)]
    /// Keys that the route's path gives the object and its bytes do not.
    public var boundKeys: [(member: String, value: String)] = []
}

/// Puts a body together from its skeleton and the payloads in pre-order.
///
/// Nil when there are too few payloads or too many. Costs one pass over all bytes; whoever stores a body checks the
/// result against what was received.
public func recompose(skeleton: [UInt8], payloads: [[UInt8]]) -> [UInt8]? {
    var output: [UInt8] = []
    output.reserveCapacity(payloads.reduce(skeleton.count) { $0 + $1.count })
    // What is being copied, innermost last: which payload (-1: the skeleton) and how far.
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
