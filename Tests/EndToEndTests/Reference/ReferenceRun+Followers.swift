import TestSupport

/// Streams of `Larder-Live: on`: whatever happens, the last event is what a GET is answered then.
extension ReferenceRun {
    /// Has some documents followed while objects change through Larder, behind its back and elsewhere, and compares.
    func checkThatFollowersSee(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed ^ 0xF0)
        var number = 2_000_000
        func fields() -> FieldLines {
            number += 1
            return ["X-Request-Id": "\(number)", "Authorization": "a"]
        }
        let pages = (0..<4).map { _ in random.pick(Page.everything) }
        let followers = try pages.map { try Follower(larder, "/api\($0.target)", fields()) }
        defer { for follower in followers { follower.leave() } }
        var script: [String] = []
        for _ in 0..<12 {
            let ref = Ref(kind: random.pick([.user, .label, .issue]), id: 1 + random.below(3))
            let member = random.pick(ref.kind.changeable)
            let edit = Edit.change(ref, member: member, number: random.below(500))
            let target = "/api\(Page(of: ref).target)"
            switch random.below(6) {
            case 0, 1:
                script.append("through Larder: \(edit)")
                let fields = fields()
                reference.state.withLock { $0.plans[number] = (ResponsePlan(), edit) }
                _ = try larder.request("PATCH", target, fields, body: "{}")
            case 2, 3:
                script.append("behind its back, and read: \(edit)")
                reference.change("a", edit)
                _ = try larder.get(target, fields() + ["Cache-Control": "no-cache"])
            case 4:
                let page = random.pick(pages)
                script.append("behind its back, \(edit), and \(page.target) is read")
                reference.change("a", edit)
                _ = try larder.get("/api\(page.target)", fields() + ["Cache-Control": "no-cache"])
            default:
                let ref = Ref(kind: .issue, id: 1 + random.below(4))
                script.append("through Larder: \(ref) is deleted")
                let fields = fields()
                reference.state.withLock { $0.plans[number] = (ResponsePlan(ending: .empty), .delete(ref)) }
                _ = try larder.request("DELETE", "/api\(Page(of: ref).target)", fields)
            }
        }
        _ = try larder.request("POST", "/settling/now", body: "")
        for (page, follower) in zip(pages, followers) {
            var last = ""
            let isSame = try eventually(within: .seconds(20)) {
                last = try larder.get("/api\(page.target)", fields()).text
                return follower.text == last
            }
            guard isSame else {
                throw Violation(
                    """
                    \(page.target) is answered with
                      \(last)
                    and its followers were last told
                      \(follower.text ?? "nothing")
                    as \(follower.names) after
                    \(script.map { "  \($0)\n" }.joined())
                    """
                )
            }
        }
        figures.followed += followers.count
    }
}
