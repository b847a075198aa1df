import Foundation
import HTTPSemantics
import HTTPServer
import Settings
import Upstream

/// Why a command got no result from the daemon, and the remedy.
struct AdminClientError: Error, Equatable, CustomStringConvertible {
    let description: String
    /// Whether no complete response came for a reason that a restart of the daemon can have.
    private(set) var isAbsence = false
    /// The mistakes in the config, each with its place, if the daemon refused it for these, or cannot be found because of them.
    private(set) var mistakes: [String] = []
    /// The status of a response that refuses the request; nil where no such response came.
    private(set) var status: Int?

    init(_ description: String) { self.description = description }

    static func == (left: Self, right: Self) -> Bool { left.description == right.description }

    /// No complete response came.
    init(_ failure: CurlExchange.Failure, _ address: Address) {
        switch (failure, address) {
        case (.notConnected(ECONNREFUSED), .tcp): self.init("nothing listens on \(address); is `larder serve` running?")
        case (.notConnected(ECONNREFUSED), .unix), (.notConnected(ENOENT), _):
            self.init("nothing listens on \(address); is `larder serve` running with this admin address?")
        case (.notConnected(EACCES), .unix), (.notConnected(EPERM), .unix):
            self.init(
                "you may not connect to \(address): the socket's permissions forbid it; are you in the group that may?"
            )
        case (.notConnected(0), _), (.notConnected(ETIMEDOUT), _): self.init("\(address) does not respond")
        case (.notConnected(let code), _): self.init("cannot connect to \(address): \(systemMessage(code))")
        case (.unknownHost(let reason), _): self.init("cannot find the host of \(address): \(reason)")
        case (.notHTTP, _): self.init("what listens on \(address) does not speak HTTP; is it Larder's admin side?")
        case (.silent, _): self.init("the connection to \(address) is dead: nothing came for too long")
        case (.broken(let reason), _): self.init("the connection to \(address) broke: \(reason)")
        }
        switch failure {
        case .notConnected(ECONNREFUSED), .notConnected(ENOENT), .notConnected(0), .notConnected(ETIMEDOUT),
            .silent, .broken:
            isAbsence = true
        case .notConnected, .unknownHost, .notHTTP: break
        }
    }

    /// The config does not say where the daemon is.
    init(mistakes: [Diagnostic]) {
        self.init("the config has mistakes, so that the daemon cannot be found")
        self.mistakes = mistakes.map(\.description)
    }

    /// The daemon stopped sending events and sent a problem document.
    init(problem: [UInt8]) { self.init(Self.words(problem) ?? "the daemon gave up; its log says why") }

    init(status: Int, _ body: [UInt8], hadToken: Bool, socket: String? = nil) {
        let words = Self.words(body)
        switch status {
        case 401 where !hadToken:
            self.init(
                "the daemon requires its admin token, which is in admin.token beside the store; name the store with "
                    + Self.alternatives("--store FILE", "set LARDER_ADMIN_TOKEN", socket)
            )
        case 401,
            403 where hadToken && words == nil:
            self.init(
                "the admin token is not this daemon's; name its store with --store FILE, or set LARDER_ADMIN_TOKEN"
            )
        default: self.init(words ?? "the daemon responded with status \(status)")
        }
        (self.status, mistakes) = (status, Self.problem(body)?.errors ?? [])
    }

    /// The remedies: one of these, or to join the group of a socket that this user may not connect to.
    static func alternatives(_ first: String, _ second: String, _ socket: String?) -> String {
        guard let socket else { return "\(first), or \(second)" }
        return "\(first), \(second), or join the group that may use \(socket)"
    }

    /// The text of a problem document (RFC 9457); nil if it has none.
    private static func words(_ document: [UInt8]) -> String? {
        guard let problem = problem(document) else { return nil }
        // Without a type of its own, the title is only the phrase of the status.
        let isPhrase = problem.detail != nil && problem.type ?? "about:blank" == "about:blank"
        let words = [isPhrase ? nil : problem.title, problem.detail].compactMap(\.self)
        return words.isEmpty ? nil : words.joined(separator: ": ")
    }

    private struct Problem: Decodable {
        var type: String?
        var title: String?
        var detail: String?
        var errors: [String]?
    }

    private static func problem(_ document: [UInt8]) -> Problem? {
        try? JSONDecoder().decode(Problem.self, from: Data(document))
    }
}
