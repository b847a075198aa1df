import HTTPSemantics
import Recording

extension AdminRoute {
    /// What a daemon that replays is told.
    static let recordings: [AdminRoute] = [
        AdminRoute(
            method: "POST",
            path: "/replay/reset",
            sentence: "Begins the sequences of a replay anew, in all sessions.",
            answer: { _, context throws(Problem) in
                guard let replayer = context.replayer else {
                    throw Problem(409, "this daemon replays no recording: start it with larder replay or larder run")
                }
                replayer.reset()
                return .json(["reset": true])
            }
        )
    ]
}
