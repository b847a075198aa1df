import Foundation
import TestSupport

/// Random steps before a real Kinto, whose own direct answers are the truth.
///
/// Once Larder was told of a record — by a read that had to ask, or by a write through it — every response that shows the
/// record must show it as Kinto does. Nothing here knows how.
struct KintoLoad {
    let larder: Larder
    let kinto: UInt16
    var random: SeededGenerator
    /// What was done, for whoever has to understand a failure.
    private(set) var script: [String] = []
    private(set) var hits = 0

    private static let records = "/v1/buckets/default/collections/tasks/records"
    private static let lists = [
        records, "\(records)?done=true", "\(records)?_sort=title", "\(records)?_fields=title,done",
    ]
    private static let users = ["ada", "bela"]

    init(larder: Larder, kinto: UInt16, seed: UInt64) {
        (self.larder, self.kinto, random) = (larder, kinto, SeededGenerator(seed: seed))
    }

    mutating func run(steps: Int) throws {
        for number in 0..<steps { try step(number) }
    }

    private mutating func step(_ number: Int) throws {
        let user = random.pick(Self.users)
        let id = "t\(random.below(6))"
        switch random.below(20) {
        case 0..<4: try write(user, id, number, through: true)
        case 4..<6: try write(user, id, number, through: false)
        case 6: try delete(user, id)
        case 7..<12: try compareList(user)
        case 12..<16: try compareRecord(user, id)
        case 16..<18: try tellEverything(user)
        default: try readAnything(user, id)
        }
    }

    // MARK: Steps

    /// A PUT or PATCH through Larder, or behind its back.
    private mutating func write(_ user: String, _ id: String, _ number: Int, through: Bool) throws {
        let body = #"{"data":{"title":"Title \#(number)","done":\#(random.once(in: 2))}}"#
        let method = random.once(in: 3) ? "PUT" : "PATCH"
        let target = "\(Self.records)/\(id)"
        note("\(method) \(target) as \(user)\(through ? "" : " behind Larder's back"): \(body)")
        let fields = Self.fields(user) + ["Content-Type": "application/json"]
        let answer =
            through
            ? try larder.request(method, target, fields, body: body)
            : try Client(port: kinto).request(method, target, fields, body: body)
        guard answer.status < 500 else { throw violation("a write was answered \(answer.status): \(answer.text)") }
        // Its response told of the record: what Kinto says of it is what Larder must say from now on.
        if through, answer.status < 300 { try compare(target, user, forced: false) }
    }

    private mutating func delete(_ user: String, _ id: String) throws {
        let target = "\(Self.records)/\(id)"
        note("DELETE \(target) as \(user)")
        let answer = try larder.request("DELETE", target, Self.fields(user))
        guard answer.status < 500 else { throw violation("DELETE was answered \(answer.status)") }
        // An error tells nothing of the list.
        guard answer.status < 300 else { return }
        try compare(target, user, forced: false)
        try compare(Self.records, user, forced: false)
    }

    private mutating func compareRecord(_ user: String, _ id: String) throws {
        try compare("\(Self.records)/\(id)", user, forced: true)
        try settle()
        try compare("\(Self.records)/\(id)", user, forced: false)
    }

    /// Larder is told of each record by itself; then a list that it has must show each as it is.
    private mutating func tellEverything(_ user: String) throws {
        var truth: [String: NSDictionary] = [:]
        for number in 0..<6 {
            let target = "\(Self.records)/t\(number)"
            try compare(target, user, forced: true)
            let record = try Client(port: kinto).get(target, Self.fields(user)).object["data"]
            truth["t\(number)"] = record as? NSDictionary
        }
        try settle()
        let list = try larder.get(Self.records, Self.fields(user))
        if list.isHit { hits += 1 }
        for case let shown as NSDictionary in list.object["data"] as? [Any] ?? [] {
            // What is gone is another matter.
            guard let id = shown["id"] as? String, let record = truth[id] else { continue }
            guard shown == record else {
                throw violation("Larder was told of \(record), and lists \(shown) [\(list.cacheStatus)]")
            }
        }
    }

    /// Larder is told of a list as a whole.
    private mutating func compareList(_ user: String) throws {
        let list = random.pick(Self.lists)
        try compare(list, user, forced: true)
        try settle()
        try compare(list, user, forced: false)
    }

    /// Leaves something behind that later changes may make untrue.
    private mutating func readAnything(_ user: String, _ id: String) throws {
        let target = random.once(in: 2) ? random.pick(Self.lists) : "\(Self.records)/\(id)"
        note("GET \(target) as \(user)")
        let answer = try larder.get(target, Self.fields(user))
        guard answer.status < 500 else { throw violation("a read was answered \(answer.status): \(answer.text)") }
    }

    // MARK: Comparing

    private mutating func compare(_ target: String, _ user: String, forced: Bool) throws {
        note("compare \(target) as \(user)\(forced ? ", no-cache" : "")")
        let fields = Self.fields(user)
        let mine = try larder.get(target, fields + (forced ? ["Cache-Control": "no-cache"] : [:]))
        let truth = try Client(port: kinto).get(target, fields)
        if mine.isHit { hits += 1 }
        guard mine.status == truth.status, mine.status != 200 || mine.body == truth.body else {
            throw violation(
                "Larder answers \(mine.status) [\(mine.cacheStatus)] \(mine.text)\nKinto \(truth.status) \(truth.text)"
            )
        }
    }

    /// Waits until Larder has taken in all that it was told.
    private func settle() throws { _ = try larder.request("POST", "/v1/batch", Self.fields("nobody"), body: "{}") }

    private mutating func note(_ line: String) { script.append(line) }

    private func violation(_ text: String) -> Violation {
        Violation("\(text)\nafter\n" + script.suffix(40).map { "  \($0)\n" }.joined())
    }

    private static func fields(_ user: String) -> FieldLines {
        ["Authorization": "Basic \(Data("\(user):secret".utf8).base64EncodedString())"]
    }
}
