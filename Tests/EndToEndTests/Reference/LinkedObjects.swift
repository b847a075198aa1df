/// The kinds of object that the reference upstream has.
enum Kind: String, Hashable, Sendable {
    case user = "User"
    case label = "Label"
    case issue = "Issue"
}

/// One object of the upstream.
struct Ref: Hashable, Sendable, CustomStringConvertible {
    let kind: Kind
    let id: Int

    var description: String { "\(kind.rawValue) \(id)" }
}

/// A value by what it means, however it is spelled.
enum Datum: Hashable, Sendable {
    case null
    case text(String)
    case number(Int)
    /// Relations, by the identities of the objects they lead to.
    case one(Int?)
    case many([Int])
    case keyed([String: Int])

    var one: Int? { if case .one(let id) = self { id } else { nil } }
    var many: [Int] { if case .many(let ids) = self { ids } else { [] } }
    var keyed: [String: Int] { if case .keyed(let ids) = self { ids } else { [:] } }
}

/// Whose data a response is, and in which representation (laws 4 and 5): values never cross from one into another.
struct Scope: Hashable, Sendable, CustomStringConvertible {
    let principal: String
    let language: String

    var description: String { "\(principal.isEmpty ? "nobody" : principal), \(language.isEmpty ? "-" : language)" }
}

/// What the upstream has of one principal's data at one moment.
///
/// A value: whoever holds one holds what was true when it was taken.
struct Holdings: Sendable {
    typealias Members = [String: Datum]

    private(set) var objects: [Ref: Members] = [:]
    private var lastNumber = 100
    /// What makes bodies long.
    private let bulk: String

    /// Three users, three labels, three issues.
    ///
    /// No two principals have a changed value in common, and none of them comes back, but for relations and states.
    init(of principal: String, bulk: Int = 0) {
        lastNumber = 100 + 10_000 * (Scope.principals.firstIndex(of: principal) ?? 0)
        self.bulk = String(repeating: "x", count: bulk)
        for id in 1...3 {
            objects[Ref(kind: .user, id: id)] = [
                "login": .text("u\(id)\(principal)"), "name": .text("\(principal) \(id)"), "karma": .number(id),
                "note": .text("n\(id)"),
            ]
            objects[Ref(kind: .label, id: id)] = ["name": .text("l\(id)"), "color": .text("c\(id)")]
            objects[Ref(kind: .issue, id: id)] = issue("\(principal) é/\(id)", id)
        }
    }

    private func issue(_ title: String, _ id: Int) -> Members {
        [
            "title": .text(title), "state": .text(id % 3 == 2 ? "closed" : "open"), "points": .number(id),
            "body": .text("b\(id)\(bulk)"),
            "updated": .text(Self.date(0)), "views": .number(0), "user": .one(1 + id % 3),
            "labels": .many([1 + id % 3]),
            "watchers": .keyed(["first": 1 + id % 3]),
        ]
    }

    /// Every object of a kind, by id.
    func all(_ kind: Kind) -> [Int] { objects.keys.filter { $0.kind == kind }.map(\.id).sorted() }

    subscript(ref: Ref) -> Members? { objects[ref] }

    // MARK: Changes

    /// Gives one member a new value; a number chooses among the few that relations and states have.
    mutating func change(_ ref: Ref, _ member: String, to number: Int) {
        guard objects[ref]?[member] != nil else { return }
        touch(ref)
        let value = value(of: member, number)
        objects[ref]?[member] = value
    }

    mutating func delete(_ ref: Ref) { objects[ref] = nil }

    /// A new issue; one that is there already becomes another.
    mutating func create(_ ref: Ref, number: Int) {
        lastNumber += 1
        objects[ref] = issue("new é/\(lastNumber)", lastNumber)
        touch(ref)
    }

    private mutating func touch(_ ref: Ref) {
        lastNumber += 1
        if ref.kind == .issue { objects[ref]?["updated"] = .text(Self.date(lastNumber)) }
    }

    /// Dates whose order is that of their texts.
    private static func date(_ number: Int) -> String {
        let (minutes, seconds) = (number / 60, number % 60)
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "2026-01-\(two(1 + minutes / 1440))T\(two(minutes / 60 % 24)):\(two(minutes % 60)):\(two(seconds))Z"
    }

    private func value(of member: String, _ number: Int) -> Datum {
        switch member {
        case "karma", "points", "views": .number(lastNumber)
        case "login": .text("l\(lastNumber)")
        case "state": .text(number % 2 == 0 ? "open" : "closed")
        case "name": .text("é/\(lastNumber)")
        case "user": .one(number % 4 == 0 ? nil : number % 4)
        case "labels": .many([[], [1], [1, 2], [2, 1], [3], [1, 2, 3], [2], [3, 2]][number % 8])
        case "watchers": .keyed([["first": 1], ["first": 2], ["first": 2, "second": 3], ["second": 1]][number % 4])
        case "body": .text("b é/\(lastNumber)\(bulk)")
        default: .text("\(member.prefix(1)) é/\(lastNumber)")
        }
    }
}

extension Kind {
    /// The members that change behind Larder's back.
    var changeable: [String] {
        switch self {
        case .user: ["login", "name", "karma", "note"]
        case .label: ["name", "color"]
        case .issue: ["title", "state", "points", "body", "views", "user", "labels", "watchers"]
        }
    }

    /// Members whose text depends on the language.
    static let translated: Set<String> = ["title", "body"]
}
