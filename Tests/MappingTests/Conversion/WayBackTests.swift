import Testing

@testable import Mapping

/// One description of both ways, for all conversions: what fits is converted, what does not stays as it is, with a warning
/// that carries it, and null and absent stay what they are.
struct WayBackTests {
    /// A conversion, with a value that fits it, the mapped form of that, and values that do not fit.
    struct Example: CustomTestStringConvertible {
        var declaration: ConversionDeclaration
        var wire: String
        var mapped: String
        /// Values that do not fit, although they look like mapped ones.
        var misleading: [String] = []

        var testDescription: String { "\(declaration)" }
    }

    /// How often a value stands in the member: once, in a list, or in an object.
    enum Container: CaseIterable {
        case scalar, list, dictionary

        func wrap(_ declaration: ConversionDeclaration) -> ConversionDeclaration {
            switch self {
            case .scalar: declaration
            case .list: .arrayOf(declaration)
            case .dictionary: .dictionaryOf(declaration)
            }
        }

        /// The member's JSON, with the pointer to the value in it.
        func wrap(_ value: String) -> (json: String, pointer: String) {
            switch self {
            case .scalar: (value, "")
            case .list: ("[null,\(value)]", "/1")
            case .dictionary: (#"{"a/b":\#(value),"c":null}"#, "/a~1b")
            }
        }
    }

    private static let state = ConversionDeclaration.enumeration([
        .init(wire: "open", mapped: "opened"), .init(wire: "closed", mapped: "done"),
    ])
    private static let level = ConversionDeclaration.values(
        [.init(wire: json("1"), mapped: json(#""low""#)), .init(wire: json("2"), mapped: json(#""high""#))],
        fallback: nil,
        reverseFallback: nil
    )
    private static let time = #""2012-11-13T13:31:36Z""#

    static let examples = [
        Example(declaration: .named("string"), wire: #""a""#, mapped: #""a""#),
        Example(declaration: .named("boolean"), wire: "true", mapped: "true", misleading: [#""true""#]),
        Example(declaration: .named("integer"), wire: "5", mapped: "5", misleading: ["5.5", #""5""#]),
        Example(declaration: .named("decimal"), wire: "5.50", mapped: "5.50", misleading: [#""five""#]),
        Example(declaration: .named("url"), wire: #""urn:a""#, mapped: #""urn:a""#, misleading: [#""a b""#]),
        Example(
            declaration: .named("uuid"),
            wire: #""123e4567-e89b-12d3-a456-426614174000""#,
            mapped: #""123e4567-e89b-12d3-a456-426614174000""#,
            misleading: [#""123e4567""#]
        ),
        Example(declaration: .named("date"), wire: time, mapped: time, misleading: [#""yesterday""#, "0"]),
        Example(declaration: .named("base64"), wire: #""Zm9v""#, mapped: #""foo""#, misleading: [#""%%%""#]),
        Example(declaration: .date(.unixSeconds), wire: "1352813496", mapped: time, misleading: [time, #""soon""#]),
        Example(declaration: .date(.unixMilliseconds), wire: "1352813496000", mapped: time, misleading: [time]),
        Example(
            declaration: .date(.pattern("yyyy-MM-dd", zone: "UTC")),
            wire: #""2012-11-13""#,
            mapped: #""2012-11-13T00:00:00Z""#,
            misleading: [time, #""1066-01-01""#]
        ),
        Example(
            declaration: .number(grouping: ",", decimal: "."),
            wire: #""1,234.5""#,
            mapped: "1234.5",
            misleading: ["1234.5", #""Apple""#]
        ),
        Example(declaration: state, wire: #""open""#, mapped: #""opened""#, misleading: [#""done""#, #""x""#]),
        Example(declaration: level, wire: "2", mapped: #""high""#, misleading: [#""low""#, "3"]),
        Example(
            declaration: .chain([.named("base64"), state]),
            wire: #""b3Blbg==""#,
            mapped: #""opened""#,
            misleading: [#""Zm9v""#, #""%%%""#, #""done""#]
        ),
        Example(
            declaration: .firstOf([.named("date"), .date(.unixSeconds)]),
            wire: time,
            mapped: time,
            misleading: [#""soon""#]
        ),
    ]

    private func fixture(_ declaration: ConversionDeclaration) throws -> MapperFixture {
        try MapperFixture(ModelDeclaration("A", Property("shown", "sent", as: declaration), Property("n")))
    }

    @Test(arguments: examples, Container.allCases)
    func `a value that fits is converted and comes back`(example: Example, container: Container) throws {
        let fixture = try fixture(container.wrap(example.declaration))
        let body = #"{"sent":\#(container.wrap(example.wire).json),"n":1}"#
        let shown = fixture.one(body, "A")
        #expect(shown.body == #"{"shown":\#(container.wrap(example.mapped).json),"n":1}"#)
        #expect(shown.warnings.isEmpty && shown.unconverted.isEmpty)
        let back = try fixture.mapper.unmap(json(shown.body), as: BodyRule(model: "A", arity: .one))
        #expect(text(back.body) == body && back.warnings.isEmpty)
    }

    @Test(arguments: examples, Container.allCases)
    func `a value that does not fit stays as it is on both ways, with a warning that carries it`(
        example: Example,
        container: Container
    ) throws {
        let fixture = try fixture(container.wrap(example.declaration))
        for value in example.misleading + [#"{"x":[1]}"#] {
            let (sent, pointer) = container.wrap(value)
            let body = #"{"sent":\#(sent),"n":1}"#
            let shown = fixture.one(body, "A")
            #expect(shown.body == body.replacing("sent", with: "shown"))
            #expect(shown.kinds == [.conversionFailed] && shown.pointers == ["/sent\(pointer)"])
            #expect(shown.warnings.map(\.value) == [json(value)])
            #expect(shown.unconverted == ["/shown\(pointer)"])
            let back = try fixture.mapper.unmap(
                json(shown.body),
                as: BodyRule(model: "A", arity: .one),
                unconverted: shown.unconverted
            )
            #expect(text(back.body) == body)
            #expect(back.warnings.map(\.kind) == [.conversionFailed])
            #expect(back.warnings.map(\.pointer) == ["/shown\(pointer)"])
            #expect(back.warnings.map(\.value) == [json(value)])
        }
    }

    @Test(arguments: examples, Container.allCases)
    func `a mapped value that cannot be converted back is written as it is, and the rest is converted`(
        example: Example,
        container: Container
    ) throws {
        let fixture = try fixture(container.wrap(example.declaration))
        let (shown, pointer) = container.wrap(#"{"x":[1]}"#)
        let back = try fixture.mapper.unmap(
            json(#"[{"shown":\#(shown),"n":1},{"shown":\#(container.wrap(example.mapped).json)}]"#),
            as: BodyRule(model: "A", arity: .many)
        )
        #expect(text(back.body) == #"[{"sent":\#(shown),"n":1},{"sent":\#(container.wrap(example.wire).json)}]"#)
        #expect(back.warnings.map(\.kind) == [.conversionFailed])
        #expect(back.warnings.map(\.pointer) == ["/0/shown\(pointer)"])
        #expect(back.warnings.map(\.value) == [json(#"{"x":[1]}"#)])
    }

    @Test(arguments: examples, Container.allCases)
    func `null stays null and absent stays absent on both ways`(example: Example, container: Container) throws {
        let fixture = try fixture(container.wrap(example.declaration))
        for body in [#"{"n":1}"#, #"{"sent":null,"n":1}"#, #"{"sent":\#(container.wrap("null").json),"n":1}"#] {
            let shown = fixture.one(body, "A")
            #expect(shown.body == body.replacing("sent", with: "shown"))
            let back = try fixture.mapper.unmap(json(shown.body), as: BodyRule(model: "A", arity: .one))
            #expect(text(back.body) == body)
            #expect(shown.warnings.isEmpty && shown.unconverted.isEmpty && back.warnings.isEmpty)
        }
    }

    @Test(arguments: examples, Container.allCases)
    func `a conversion without a way back drops, writes or refuses each value, as declared`(
        example: Example,
        container: Container
    ) throws {
        func back(_ back: ConversionDeclaration.Back, _ shown: String) throws -> String {
            try fixture(container.wrap(.oneWay(example.declaration, back: back))).unmap(#"{"shown":\#(shown)}"#, "A")
        }
        let shown = container.wrap(example.mapped).json
        let dropped = [Container.scalar: "{}", .list: #"{"sent":[null,null]}"#, .dictionary: #"{"sent":{}}"#]
        #expect(try back(.drop, shown) == dropped[container])
        #expect(try back(.raw, shown) == #"{"sent":\#(shown)}"#)
        #expect(throws: UnmapError.self) { try back(.fail, shown) }
        #expect(try back(.fail, container.wrap("null").json) == #"{"sent":\#(container.wrap("null").json)}"#)
    }

    @Test func `a map of values that is only read may give several values one name`() throws {
        let done = ConversionDeclaration.enumeration([
            .init(wire: "closed", mapped: "done"), .init(wire: "resolved", mapped: "done"),
        ])
        #expect(throws: MappingError.self) { try Converter(done) }
        #expect(throws: MappingError.self) { try Converter(.chain([done, .oneWay(.named("string"), back: .drop)])) }
        let fixture = try fixture(.oneWay(.arrayOf(done), back: .drop))
        #expect(fixture.one(#"{"sent":["closed","resolved"]}"#, "A").body == #"{"shown":["done","done"]}"#)
    }

    @Test func `the default of a map of values gives a warning, and what it stands for is not converted back`() throws {
        let state = ConversionDeclaration.enumeration([.init(wire: "open", mapped: "opened")], fallback: "unknown")
        let fixture = try fixture(state)
        let shown = fixture.one(#"{"sent":"locked"}"#, "A")
        #expect(shown.body == #"{"shown":"unknown"}"# && shown.unconverted.isEmpty)
        #expect(shown.warnings.map(\.value) == [json(#""locked""#)])
        #expect(try fixture.unmap(shown.body, "A") == #"{"sent":"unknown"}"#)
    }

    @Test func `each element of a list goes through a whole chain, or stays as the upstream sent it`() throws {
        let chain = ConversionDeclaration.chain([.arrayOf(.named("base64")), .arrayOf(Self.state)])
        let shown = try fixture(chain).one(#"{"sent":["b3Blbg==","Zm9v"]}"#, "A")
        #expect(shown.body == #"{"shown":["opened","Zm9v"]}"#)
        #expect(shown.pointers == ["/sent/1"] && shown.unconverted == ["/shown/1"])
        // What is no list of values by itself stays as a whole.
        let mixed = ConversionDeclaration.chain([
            .values([.init(wire: json("1"), mapped: json(#"["open","x"]"#))], fallback: nil, reverseFallback: nil),
            .arrayOf(Self.state),
        ])
        #expect(try fixture(mixed).one(#"{"sent":1}"#, "A").body == #"{"shown":1}"#)
    }
}
