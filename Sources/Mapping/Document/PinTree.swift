/// Which pin stands at which reference of a skeleton and its payloads.
struct PinTree {
    /// One reference literal and the pin it stands for.
    struct Place {
        var range: Range<Int>
        var name: ObjectName
        var pin: Int
    }

    /// The index of the skeleton among the texts; pin `i` is text `i`.
    static let skeleton = -1

    let skeleton: [UInt8]
    let pins: [[UInt8]]
    private let places: [[Place]]
    /// By pin, the object it shows.
    let shown: [ObjectName]

    /// Nil when the pins are not those of the skeleton.
    init?(skeleton: [UInt8], pins: [[UInt8]]) {
        self.skeleton = skeleton
        self.pins = pins
        var places: [[Place]] = Array(repeating: [], count: pins.count + 1)
        var shown: [ObjectName] = []
        var open: [(text: Int, position: Int)] = [(Self.skeleton, 0)]
        var next = 0
        while let (text, position) = open.last {
            let source = text < 0 ? skeleton : pins[text]
            let place: Place? = source.withUnsafeBufferPointer { source in
                guard let range = Reference.next(in: source, from: position),
                    let name = Reference.name(at: range, in: source)
                else { return nil }
                return Place(range: range, name: name, pin: next)
            }
            guard let place else {
                open.removeLast()
                continue
            }
            guard next < pins.count else { return nil }
            places[text + 1].append(place)
            shown.append(place.name)
            open[open.count - 1].position = place.range.upperBound
            open.append((next, 0))
            next += 1
        }
        guard next == pins.count else { return nil }
        (self.places, self.shown, names) = (places, shown, Set(shown))
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

    /// Every object that is pinned.
    let names: Set<ObjectName>
}
