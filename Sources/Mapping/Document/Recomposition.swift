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
