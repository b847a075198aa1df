import Foundation

/// Something that libFuzzer tries with inputs that it makes from the code they reach.
protocol FuzzTarget: Sendable {
    /// Inputs to begin with.
    static var seeds: [[UInt8]] { get }

    /// Tries one input; what must hold is required with `require`, so that libFuzzer keeps the input.
    static func run(_ input: ArraySlice<UInt8>)
}

/// The executable's targets by name; libFuzzer has `main` and calls the two functions below.
private enum Fuzz {
    static let targets: [String: any FuzzTarget.Type] = [
        "request": RequestFuzzing.self,
        "response": ResponseFuzzing.self,
        "json": JSONFuzzing.self,
        "composer": ComposerFuzzing.self,
        "store": StoreFuzzing.self,
    ]

    static let target: any FuzzTarget.Type = {
        let name = ProcessInfo.processInfo.environment["LARDER_FUZZ_TARGET"] ?? ""
        guard let target = targets[name] else {
            fatalError("LARDER_FUZZ_TARGET must be one of \(targets.keys.sorted().joined(separator: ", "))")
        }
        return target
    }()
}

/// Writes the seeds into the folder `LARDER_FUZZ_SEEDS`, before libFuzzer reads it.
@_cdecl("LLVMFuzzerInitialize")
func initializeFuzzer(_: UnsafeMutableRawPointer, _: UnsafeMutableRawPointer) -> CInt {
    let target = Fuzz.target
    guard let folder = ProcessInfo.processInfo.environment["LARDER_FUZZ_SEEDS"] else { return 0 }
    for (index, seed) in target.seeds.enumerated() {
        let file = URL(fileURLWithPath: folder).appendingPathComponent("seed-\(index)")
        guard (try? Data(seed).write(to: file)) != nil else { fatalError("\(file.path) cannot be written") }
    }
    return 0
}

@_cdecl("LLVMFuzzerTestOneInput")
func testOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    Fuzz.target.run(Array(UnsafeBufferPointer(start: bytes, count: count))[...])
    return 0
}

/// Ends the process with a message unless the condition holds.
func require(_ condition: Bool, _ message: @autoclosure () -> String) {
    if !condition { fatalError(message()) }
}

/// The bytes of an input one after the other; zeros at its end.
struct InputReader {
    private(set) var rest: ArraySlice<UInt8>

    init(_ input: ArraySlice<UInt8>) { rest = input }

    mutating func byte() -> Int { rest.popFirst().map(Int.init) ?? 0 }

    mutating func bytes(_ count: Int) -> [UInt8] {
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }
}
