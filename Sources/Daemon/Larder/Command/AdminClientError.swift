import Foundation
import Glibc
import Settings

/// Why the daemon could not be asked, and what to do about it.
struct AdminClientError: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }

    /// Nobody answered at the door.
    init(connecting address: Address, _ code: Int32) {
        switch (code, address) {
        case (ECONNREFUSED, .tcp): self.init("nothing listens on \(address); is `larder serve` running?")
        case (ECONNREFUSED, .unix), (ENOENT, _):
            self.init("nothing listens on \(address); is `larder serve` running with this admin address?")
        case (EACCES, .unix), (EPERM, .unix):
            self.init("you may not connect to \(address); its permissions say who may (is it a group you are not in?)")
        case (ETIMEDOUT, _), (EINPROGRESS, _), (EAGAIN, _):
            self.init("\(address) does not answer")
        default: self.init("cannot connect to \(address): \(systemMessage(code))")
        }
    }

    /// The daemon gave up in the middle, as a problem document says.
    init(problem: [UInt8]) {
        let problem = try? JSONDecoder().decode(ProblemDocument.self, from: Data(problem))
        let words = [problem?.title, problem?.detail].compactMap(\.self)
        self.init(words.isEmpty ? "the daemon gave up" : words.joined(separator: ": "))
    }

    /// The daemon refused.
    init(refusal answer: AdminClient.Response, hadToken: Bool) {
        let problem = try? JSONDecoder().decode(ProblemDocument.self, from: Data(answer.body))
        let words = [problem?.title, problem?.detail].compactMap(\.self)
        switch answer.status {
        case 401 where !hadToken:
            self.init(
                "the daemon wants its admin token: it stands in admin.token beside the store; name the store by "
                    + "--store FILE, or put the token into LARDER_ADMIN_TOKEN"
            )
        case 401,
            403 where hadToken && problem == nil:
            self.init(
                "the admin token is not this daemon's; name its store by --store FILE, or put the token into "
                    + "LARDER_ADMIN_TOKEN"
            )
        default:
            self.init(
                words.isEmpty ? "the daemon answered with status \(answer.status)" : words.joined(separator: ": ")
            )
        }
    }

    /// A problem document (RFC 9457).
    private struct ProblemDocument: Decodable {
        var title: String?
        var detail: String?
    }
}
