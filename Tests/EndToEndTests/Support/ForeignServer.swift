import TestSupport

/// A server that nobody here wrote, on a port of its own.
struct ForeignServer {
    let process: TestProcess
    let port: UInt16

    /// Starts it and returns once it answers.
    ///
    /// - Parameters:
    ///   - path: what it is asked for to find out.
    ///   - mark: what its response has in it and no other server's has.
    ///   - start: starts the program on a port.
    init(_ name: String, path: String, mark: String, start: (UInt16) throws -> TestProcess) throws {
        let port = try Socket.freePort()
        let process = try start(port)
        let isUp = eventually {
            guard process.end == nil else { return true }
            let answer = try? Client(port: port).get(path)
            return answer?.status == 200 && answer?.text.contains(mark) == true
        }
        guard isUp, process.end == nil else {
            throw Larder.DidNotStart(description: "\(name) did not start: \(process.errors)")
        }
        (self.process, self.port) = (process, port)
    }
}
