import Foundation
import TestSupport
import Testing

/// The list of cases, the tests' own index of them, `docs/mapping-cases.md` and the tests, held against each other.
struct MappingCasesTests {
    /// How many cases each library has.
    private static let libraries = ["FJ": 47, "OV": 48, "MK": 18, "MT": 60, "MA": 9, "RK": 39, "NZ": 7]
    private static let root = "\(Repository.root)"

    private struct Row: Equatable {
        var verdict: String
        var held: String
    }

    /// The rows of the page, by number; a number that stands there twice is an issue.
    private func page() throws -> [String: Row] {
        let text = try String(contentsOfFile: "\(Self.root)/docs/mapping-cases.md", encoding: .utf8)
        var rows: [String: Row] = [:]
        for line in text.split(separator: "\n") {
            guard let match = line.wholeMatch(of: /\| ([A-Z]{2}-[0-9]{2}) \| (kept|changed) \| (.+) \| (.+) \|/) else {
                continue
            }
            let row = Row(verdict: String(match.2), held: String(match.4))
            #expect(rows.updateValue(row, forKey: String(match.1)) == nil, "\(match.1) stands twice on the page")
        }
        return rows
    }

    /// The tests' sources by file name, comments left out.
    private func sources() throws -> [String: String] {
        var sources: [String: String] = [:]
        let files = try #require(FileManager.default.enumerator(atPath: "\(Self.root)/Tests"))
        for case let path as String in files where path.hasSuffix(".swift") && !path.contains("MappingCase") {
            let name = String(path.split(separator: "/").last ?? "")
            let text = try String(contentsOfFile: "\(Self.root)/Tests/\(path)", encoding: .utf8)
            let code = text.split(separator: "\n").filter { !$0.drop { $0 == " " }.hasPrefix("//") }
            sources[name, default: ""] += code.joined(separator: "\n")
        }
        return sources
    }

    @Test func `the index has every case of the list once`() throws {
        var counts: [String: Int] = [:]
        for row in MappingCaseIndex.rows { counts[row.number, default: 0] += 1 }
        for (library, count) in Self.libraries {
            for number in 1...count {
                let number = "\(library)-\(number < 10 ? "0" : "")\(number)"
                #expect(counts[number] == 1, "\(number)")
            }
        }
        #expect(MappingCaseIndex.rows.count == 228)
        // The list itself, where it lies beside the repository.
        guard let list = try? String(contentsOfFile: "\(Self.root)/../shared/mapping-cases.md", encoding: .utf8) else {
            return
        }
        let requests = MappingCaseIndex.rows.map { "\($0.number) \($0.request)" }
        let listed = list.split(separator: "\n").compactMap { line -> String? in
            guard let match = line.firstMatch(of: /^\| ([A-Z]{2}-[0-9]{2}) \|.*\| ([^|]+) \|$/) else { return nil }
            let request = ["keep", "change"].first { match.2.hasPrefix($0) } ?? "own"
            return "\(match.1) \(request)"
        }
        #expect(listed.sorted() == requests.sorted())
    }

    @Test func `index and page say the same of every case`() throws {
        let page = try page()
        #expect(page.count == MappingCaseIndex.rows.count)
        for row in MappingCaseIndex.rows {
            let shown = try #require(page[row.number], "\(row.number) is not on the page")
            #expect(shown.held == [row.file, row.later].compactMap(\.self).joined(separator: "; "), "\(row.number)")
            // Where the list keeps the library's result and more, the page may call that a change; never the other way.
            if row.request == "change" { #expect(shown.verdict == "changed", "\(row.number)") }
        }
        // What is still to come is explained.
        let text = try String(contentsOfFile: "\(Self.root)/docs/mapping-cases.md", encoding: .utf8)
        let explained = text.split(separator: "## What is still to come").last ?? ""
        for row in MappingCaseIndex.rows {
            let isExplained = explained.contains("\n| \(row.number) | ")
            #expect(isExplained == (row.later != nil), "\(row.number)")
        }
    }

    @Test func `every case has a test in the file that the index names, and no test has an unknown case number`()
        throws
    {
        let sources = try sources()
        for row in MappingCaseIndex.rows {
            guard let file = row.file else {
                let holders = sources.filter { $0.value.contains(row.number) }.keys.sorted()
                #expect(holders.isEmpty, "\(row.number) is to come, and is in \(holders)")
                continue
            }
            let source = try #require(sources[file], "\(row.number): there is no test file \(file)")
            #expect(source.contains(row.number), "\(row.number) is in no test of \(file)")
        }
        let numbers = Set(MappingCaseIndex.rows.map(\.number))
        for (file, source) in sources {
            for match in source.matches(of: /\b(?:FJ|OV|MK|MT|MA|RK|NZ)-[0-9]{2}\b/) {
                #expect(numbers.contains(String(match.0)), "\(file) has \(match.0), which is not a case")
            }
        }
    }
}
