/// Random numbers that one seed determines wholly (SplitMix64), the same on every machine.
package struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    /// The seed is mixed, so that the next seed is not this one's stream a step later.
    package init(seed: UInt64) { state = Self.mixed(seed &+ 0x632B_E59B_D9B4_E019) }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return Self.mixed(state)
    }

    private static func mixed(_ state: UInt64) -> UInt64 {
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// True so many times in so many.
    package mutating func chance(_ one: Int, in many: Int) -> Bool { Int.random(in: 0..<many, using: &self) < one }

    /// True once in so many times.
    package mutating func once(in times: Int) -> Bool { chance(1, in: times) }

    package mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }

    package mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }
}
