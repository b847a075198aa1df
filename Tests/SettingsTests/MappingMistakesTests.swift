import Testing

@testable import Settings

/// What `larder check` says of mistakes in the mapping language: all of a config's at once, each at its place, with what is
/// wrong and what would be right.
struct MappingMistakesTests {
    struct Mistaken: CustomTestStringConvertible, Sendable {
        let testDescription: String
        /// What follows the line of the upstream.
        let yaml: String
        /// `line:column: message`, one a line.
        let complaints: String

        init(_ description: String, _ yaml: String, _ complaints: String) {
            (testDescription, self.yaml, self.complaints) = (description, yaml, complaints)
        }
    }

    @Test(arguments: all) func `every mistake is reported at its place`(_ mistaken: Mistaken) {
        let yaml = "upstreams: { api: { url: \"https://api.example\" } }\n" + mistaken.yaml
        let found = ConfigFile.parse(yaml, file: "larder.yaml", environment: [:]).diagnostics.map { diagnostic in
            "\(diagnostic.place?.line ?? 0):\(diagnostic.place?.column ?? 0): \(diagnostic.message)"
        }
        #expect(found.joined(separator: "\n") == mistaken.complaints)
    }

    private static let all = ofModels + ofProperties + ofRoutes
}
