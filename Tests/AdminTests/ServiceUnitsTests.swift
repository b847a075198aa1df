import Foundation
import TestSupport
import Testing

private let analyzer = "/usr/bin/systemd-analyze"

/// The shipped unit files, judged by systemd itself where it is installed.
@Suite(.enabled(if: FileManager.default.isExecutableFile(atPath: analyzer)))
struct ServiceUnitsTests {
    static let units = URL(filePath: Repository.root).appending(path: "systemd")

    @Test func `systemd rates the service's exposure at 1.5 of 10 or less`() throws {
        let report = try run(["security", "--offline=true", Self.units.appending(path: "larder.service").path])
        let verdict = try #require(report.firstMatch(of: /exposure level for larder.service: ([0-9.]+)/))
        #expect(try #require(Double(verdict.1)) <= 1.5)
    }

    @Test(arguments: ["larder.service", "larder.socket"])
    func `systemd accepts every line of the units`(unit: String) throws {
        // With a command that exists, whether or not Larder is installed here.
        let folder = TemporaryFolder()
        let source = try String(contentsOf: Self.units.appending(path: unit), encoding: .utf8)
        try folder.write(source.replacing("/usr/bin/larder", with: "/bin/true"), to: unit)
        if unit == "larder.socket" {
            try folder.write("[Service]\nExecStart=/bin/true\n", to: "larder.service")
        }
        let report = try run(["verify", folder.path + "/" + unit])
        #expect(!report.contains(unit), "\(report)")
    }

    private func run(_ arguments: [String]) throws -> String {
        let mappingContext = ["PATH": "/usr/bin:/bin", "SYSTEMD_COLORS": "0", "LANG": "C.UTF-8"]
        let process = try TestProcess(analyzer, arguments, environment: mappingContext)
        process.waitForEnd()
        return process.output + process.errors
    }
}
