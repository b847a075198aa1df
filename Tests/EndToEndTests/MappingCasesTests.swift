import Foundation
import Testing

/// `docs/mapping-cases.md` against the tests: each row is held by a test of the file it names, or is marked as later.
struct MappingCasesTests {
    private static let rows = [
        "FJ": 47, "OV": 48, "MK": 18, "MT": 60, "MA": 9, "RK": 39, "NZ": 7,
    ]

    @Test func `every case is listed once and held by the test file it names, or marked as later`() throws {
        let root = "/\(Larder.root)"
        let text = try String(contentsOfFile: "\(root)/docs/mapping-cases.md", encoding: .utf8)
        var sources: [String: String] = [:]
        let files = try #require(FileManager.default.enumerator(atPath: "\(root)/Tests"))
        for case let path as String in files where path.hasSuffix(".swift") {
            let name = String(path.split(separator: "/").last ?? "")
            sources[name, default: ""] += try String(contentsOfFile: "\(root)/Tests/\(path)", encoding: .utf8)
        }
        var listed: [String: Int] = [:]
        for line in text.split(separator: "\n") {
            guard let match = line.wholeMatch(of: /\| ([A-Z]{2})-([0-9]{2}) \| (kept|changed) \| (.+) \| (.+) \|/)
            else {
                continue
            }
            let number = "\(match.1)-\(match.2)"
            listed[number, default: 0] += 1
            if match.5.hasPrefix("later") { continue }
            let source = try #require(sources[String(match.5)], "\(number): there is no test file \(match.5)")
            #expect(source.contains(number), "\(number) is in no test of \(match.5)")
        }
        for (library, count) in Self.rows {
            for row in 1...count {
                let number = "\(library)-\(row < 10 ? "0" : "")\(row)"
                #expect(listed[number] == 1, "\(number)")
            }
        }
        #expect(listed.count == 228)
    }
}
