import Foundation

/// Something that libFuzzer tries with inputs that it makes from the code they reach.
protocol FuzzTarget: Sendable {
    /// Inputs to begin with.
    static var seeds: [[UInt8]] { get }

    /// Tries one input; what must hold is required with `require`, so that libFuzzer keeps the input.
    static func run(_ input: ArraySlice<UInt8>)
}

/// The targets by name; `main` takes the place of libFuzzer's.
@main private enum Fuzz {
    private static let targets: [String: any FuzzTarget.Type] = [
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

    static func main() {
        writeSeeds()
        var count = CommandLine.argc
        var arguments = CommandLine.unsafeArgv
        exit(runFuzzer(&count, &arguments, testOneInput))
    }

    /// Writes the seeds into the folder `LARDER_FUZZ_SEEDS`, which libFuzzer reads then.
    private static func writeSeeds() {
        guard let folder = ProcessInfo.processInfo.environment["LARDER_FUZZ_SEEDS"] else { return }
        for (index, seed) in target.seeds.enumerated() {
            let file = URL(fileURLWithPath: folder).appendingPathComponent("seed-\(index)")
            guard (try? Data(seed).write(to: file)) != nil else { fatalError("\(file.path) cannot be written") }
        }
    }
}

/// libFuzzer's loop, which calls a function for each input and returns the exit code.
@_silgen_name("LLVMFuzzerRunDriver")
private func runFuzzer(
    _ argumentCount: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

// libFuzzer's own `main`, which is linked but not run, refers to this name.
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
