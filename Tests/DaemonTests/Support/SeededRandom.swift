import Glibc

/// SplitMix64: the same bytes for the same seed, on every machine.
struct SeededRandom: RandomNumberGenerator {
    var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    mutating func chance(_ one: Int, in many: Int) -> Bool { Int.random(in: 0..<many, using: &self) < one }
}

/// How long generated inputs are tried: `LARDER_FUZZ_ROUNDS` and `LARDER_FUZZ_SEED` of the environment.
enum Fuzzing {
    /// Rounds for each seed.
    static func rounds(_ usual: Int) -> Int { number("LARDER_FUZZ_ROUNDS") ?? usual }

    /// Where a run starts that is to be repeated; usually the same few, so that a test finds the same each time.
    static var seeds: [UInt64] {
        number("LARDER_FUZZ_SEED").map { [UInt64($0)] } ?? [1, 2, 3, 4]
    }

    private static func number(_ name: String) -> Int? {
        getenv(name).flatMap { Int(String(cString: $0)) }
    }
}
