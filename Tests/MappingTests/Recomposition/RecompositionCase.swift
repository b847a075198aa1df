import Testing

@testable import Mapping

/// One document before and after others were received.
///
/// Bodies are of people, or of the model that they name in front: `Country {"code":"fr"}`. A body that is an array is a list.
struct RecompositionCase: Sendable, CustomTestStringConvertible {
    /// The body that is not wholly known any more.
    static let miss = "?"
    /// The body as received.
    static let same = "="

    let what: String
    let before: String
    let later: [String]
    let after: String

    init(_ what: String, _ before: String, _ later: String..., becomes after: String) {
        self.what = what
        self.before = before
        self.later = later
        self.after = after
    }

    var testDescription: String { what }

    /// What the document shows in the end.
    func shown() throws -> String {
        var shelf = Shelf(try Circle.models())
        Self.receive(before, as: "document", into: &shelf)
        for (index, body) in later.enumerated() { Self.receive(body, as: "later \(index)", into: &shelf) }
        return shelf.shown("document")
    }

    private static func receive(_ text: String, as name: String, into shelf: inout Shelf) {
        var (model, body) = ("Person", text)
        if let first = text.first, first.isUppercase, let space = text.firstIndex(of: " ") {
            (model, body) = (String(text[..<space]), String(text[text.index(after: space)...]))
        }
        let isList = body.first { !$0.isWhitespace } == "["
        shelf.receive(name, body, model, list: isList)
    }
}

/// People who know each other: relations of every kind.
enum Circle {
    static func models() throws -> Models {
        var animal = ModelDeclaration(name: "Animal", identity: ["id"], properties: [Wire.property("name")])
        animal.choices = [
            ModelChoice(model: "Dog", condition: .has("bark")), ModelChoice(model: "Cat", condition: nil),
        ]
        var dog = ModelDeclaration(name: "Dog", properties: [Wire.property("bark")])
        dog.base = "Animal"
        var cat = ModelDeclaration(name: "Cat", properties: [Wire.property("purr")])
        cat.base = "Animal"
        return try Models([
            ModelDeclaration(
                name: "Person",
                identity: ["id"],
                properties: [
                    Wire.property("name"), Wire.property("age"), Wire.property("nick", "profile.nick"),
                    Wire.property("bossName", "boss.name"),
                    Wire.property("boss", nil, .one("Person")), Wire.property("friends", nil, .many("Person")),
                    Wire.property("home", nil, .one("Address")), Wire.property("homes", nil, .many("Address")),
                    Wire.property("team", nil, .keyed("Person")), Wire.property("pets", nil, .many("Animal")),
                    Wire.property("badge", nil, .one("Badge")),
                ],
                local: ["rank"]
            ),
            ModelDeclaration(
                name: "Address",
                properties: [
                    Wire.property("street"), Wire.property("city"), Wire.property("country", nil, .one("Country")),
                ]
            ),
            ModelDeclaration(name: "Country", identity: ["code"], properties: [Wire.property("name")]),
            ModelDeclaration(name: "Badge", identity: ["id"], sharesAll: true, local: ["seen"]),
            animal, dog, cat,
        ])
    }
}
