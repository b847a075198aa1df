import HTTPSemantics
import Recording

/// `POST /replay/reset`.
struct ReplayResetResponse: AdminBody {
    static let sentences = ["reset": "Always true."]
    var reset = true
}

extension AdminRoute {
    /// What is asked of a daemon that replays a recording.
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
        )
    ]
}
