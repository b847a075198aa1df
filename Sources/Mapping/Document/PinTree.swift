/// The pin of each reference in a skeleton and its payloads.
struct PinTree {
    /// One reference literal and its pin.
    struct Place {
        var range: Range<Int>
        var pin: Int
    }

    /// The index of the skeleton among the texts; pin `i` is text `i`.
    static let skeleton = -1

    let skeleton: [UInt8]
    let pins: [[UInt8]]
    private let places: [[Place]]
    /// By pin, the text that refers to it.
    private let parents: [Int]
    /// By pin, the literal that refers to it.
    private let literals: [Range<Int>]
    /// By pin, the object it shows, if newer values may be known.
    ///
    /// Nil for a pin that is copied as it is. In a list of thousands of objects, most show their newest values: reading
    /// and hashing all names would be most of the work.
    private(set) var looked: [ObjectName?]

    /// Nil if the pins do not match the skeleton.
    init?(skeleton: [UInt8], pins: [[UInt8]]) {
        self.skeleton = skeleton
        self.pins = pins
        var places: [[Place]] = Array(repeating: [], count: pins.count + 1)
        var parents: [Int] = []
        var literals: [Range<Int>] = []
        var open: [(text: Int, position: Int)] = [(Self.skeleton, 0)]
        var next = 0
        while let (text, position) = open.last {
            let source = text < 0 ? skeleton : pins[text]
            let place: Place? = source.withUnsafeBufferPointer { source in
                Reference.next(in: source, from: position).map { Place(range: $0, pin: next) }
            }
            guard let place else {
                open.removeLast()
                continue
            }
            guard next < pins.count else { return nil }
            places[text + 1].append(place)
            parents.append(text)
            literals.append(place.range)
            open[open.count - 1].position = place.range.upperBound
            open.append((next, 0))
            next += 1
        }
        guard next == pins.count else { return nil }
        (self.places, self.parents, self.literals) = (places, parents, literals)
        looked = Array(repeating: nil, count: pins.count)
    }

    /// The object that a pin shows; nil if its literal is damaged.
    func name(of pin: Int) -> ObjectName? {
        text(parents[pin]).withUnsafeBufferPointer { Reference.name(at: literals[pin], in: $0) }
    }

    /// Whether a pin's object is within another one, or one of several.
    func isEmbedded(_ pin: Int) -> Bool { isInner(pin) || places[Self.skeleton + 1].count > 1 }

    /// Whether a pin's object is within another one.
    func isInner(_ pin: Int) -> Bool { parents[pin] != Self.skeleton }

    /// Reads the names of the pins that may show outdated values; returns false if one of them is damaged.
    mutating func look(where mayHaveChanged: (_ pin: Int) -> Bool) -> Bool {
        for pin in pins.indices where mayHaveChanged(pin) {
            guard let name = name(of: pin) else { return false }
            looked[pin] = name
        }
        return true
    }

    func text(_ index: Int) -> [UInt8] { index < 0 ? skeleton : pins[index] }

    /// The references directly in a stretch of a text, in order.
    func places(in text: Int, _ range: Range<Int>) -> ArraySlice<Place> {
        let all = places[text + 1]
        var (low, high) = (0, all.count)
        while low < high {
            let middle = (low + high) / 2
            if all[middle].range.lowerBound < range.lowerBound { low = middle + 1 } else { high = middle }
        }
        let rest = all[low...]
        return rest[..<(rest.firstIndex { $0.range.lowerBound >= range.upperBound } ?? rest.endIndex)]
    }
}
