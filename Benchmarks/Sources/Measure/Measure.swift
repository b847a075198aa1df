import Foundation

/// Measures Larder's own parts, one figure per line of a JSON object on standard output.
///
///     Measure normalise [FILE]      MB/s; FILE has one JSON object per line: model, isList, root, path, body
///     Measure ingest STORE [FILE]   the same responses, into a new store
///     Measure preset PRESET FILE    MB/s with the models and routes of a preset, as JSON; FILE: path, status, body
///     Measure showing STORE COUNT   COUNT documents show one object: what a change, a search and a clean cost
@main
enum Measure {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        switch (arguments.first, arguments.dropFirst().first) {
        case ("normalise", let file): report(try Normalising.measure(file))
        case ("ingest", let store?): report(try await Ingesting.measure(store, arguments.dropFirst(2).first))
        case ("preset", let preset?): report(try Presets.measure(preset, arguments.dropFirst(2).first ?? ""))
        case ("showing", let store?):
            report(try await Showing.measure(store, arguments.dropFirst(2).first.flatMap { Int($0) } ?? 1_000_000))
        default:
            FileHandle.standardError.write(
                Data(
                    """
                    usage: Measure normalise [FILE] | Measure preset PRESET FILE | Measure ingest STORE [FILE] \
                    | Measure showing STORE COUNT

                    """.utf8
                )
            )
            exit(64)
        }
    }

    private static func report(_ figures: [(name: String, value: Double)]) {
        print("{" + figures.map { "\"\($0.name)\": \($0.value)" }.joined(separator: ", ") + "}")
    }
}

/// A body and what it holds.
struct Sample {
    let body: [UInt8]
    let model: String
    let isList: Bool
    var root: String?
    /// The path it was received at.
    var path = ""
}

extension Duration {
    var seconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
