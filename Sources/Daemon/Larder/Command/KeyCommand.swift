import Admin
import ArgumentParser
import Proxy
import Settings

/// `larder key URL`: by what URL an answer is known.
struct KeyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key",
        abstract: "Show what an answer is known by: the URL, and what else of a request takes part.",
        discussion: """
            URLs that have one key have one answer. The config is read, no daemon is asked:

              larder key '/search/issues?q=x&page=2&utm_source=mail' --config larder.yaml
              larder key https://api.github.com/users/octocat --preset github
              larder key /users/octocat -H 'Accept-Language: de'
            """
    )

    @Argument(help: "A path as programs send it to Larder, or a URL of Larder's or of the upstream.")
    var url: String

    @OptionGroup var fields: FieldOptions

    @OptionGroup var source: ConfigOptions

    @Flag(help: "For programs: one JSON document.")
    var json = false

    func validate() throws { try GivenText.require(["URL": url]) }

    func run() throws {
        let facts = try facts(source.settings())
        if json { Terminal.out(AdminJSON.encode(facts.response, isPretty: true)) } else { Terminal.out(facts.text) }
    }

    /// What there is to say; what is wrong with the question ends the command.
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
