import Admin
import ArgumentParser
import HTTPSemantics
import Mapping
import Proxy
import Settings

/// `larder route METHOD URL`: which rule speaks of a request, and why the others do not.
struct RouteCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "route",
        abstract: "Show which route speaks of a request and its answer, and why the nearest others do not.",
        discussion: """
            The config is read, no daemon is asked:

              larder route GET /repos/a/b/issues --preset github
              larder route GET '/repos/a/b/issues?state=open' --status 404 --config larder.yaml

            Without --status it says what holds before there is an answer: how the request is cached. With it, what the \
            answer's body is taken for.

            It looks at the method, path, query, status and content type alone: it does not say what is stored or how \
            fresh that is (larder explain), by which fields a cached response is told apart (larder key), or what \
            becomes of a body (larder map). It does not ask the upstream.
            """
    )

    @Argument(help: "The method, such as GET.")
    var method: String

    @Argument(help: "A path as programs send it to Larder, or a URL of Larder's or of the upstream.")
    var url: String

    @Option(help: ArgumentHelp("The status of the answer.", valueName: "status"))
    var status: Int = 200

    @Option(name: .customLong("content-type"), help: ArgumentHelp("The media type of the answer.", valueName: "type"))
    var contentType = "application/json"

    @Option(help: ArgumentHelp("How many other rules are shown.", valueName: "count"))
    var others = 5

    @OptionGroup var source: ConfigOptions

    @Flag(help: "For programs: one JSON document.")
    var json = false

    func validate() throws {
        try GivenText.require(["method": method, "URL": url])
        try GivenText.check(["--content-type": contentType])
        guard (100...599).contains(status) else { throw ValidationError("--status is a number from 100 to 599") }
        guard others >= 0 else { throw ValidationError("--others is not negative") }
        guard FieldName.complaint(method) == nil else { throw ValidationError("\"\(method)\" is no method") }
    }

    func run() throws {
        let settings = try source.settings()
        do {
            let upstreams = try settings.upstreams.enumerated().map { index, upstream in
                ProxiedUpstream(index: index, try CompiledUpstream(upstream))
            }
            let asked = try AskedURL(url, of: upstreams, at: settings.listen)
            let imagined = try ImaginedRequest(
                method.uppercased(),
                asked,
                fields: [],
                limits: settings.httpLimits,
                listen: settings.listen
            )
            let facts = RouteFacts(imagined, status: status, contentType: contentType.lowercased(), others: others)
            Terminal.out(json ? facts.document.prettyText : facts.text)
        } catch let error as AskedURLError {
            Terminal.complain("larder: \(error.description)")
            throw ExitCode.failed
        } catch let error as ImaginedRequestError {
            Terminal.complain("larder: \(error.description)")
            throw ExitCode.failed
        }
    }
}
