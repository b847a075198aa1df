import Glibc

/// How long generated inputs are tried: `LARDER_FUZZ_ROUNDS` and `LARDER_FUZZ_SEED` of the environment.
package enum Fuzzing {
    /// Rounds for each seed.
    package static func rounds(_ usual: Int) -> Int { number("LARDER_FUZZ_ROUNDS") ?? usual }

    /// Where a run starts that is to be repeated; usually the same few, so that a test finds the same each time.
    package static var seeds: [UInt64] {
        number("LARDER_FUZZ_SEED").map { [UInt64($0)] } ?? [1, 2, 3, 4]
    }

    private static func number(_ name: String) -> Int? {
        getenv(name).flatMap { Int(String(cString: $0)) }
    }
}
