import Foundation
import TestSupport
import Testing

/// Responses without a body: no client may wait for one.
@Suite(.scripts) struct BodilessTests {
    private static let requests = PythonEnvironment("requests", packages: ["requests==2.32.3"], imports: ["requests"])

    /// Says 304 to whoever has the tag.
    private static func origin() throws -> Origin {
        try Origin { request in
            request["If-None-Match"] == nil
                ? .json("[1,2,3]", Fresh.tagged("a"))
                : .notModified(["ETag": "\"a\""])
        }
    }

    @Test(
        arguments: [
            ("/never", [:]), ("/x", ["Cache-Control": "no-store"]), ("/x", ["Range": "bytes=0-1"]),
            ("/x", ["Range": "lines=1-2"]), ("/x", [:]),
        ] as [(String, FieldLines)]
    )
    func `a 304 that is passed on has no framing, and the connection stays usable`(path: String, fields: FieldLines)
        throws
    {
        let origin = try Self.origin()
        let route = ["routes:", "  - { path: never, cache: never }"]
        let larder = try Larder(config: Configs.plain(origin, top: route))
        let client = try larder.client()
        for _ in 1...2 {
            let answer = try client.request("GET", path, fields + ["If-None-Match": "\"a\""])
            #expect(answer.status == 304)
            #expect(answer["Transfer-Encoding"] == nil && answer["Content-Length"] == nil)
        }
        #expect(try client.request("HEAD", path)["Transfer-Encoding"] == nil)
        #expect(try client.get(path).text == "[1,2,3]")
    }

    @Test(.enabled(if: requests.isInstalled, "requests cannot be installed here"))
    func `Python's requests does not wait after a 304 that is passed on or recorded`() throws {
        let origin = try Self.origin()
        let script = """
            import sys, requests
            for url in sys.argv[1:]:
                answer = requests.get(url, headers={"If-None-Match": '"a"'}, timeout=20)
                print(answer.status_code, len(answer.content))
            """
        let larder = try Larder(config: Configs.plain(origin, top: ["routes:", "  - { path: \"**\", cache: never }"]))
        #expect(try Self.requests.run(script, larder.url + "/x", larder.url + "/y") == "304 0\n304 0\n")
        let recorder = try Larder.recording(origin, into: RecordedFolder().path)
        #expect(try Self.requests.run(script, recorder.url + "/x") == "304 0\n")
    }
}
