import Admin
import ArgumentParser
import Foundation
import HTTPSemantics
import HTTPServer

/// How a command finds the daemon and shows its response.
struct AdminOptions: ParsableArguments {
    @Option(
        help: .value(
            "addr",
            "The daemon's admin address: HOST:PORT or unix:PATH. (default: LARDER_ADMIN, else that of the config, else 127.0.0.1:8788)"
        ),
        transform: Address.option
    )
    var admin: Address?

    @Option(
        help: .value(
            "file",
            "The daemon's config, which says where it listens. (default: LARDER_CONFIG, else as `larder serve`)"
        ),
        completion: .config
    )
    var config: String?

    @Option(
        help: .value(
            "file",
            "The daemon's store. The admin token is read from admin.token beside it. (default: the token in LARDER_ADMIN_TOKEN, else beside the usual store)"
        ),
        completion: .file()
    )
    var store: String?

    @Flag(help: "Print the daemon's JSON, for programs.") var json = false

    func validate() throws { try GivenText.check(["--store": store, "--config": config]) }

    func ask(_ method: String, _ target: String, body: (any Encodable)? = nil) throws -> [UInt8] {
        let watch = ProgressWatch.waiting()
        defer { watch?.end() }
        return try client().send(method, target, body: body.map { AdminJSON.encode($0) })
    }

    /// Sends the daemon a request, and prints its response.
    func show<Value: Decodable>(
        _ target: String,
        as type: Value.Type,
        method: String = "GET",
        body: (any Encodable)? = nil,
        _ text: (Value) -> String
    ) throws { try present(type, try ask(method, target, body: body), text) }

    /// A client of the selected daemon, which may have been found before.
    func client(at address: Address? = nil) throws(AdminClientError) -> AdminClient { try finder(at: address).client() }

    func finder(at address: Address? = nil) -> DaemonFinder {
        DaemonFinder(admin: address ?? admin, store: store, config: config, environment: Environment.variables)
    }

    func decode<Value: Decodable>(_ type: Value.Type, _ bytes: [UInt8]) throws -> Value {
        do {
            return try AdminJSON.decode(type, from: bytes)
        } catch {
            throw CommandFailure("the daemon's response is not what this version expects; --json shows it as it is")
        }
    }

    /// Prints what the command itself has done.
    func report(_ done: some Encodable, _ text: String) {
        if json { Terminal.out(AdminJSON.encode(done)) } else { Terminal.out(text) }
    }

    /// Prints a response: unchanged for programs, and as `show` formats it for people.
    func present<Value: Decodable>(_ type: Value.Type, _ bytes: [UInt8], _ show: (Value) -> String) throws {
        if json {
            Terminal.out(json: String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .newlines))
        } else {
            Terminal.say(show(try decode(type, bytes)))
        }
    }
}

enum Target {
    /// `/objects/User/7?limit=5`: components and values percent-encoded, parameters without a value left out.
    static func make(_ components: [String], _ query: [(String, String?)] = []) -> String {
        let path = components.map { "/" + PercentEncoding.encode($0) }.joined()
        let pairs = query.compactMap { name, value in value.map { "\(name)=\(PercentEncoding.encode($0))" } }
        return pairs.isEmpty ? path : "\(path)?\(pairs.joined(separator: "&"))"
    }
}
