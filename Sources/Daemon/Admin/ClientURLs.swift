import HTTPSemantics
package import Proxy
import Settings
import Store

/// URLs as the admin side shows them: as clients send them, and not as they go upstream.
extension DaemonCore {
    /// The path and query that clients send for those that go upstream; the same if the upstream is not configured.
    func clientURL(ofURL url: String, upstream name: String) -> String {
        upstreams.first { $0.name == name }?.clientURL(ofURL: url) ?? url
    }

    func shown(_ row: DocumentRow) -> DocumentRow {
        var row = row
        row.url = clientURL(ofURL: row.url, upstream: row.upstream)
        return row
    }

    func shown(_ document: ShowingDocument) -> ShowingDocument {
        var document = document
        document.row = shown(document.row)
        return document
    }

    func shown(_ why: ObjectWhy, of upstream: String) -> ObjectWhy {
        func shown(_ source: ObservationSource) -> ObservationSource {
            var source = source
            source.url = clientURL(ofURL: source.url, upstream: upstream)
            return source
        }
        var why = why
        why.sources = why.sources.mapValues(shown)
        why.documents.rows = why.documents.rows.map { self.shown($0) }
        switch why.notice?.cause {
        case .request(var request):
            request.path = request.path.map { clientURL(ofURL: $0, upstream: upstream) }
            why.notice?.cause = .request(request)
        case .itself(let source): why.notice?.cause = .itself(source.map(shown))
        case .forgotten, nil: break
        }
        return why
    }

    /// A warning does not say which upstream it is about.
    func shown(_ warning: StoredWarning) -> StoredWarning {
        guard upstreams.count == 1, !warning.url.isEmpty else { return warning }
        var warning = warning
        warning.url = upstreams[0].clientURL(ofURL: warning.url)
        return warning
    }
}

/// How a path or URL that was given has been read.
package struct ReadURL: AdminBody, Equatable {
    static let sentences = [
        "client": "Path and query, as clients send them.", "upstream": "Path and query, as they go upstream.",
        "readAs":
            "`client`: a path as clients send it; `upstream`: one as it goes upstream; `url`: a URL of Larder or an upstream.",
    ]
    var client: String
    var upstream: String
    var readAs: String

    /// A line for people; nil if both paths are the same.
    package var text: String? {
        guard client != upstream else { return nil }
        let read = NamedURL.Reading(rawValue: readAs)?.text ?? readAs
        return "read as \(read): clients ask for \(client.printable), which is \(upstream.printable) upstream"
    }
}

extension ReadURL {
    package init(_ incoming: IncomingRequest, _ named: NamedURL) { self.init(incoming.url, of: named) }

    /// - Parameter url: path and query as they go upstream.
    fileprivate init(_ url: String, of named: NamedURL) {
        (client, upstream, readAs) = (named.upstream.clientURL(ofURL: url), url, named.reading.rawValue)
    }
}

/// A URL given to select documents, as the store has it; with `*` at its end, all that begin with it.
struct StoredURL: Sendable {
    /// The upstream; nil if any may be meant.
    let upstream: String?
    /// Path and query, as the store has them.
    let url: String
    /// Whether all are meant that begin with it.
    let isBeginning: Bool
    /// How it was read; nil if it is taken as it is.
    let shown: ReadURL?
    /// Why no upstream is asked for it; nil if one is.
    private(set) var complaint: String?

    /// Reads path and query, as clients send them or as they go upstream, or a URL of Larder's or an upstream's.
    ///
    /// A path that belongs to no upstream, or fits several, is taken as it is: it may be stored for any, or none may have it any
    /// more.
    init(_ text: String, of upstream: String?, in daemon: DaemonCore) throws {
        let named: NamedURL
        isBeginning = text.hasSuffix("*")
        let text = isBeginning ? String(text.dropLast()) : text
        do throws(ImaginedRequestError) {
            named = try NamedURL(text, among: daemon.upstreams, at: daemon.settings.listen, upstream: upstream)
        } catch {
            guard text.hasPrefix("/") else { throw ProblemDocument.badRequest(error.description) }
            (self.upstream, url, shown) = (upstream, text, nil)
            if case .unserved(let reason) = error { complaint = reason }
            return
        }
        self.upstream = named.upstream.name
        if text.hasPrefix("/"), named.isPlain || named.reading == .upstream {
            url = text
        } else {
            do throws(ImaginedRequestError) {
                let (upstreams, settings) = (daemon.upstreams, daemon.settings)
                url = try IncomingRequest(imagined: "GET", text, of: upstreams, named: upstream, settings).url
            } catch { throw ProblemDocument.badRequest(error.description) }
        }
        shown = ReadURL(url, of: named)
    }

    func covers(_ url: String) -> Bool {
        isBeginning ? url.utf8.starts(with: self.url.utf8) : url.utf8.elementsEqual(self.url.utf8)
    }

    /// Fails, once nothing was found, if no upstream is asked for it.
    func checkIsServed() throws { if let complaint { throw ProblemDocument.badRequest(complaint) } }
}
