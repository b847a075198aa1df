import Admin
import ArgumentParser
import Proxy
import Settings

/// `larder key URL`: the cache key of a request.
struct KeyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key",
        abstract: "Show the cache key of a request: its URL, principal and context.",
        discussion: """
            Requests with the same key share one stored response. It reads the config; no daemon is needed:

              larder key '/search/issues?q=x&page=2&utm_source=mail' --config larder.yaml
              larder key https://api.github.com/users/octocat --preset github
              larder key /users/octocat -H 'Accept-Language: de'
            """
    )

    @Argument(help: "A path as programs send it to Larder, or a URL of Larder or of the upstream.")
    var url: String

    @OptionGroup var fields: FieldOptions

    @OptionGroup var source: ConfigOptions

    @Flag(help: "Print one JSON document, for programs.")
    var json = false

    func validate() throws { try GivenText.require(["URL": url]) }

    func run() throws {
        let facts = try facts(source.settings())
        if json { Terminal.out(AdminJSON.encode(facts.response, isPretty: true)) } else { Terminal.out(facts.text) }
    }

    /// The parts of the key; a wrong URL or field ends the command.
    private func facts(_ settings: Configuration) throws -> KeyFacts {
        do {
            let upstreams = try settings.upstreams.enumerated().map { index, upstream in
                ProxiedUpstream(index: index, try CompiledUpstream(upstream))
            }
            let url = try AskedURL(url, of: upstreams, at: settings.listen)
            let imagined = try ImaginedRequest(
                "GET",
                url,
                fields: fields.header,
                limits: settings.httpLimits,
                listen: settings.listen
            )
            return KeyFacts(imagined)
        } catch let error as AskedURLError {
            Terminal.complain("larder: \(error.description)")
        } catch let error as ImaginedRequestError {
            Terminal.complain("larder: \(error.description)")
        }
        throw ExitCode.failed
    }
}
