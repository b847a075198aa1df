import TestSupport

/// A server that nobody here wrote, on a port of its own.
///
/// Such programs want to be told a number, and between the moment the kernel names a free one and the moment the program binds it,
/// another test's connection may have taken it: then the program ends, and is started again on another port.
struct ForeignServer {
    let process: ChildProcess
    let port: UInt16

    /// Starts it and returns once it answers.
    ///
    /// - Parameters:
    ///   - path: what it is asked for to find out.
    ///   - mark: what its response has in it and no other server's has.
    ///   - start: starts the program on a port.
    init(_ name: String, path: String, mark: String, start: (UInt16) throws -> ChildProcess) throws {
        var complaints = ""
        for _ in 1...5 {
            let port = try Socket.freePort()
            let process = try start(port)
            let isUp = eventually {
                guard process.end == nil else { return true }
                let answer = try? Client(port: port).get(path)
                return answer?.status == 200 && answer?.text.contains(mark) == true
            }
            if isUp, process.end == nil {
                (self.process, self.port) = (process, port)
                return
            }
            complaints += process.errors
        }
        throw Larder.DidNotStart(description: "\(name) did not start: \(complaints)")
    }
}
