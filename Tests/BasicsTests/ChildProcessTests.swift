import Basics
import Glibc
import Testing

@Suite("A program that is started")
struct ChildProcessTests {
    /// Runs a shell's words with a pipe as its output; returns what it prints, and its status.
    private func run(_ words: String, _ variables: [String: String] = [:]) throws -> (output: String, status: Int32) {
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        defer { close(ends[0]) }
        let pid = try ChildProcess.start(["sh", "-c", words], variables, descriptors: [nil, ends[1]])
        close(ends[1])
        var (bytes, status) = ([UInt8](repeating: 0, count: 4096), Int32(0))
        waitpid(pid, &status, 0)
        let count = read(ends[0], &bytes, bytes.count)
        return (String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self), status)
    }

    @Test func `a started program has the variables and descriptors that it was given`() throws {
        let (output, status) = try run("cat; echo \"$WORD\"", ["WORD": "hello"])
        #expect(output == "hello\n" && status == 0)
    }

    @Test func `a signal that the parent ignores ends the program`() throws {
        signal(SIGPIPE, SIG_IGN)
        #expect(try run("kill -PIPE $$").status & 0x7F == SIGPIPE)
    }

    @Test func `a program that does not exist cannot be started`() {
        #expect(throws: ChildProcess.StartError.self) { try ChildProcess.start(["/no/such/program"], [:]) }
    }
}
