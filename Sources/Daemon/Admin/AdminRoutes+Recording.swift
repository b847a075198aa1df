import HTTPSemantics
import Recording
import Settings

/// `POST /replay/reset`.
struct ReplayResetResponse: AdminBody {
    static let sentences = ["reset": "Always true."]
    var reset = true
}

/// The body of `POST /recordings`, and its response.
package struct RecordingStart: AdminBody {
    package static let sentences = [
        "name": "The recording's name, and its folder's.",
        "session": "The `Larder-Session` of the requests that are recorded; without it, all are.",
    ]
    package var name: String
    package var session: String?

    package init(name: String, session: String?) {
        (self.name, self.session) = (name, session)
    }
}

/// `POST /recordings/{name}/stop`.
package struct RecordingStopped: AdminBody {
    package static let sentences = ["notices": "What a person should look at, such as members that look secret."]
    package var name: String
    package var exchanges: Int
    package var notices: [String]
}

/// `DELETE /recordings/{name}`.
package struct RecordingRemoved: AdminBody {
    package static let sentences = ["name": "The recording that is gone."]
    package var name: String
}

/// A request to `POST /freeze`; conditions add up.
struct FreezeRequest {
    static let parameters: [AdminRoute.Parameter] = [
        .init(name: "name", sentence: "The recording's name, and its folder's.", isRequired: true),
        .init(name: "model", sentence: "Only responses that show an object of this model."),
        .init(name: "route", sentence: "Only responses of the route whose path the config spells so."),
        .init(name: "principal", sentence: "Whose responses, by label; needed where there are several."),
        .init(name: "max_age", sentence: "Only responses that came no longer ago: 90s, 15m, 12h, 7d."),
    ]

    let name: String
    private var route: String?
    private var chosen = FreezeSelection()

    init(_ request: AdminRequest) throws(ProblemDocument) {
        var name: String?
        for (member, value) in try request.members() {
            guard let text = value.text else { throw .badRequest("\(member) must be a text that is not empty") }
            switch member {
            case "name": name = text
            case "model": chosen.model = text
            case "route": route = text
            case "principal": chosen.principal = text
            case "max_age":
                do throws(Units.Misfit) {
                    let parts = try Units.duration(text).components
                    chosen.maxAge = parts.seconds * 1_000_000 + parts.attoseconds / 1_000_000_000_000
                } catch {
                    throw .badRequest("max_age: \"\(text)\" \(error.reason)")
                }
            default:
                let known = Self.parameters.map(\.name).joined(separator: ", ")
                throw .badRequest("\(member) is not a member of this body: use \(known)")
            }
        }
        guard let name else { throw .badRequest("name is missing") }
        self.name = name
    }

    /// Fails for names that neither config nor store know.
    func selection(in context: any AdminContext) async throws(ProblemDocument) -> FreezeSelection {
        var selection = chosen
        if let model = selection.model, let complaint = context.unknownModel(model) { throw .badRequest(complaint) }
        try await context.checkOwnership(upstream: nil, principal: selection.principal)
        guard let route else { return selection }
        let routes = context.routes(spelled: route)
        guard !routes.isEmpty else { throw .badRequest("the config has no route \(route)") }
        selection.covers = { upstream, url in routes.contains { $0.upstream == upstream && $0.covers(url) } }
        return selection
    }
}

/// `GET /recordings`.
package struct RecordingsResponse: AdminBody {
    package static let sentences: [String: String] = [:]
    package var recordings: [Recording]

    package struct Recording: AdminBody {
        package static let sentences = [
            "running": "Whether it is still being recorded.",
            "exchanges": "How many exchanges it has so far; absent once it is stopped.",
            "began": "When it began, by RFC 3339.",
        ]
        package var name: String
        package var folder: String
        package var running: Bool
        package var exchanges: Int?
        package var session: String?
        package var began: String?

        init(_ entry: Recordings.Entry) {
            (name, folder, running) = (entry.name, entry.folder, entry.began != nil)
            (exchanges, session, began) = (entry.exchanges, entry.session, entry.began.map { RecordingTime.text($0) })
        }
    }
}

/// `GET /recordings/{name}`.
package struct RecordingFilesResponse: AdminBody {
    package static let sentences: [String: String] = [:]
    package var files: [String]
}

extension AdminRoute {
    /// What is asked of a daemon that records or replays.
    static let recordings: [AdminRoute] = [
        AdminRoute(
            method: "POST",
            path: "/replay/reset",
            sentence: "Begins the sequences of a replay anew, in all sessions.",
            schema: ReplayResetResponse.self,
            respond: { _, context throws(ProblemDocument) in
                guard let replayer = context.replayer else {
                    throw ProblemDocument(
                        409,
                        "this daemon replays no recording: start it with larder replay or larder run"
                    )
                }
                replayer.reset()
                return .json(ReplayResetResponse())
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/recordings",
            sentence: "The recordings that this daemon has made, and those that are running.",
            schema: RecordingsResponse.self,
            respond: { _, context throws(ProblemDocument) in
                .json(RecordingsResponse(recordings: try context.madeRecordings().list.map { .init($0) }))
            }
        ),
        AdminRoute(
            method: "POST",
            path: "/recordings",
            sentence: "Begins to record what clients ask and receive.",
            body: [
                Parameter(name: "name", sentence: "The recording's name, and its folder's.", isRequired: true),
                Parameter(
                    name: "session",
                    sentence: "The Larder-Session of the requests that are recorded; without it, all are."
                ),
            ],
            schema: RecordingStart.self,
            respond: { request, context throws(ProblemDocument) in
                var (name, session): (String?, String?) = (nil, nil)
                for (member, value) in try request.members() {
                    switch member {
                    case "name": name = value.text
                    case "session": session = value.text
                    default:
                        throw .badRequest("\(member) is not a member of this body: use name and session")
                    }
                }
                guard let name else { throw .badRequest("name is missing") }
                let recordings = try context.madeRecordings()
                try recorded { () throws(RecordingError) in try recordings.start(name, session: session) }
                return .json(RecordingStart(name: name, session: session), status: 201)
            }
        ),
        AdminRoute(
            method: "POST",
            path: "/freeze",
            sentence: "Makes a recording of what is stored, of one principal.",
            body: FreezeRequest.parameters,
            schema: RecordingStopped.self,
            respond: { request, context throws(ProblemDocument) in
                let question = try FreezeRequest(request)
                let (recordings, selection) = (try context.madeRecordings(), try await question.selection(in: context))
                let summary: RecordingSummary
                do throws(RecordingError) {
                    summary = try await recordings.freeze(question.name, selection, of: context.store)
                } catch {
                    throw ProblemDocument(409, error.description)
                }
                let notices = Array(summary.sentences(folder: question.name).dropFirst())
                return .json(
                    RecordingStopped(name: question.name, exchanges: summary.count, notices: notices),
                    status: 201
                )
            }
        ),
        AdminRoute(
            method: "DELETE",
            path: "/recordings/{name}",
            sentence: "Removes a recording that is over.",
            schema: RecordingRemoved.self,
            respond: { request, context throws(ProblemDocument) in
                let (recordings, name) = (try context.madeRecordings(), request.captures["name"] ?? "")
                try recorded { () throws(RecordingError) in try recordings.remove(name) }
                return .json(RecordingRemoved(name: name))
            }
        ),
        AdminRoute(
            method: "POST",
            path: "/recordings/{name}/stop",
            sentence: "Ends a recording.",
            schema: RecordingStopped.self,
            respond: { request, context throws(ProblemDocument) in
                let (recordings, name) = (try context.madeRecordings(), request.captures["name"] ?? "")
                let summary = try recorded { () throws(RecordingError) in try recordings.stop(name) }
                let notices = Array(summary.sentences(folder: name).dropFirst())
                return .json(RecordingStopped(name: name, exchanges: summary.count, notices: notices))
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/recordings/{name}",
            sentence: "The files of a recording; with file, the bytes of one.",
            query: [Parameter(name: "file", sentence: "A file of the recording, such as recording.yaml.")],
            schema: RecordingFilesResponse.self,
            respond: { request, context throws(ProblemDocument) in
                let (recordings, name) = (try context.madeRecordings(), request.captures["name"] ?? "")
                guard let file = request.value("file") else {
                    let files = try recorded { () throws(RecordingError) in try recordings.files(of: name) }
                    return .json(RecordingFilesResponse(files: files))
                }
                let bytes = try recorded { () throws(RecordingError) in try recordings.file(file, of: name) }
                return .text(bytes, type: "application/octet-stream")
            }
        ),
    ]

    /// Does something with a recording and puts its errors into the words of HTTP.
    private static func recorded<Value>(_ work: () throws(RecordingError) -> Value) throws(ProblemDocument) -> Value {
        do {
            return try work()
        } catch {
            throw ProblemDocument(409, error.description)
        }
    }
}

extension AdminContext {
    fileprivate func madeRecordings() throws(ProblemDocument) -> Recordings {
        guard let recordings else {
            throw ProblemDocument(409, "this daemon is for one recording: start one with larder serve")
        }
        return recordings
    }
}
