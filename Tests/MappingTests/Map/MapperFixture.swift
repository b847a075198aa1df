@testable import Mapping

typealias Property = PropertyDeclaration

/// A mapper of a few models, with texts in and texts out.
struct MapperFixture {
    /// The mapped view of a text.
    struct Shown {
        var body: String
        var isMapped: Bool
        var warnings: [MappingWarning]
        var synthetic: [String]
        var unconverted: [String]

        var kinds: [MappingWarning.Kind] { warnings.map(\.kind) }
        var pointers: [String?] { warnings.map(\.pointer) }

        init(_ mapped: MappedBody) {
            body = text(mapped.body)
            (isMapped, warnings) = (mapped.isMapped, mapped.warnings)
            (synthetic, unconverted) = (mapped.synthetic, mapped.unconverted)
        }
    }

    let mapper: DocumentMapper

    init(_ declarations: ModelDeclaration...) throws(MappingError) {
        mapper = DocumentMapper(models: try Models(declarations))
    }

    func map(
        _ body: String,
        _ rule: BodyRule,
        in context: MappingContext = .none,
        members: [String]? = nil
    ) -> Shown {
        Shown(mapper.map(Array(body.utf8), as: rule, in: context, members: members))
    }

    /// Of a body that is one object.
    func one(_ body: String, _ model: String, in context: MappingContext = .none, members: [String]? = nil) -> Shown {
        map(body, BodyRule(model: model, arity: .one), in: context, members: members)
    }

    /// Of a body that is an array of objects.
    func list(_ body: String, _ model: String, root: String? = nil) -> Shown {
        map(body, BodyRule(model: model, arity: .many, root: root))
    }

    /// The upstream's JSON of a mapped body.
    func unmap(
        _ body: String,
        _ rule: BodyRule,
        members: [String]? = nil,
        synthetic: [String]? = nil
    ) throws(UnmapError) -> String {
        text(try mapper.unmap(Array(body.utf8), as: rule, members: members, synthetic: synthetic).body)
    }

    /// The upstream's JSON of a body that is one mapped object.
    func unmap(_ body: String, _ model: String, members: [String]? = nil) throws(UnmapError) -> String {
        try unmap(body, BodyRule(model: model, arity: .one), members: members)
    }
}

extension ModelDeclaration {
    /// A model by its name and properties.
    init(_ name: String, identity: [String] = [], _ properties: PropertyDeclaration...) {
        self.init(name: name, identity: identity, properties: properties)
    }

    /// The same with other settings.
    func with(_ change: (inout ModelDeclaration) -> Void) -> ModelDeclaration {
        var copy = self
        change(&copy)
        return copy
    }
}

extension PropertyDeclaration {
    /// A property that is read from the member of its name.
    init(_ name: String) {
        self.init(name: name, from: name)
    }

    /// A property that is read from somewhere else, maybe converted.
    init(_ name: String, _ from: String, as conversion: ConversionDeclaration? = nil) {
        self.init(name: name, from: from, conversion: conversion)
    }

    /// A relation that is read from the member of its name.
    init(_ name: String, one model: String) {
        self.init(name: name, from: name, relation: .one(model))
    }

    /// A relation to several objects.
    init(_ name: String, many model: String) {
        self.init(name: name, from: name, relation: .many(model))
    }

    /// The same with other settings.
    func with(_ change: (inout PropertyDeclaration) -> Void) -> PropertyDeclaration {
        var copy = self
        change(&copy)
        return copy
    }
}

func json(_ text: String) -> [UInt8] { Array(text.utf8) }

extension ConversionDeclaration {
    /// A map of strings to strings.
    static func enumeration(
        _ cases: [Pair],
        fallback: String? = nil,
        reverseFallback: String? = nil
    ) -> ConversionDeclaration {
        .values(
            cases,
            fallback: fallback.map(Pair.json),
            reverseFallback: reverseFallback.map(Pair.json)
        )
    }
}

extension ConversionDeclaration.Pair {
    init(wire: String, mapped: String) { self.init(wire: Self.json(wire), mapped: Self.json(mapped)) }

    fileprivate static func json(_ text: String) -> [UInt8] { Array("\"\(text)\"".utf8) }
}
