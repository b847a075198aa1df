import HTTPSemantics
import Proxy
package import Recording
import Settings

/// `POST /replay/reset`.
struct ReplayResetResponse: AdminBody {
    static let sentences = ["reset": "Always true."]
    var reset = true
}

/// The body of `POST /recordings`, and its response.
package struct RecordingStart: AdminBody {
    static let sentences = [
        "name": "The recording's name, and its folder's.",
        "session": "The `Larder-Session` of the requests that are recorded; without it, all are.",
    ]
    package var name: String
    var session: String?

    package init(name: String, session: String?) { (self.name, self.session) = (name, session) }
}

/// `POST /recordings/{name}/stop`.
package struct RecordingStopped: AdminBody {
    static let sentences = ["notices": "What a person should look at, such as members that look secret."]
    package var name: String
    package var exchanges: Int
    package var notices: [String]
}

/// `DELETE /recordings/{name}`.
package struct RecordingRemoved: AdminBody {
    static let sentences = ["name": "The recording that is gone."]
    package var name: String
}

/// `GET /recordings`.
package struct RecordingsResponse: AdminBody {
    package var recordings: [Recordings.Entry]
}

extension Recordings.Entry: AdminBody {
    static let sentences = [
        "running": "Whether it is still being recorded.",
        "exchanges": "How many exchanges it has so far; absent once it is stopped.",
        "began": "When it began, by RFC 3339.",
    ]
}

/// `GET /recordings/{name}`.
package struct RecordingFilesResponse: AdminBody {
    static let sentences = ["exchanges": "How many exchanges it has so far; absent once it is stopped."]
    package var files: [String]
    package var exchanges: Int?
}

extension AdminRoute {
    static let recordings: [AdminRoute] = documented([
        "Begins the sequences of a replay again, in all sessions.": .json("POST /replay/reset") { _, daemon in
            guard let replayer = daemon.state.replayer else {
                let advice = "start it with larder replay or larder run"
                throw ProblemDocument(409, "this daemon replays no recording: \(advice)")
            }
            replayer.reset()
            return ReplayResetResponse()
        },
        "The recordings that this daemon has made, and those that are running.": .json("GET /recordings") { _, daemon in
            RecordingsResponse(recordings: try daemon.recordings().list)
        },
        "Begins to record what clients ask and receive.": .json(
            "POST /recordings",
            body: Parameter.documented([
                "The recording's name, and its folder's.": Parameter("name", isRequired: true),
                "The Larder-Session of the requests that are recorded; without it, all are.": Parameter("session"),
            ]),
            status: 201
        ) { request, daemon in
            let texts = try request.texts(["name", "session"], advice: "name and session")
            guard let name = texts["name"] else { throw ProblemDocument.badRequest("name is missing") }
            try daemon.recordings().start(name, session: texts["session"])
            return RecordingStart(name: name, session: texts["session"])
        },
        "Makes a recording of what is stored, of one principal.":
            .json("POST /freeze", body: frozen, status: 201) { request, daemon in
                let (name, selection) = try await freezing(request, daemon)
                let summary = try await daemon.recordings().freeze(name, selection, of: daemon.proxy.cache)
                return RecordingStopped(name, summary)
            },
        "Removes a recording that is over.": .json("DELETE /recordings/{name}") { request, daemon in
            try daemon.recordings().remove(request.capture("name"))
            return RecordingRemoved(name: request.capture("name"))
        },
        "Ends a recording.": .json("POST /recordings/{name}/stop") { request, daemon in
            let name = request.capture("name")
            return RecordingStopped(name, try daemon.recordings().stop(name))
        },
        "The files of a recording; with file, the bytes of one.": AdminRoute(
            "GET /recordings/{name}",
            query: Parameter.documented(["A file of the recording, such as recording.yaml.": Parameter("file")]),
            schema: RecordingFilesResponse.self
        ) { request, daemon in
            let (recordings, name) = (try daemon.recordings(), request.capture("name"))
            guard let file = request.value("file") else {
                let count = recordings.runningCount(of: name)
                return .json(RecordingFilesResponse(files: try recordings.files(of: name), exchanges: count))
            }
            return .text(try recordings.file(file, of: name), type: "application/octet-stream")
        },
    ])

    /// The members of the body of `POST /freeze`; conditions add up.
    private static let frozen: [Parameter] = Parameter.documented([
        "The recording's name, and its folder's.": Parameter("name", isRequired: true),
        "Only responses that show an object of this model.": Parameter("model"),
        "Only responses of the route whose path the config spells so.": Parameter("route"),
        "Whose responses, by label; needed where there are several.": Parameter("principal"),
        "Only responses that came no longer ago: 90s, 15m, 12h, 7d.": Parameter("max_age"),
    ])

    /// What to freeze and under which name; fails for names that neither config nor store know.
    private static func freezing(
        _ request: AdminRequest,
        _ daemon: DaemonCore
    ) async throws -> (name: String, FreezeSelection) {
        let members = frozen.map(\.name)
        for (member, value) in try request.members() where value.text == nil {
            throw ProblemDocument.badRequest("\(member) must be a text that is not empty")
        }
        let texts = try request.texts(members, advice: members.joined(separator: ", "))
        var selection = FreezeSelection()
        (selection.model, selection.principal) = (texts["model"], texts["principal"])
        selection.maxAge = try texts["max_age"].map { try AdminRequest.microseconds($0, of: "max_age") }
        guard let name = texts["name"] else { throw ProblemDocument.badRequest("name is missing") }
        if let model = selection.model, let complaint = daemon.complaint(aboutModel: model) {
            throw ProblemDocument.badRequest(complaint)
        }
        if let principal = selection.principal { try await daemon.checkPrincipal(principal) }
        if let route = texts["route"] {
            let routes = try daemon.routes(spelled: route)
            selection.covers = { upstream, url in routes.contains { $0.upstream == upstream && $0.covers(url) } }
        }
        return (name, selection)
    }
}

extension RecordingStopped {
    fileprivate init(_ name: String, _ summary: RecordingSummary) {
        (self.name, exchanges) = (name, summary.count)
        notices = Array(summary.sentences(folder: name).dropFirst())
    }
}

extension DaemonCore {
    fileprivate func recordings() throws -> Recordings {
        guard let recordings = state.recordings else {
            throw ProblemDocument(409, "this daemon is for one recording: start one with larder serve")
        }
        return recordings
    }
}
