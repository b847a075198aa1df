import Testing

@testable import Mapping

/// One conversion with what comes of one value; nil: it is not of the conversion's type.
struct ConversionCase: Sendable, CustomTestStringConvertible {
    var declaration: ConversionDeclaration
    var wire: String
    var mapped: String?
    /// What the mapped value is written back as, where that is not what was there.
    var back: String?

    init(_ declaration: ConversionDeclaration, _ wire: String, _ mapped: String?, back: String? = nil) {
        (self.declaration, self.wire, self.mapped, self.back) = (declaration, wire, mapped, back)
    }

    var testDescription: String { "\(declaration) \(wire)" }
}

/// Each conversion by examples, there and back, and declarations that cannot be one.
struct ConverterTests {
    private static let losAngeles = ConversionDeclaration.date(
        .pattern("MMMM d, yyyy", zone: "America/Los_Angeles")
    )
    private static let money = ConversionDeclaration.number(grouping: ",", decimal: ".")
    private static let state = ConversionDeclaration.enumeration(
        [.init(wire: "open", mapped: "opened"), .init(wire: "closed", mapped: "done")]
    )

    static let cases: [ConversionCase] = [
        // FJ-11, FJ-12
        ConversionCase(.named("date"), #""2012-11-13T13:31:36Z""#, #""2012-11-13T13:31:36Z""#),
        ConversionCase(.named("date"), #""2012-11-13T13:31:36.250Z""#, #""2012-11-13T13:31:36.250Z""#),
        ConversionCase(.named("date"), #""2012-11-13T14:31:36+01:00""#, #""2012-11-13T14:31:36+01:00""#),
        ConversionCase(
            .named("date"),
            #""2012-11-13t13:31:36z""#,
            #""2012-11-13T13:31:36Z""#,
            back: #""2012-11-13T13:31:36Z""#
        ),
        ConversionCase(
            .named("date"),
            #""2012-11-13 13:31:36Z""#,
            #""2012-11-13T13:31:36Z""#,
            back: #""2012-11-13T13:31:36Z""#
        ),
        ConversionCase(.named("date"), #""2012-02-30T13:31:36Z""#, nil),
        ConversionCase(.named("date"), #""2012-11-13""#, nil),
        ConversionCase(.named("date"), "1352813496", nil),
        ConversionCase(.named("date"), "null", "null"),
        // RK-12
        ConversionCase(.date(.unixSeconds), "1352813496", #""2012-11-13T13:31:36Z""#),
        ConversionCase(.date(.unixSeconds), "457574400", #""1984-07-02T00:00:00Z""#),
        ConversionCase(.date(.unixSeconds), #""457574400""#, nil),
        ConversionCase(.date(.unixSeconds), "0", #""1970-01-01T00:00:00Z""#),
        ConversionCase(.date(.unixSeconds), "-1", #""1969-12-31T23:59:59Z""#),
        ConversionCase(.date(.unixSeconds), "-1.25", #""1969-12-31T23:59:58.75Z""#),
        ConversionCase(.date(.unixSeconds), "0.001", #""1970-01-01T00:00:00.001Z""#),
        ConversionCase(.date(.unixSeconds), "1.5e9", #""2017-07-14T02:40:00Z""#, back: "1500000000"),
        ConversionCase(.date(.unixSeconds), "1e400", nil),
        ConversionCase(.date(.unixSeconds), "253402300800", nil),
        ConversionCase(.date(.unixSeconds), "true", nil),
        ConversionCase(.date(.unixMilliseconds), "1352813496123", #""2012-11-13T13:31:36.123Z""#),
        ConversionCase(.date(.unixMilliseconds), "1352813496000", #""2012-11-13T13:31:36Z""#),
        ConversionCase(.date(.unixSeconds), "253402300799.123456789", #""9999-12-31T23:59:59.123456789Z""#),
        ConversionCase(.date(.unixSeconds), "-62167219199.000000000001", #""0000-01-01T00:00:00.999999999999Z""#),
        ConversionCase(.date(.unixMilliseconds), "0.000000001", #""1970-01-01T00:00:00.000000000001Z""#),
        ConversionCase(.date(.unixMilliseconds), "-1.5", #""1969-12-31T23:59:59.9985Z""#),
        ConversionCase(losAngeles, #""September 1, 1066""#, nil),
        ConversionCase(losAngeles, #""September 1, 10000""#, nil),
        ConversionCase(.date(.unixMilliseconds), "-1", #""1969-12-31T23:59:59.999Z""#),
        // MT-37
        ConversionCase(losAngeles, #""September 25, 2015""#, #""2015-09-25T07:00:00Z""#),
        ConversionCase(losAngeles, #""June 29, 2007""#, #""2007-06-29T07:00:00Z""#),
        ConversionCase(losAngeles, #""September 37, 2015""#, nil),
        ConversionCase(.date(.pattern("MM/dd/yyyy", zone: "UTC")), #""08/09/2011""#, #""2011-08-09T00:00:00Z""#),
        ConversionCase(
            .date(.pattern("yyyy-MM-dd HH:mm:ss.SSS", zone: "UTC")),
            #""2011-08-09 01:02:03.045""#,
            #""2011-08-09T01:02:03.045Z""#
        ),
        // MT-13, MT-12
        ConversionCase(.named("url"), #""https://example.com/a?b#c""#, #""https://example.com/a?b#c""#),
        ConversionCase(.named("url"), #""https:\/\/example.com\/a""#, #""https:\/\/example.com\/a""#),
        ConversionCase(.named("url"), #""http://bücher.example/ß""#, #""http://bücher.example/ß""#),
        ConversionCase(.named("url"), #""this is not a url""#, nil),
        ConversionCase(.named("url"), #""http://example.com/a b""#, nil),
        ConversionCase(.named("url"), #""http://example.com/%4""#, nil),
        ConversionCase(.named("url"), #""/relative""#, nil),
        ConversionCase(.named("url"), "666", nil),
        // MT-14
        ConversionCase(
            .named("uuid"),
            #""86D2E1CA-06C3-4B5E-8E9C-5A5A5A5A5A5A""#,
            #""86D2E1CA-06C3-4B5E-8E9C-5A5A5A5A5A5A""#
        ),
        ConversionCase(.named("uuid"), #""86D2E1CA06C34B5E8E9C5A5A5A5A5A5A""#, nil),
        // MT-15, MT-16, MT-17
        ConversionCase(.named("boolean"), "false", "false"),
        ConversionCase(.named("boolean"), "1", "true", back: "true"),
        ConversionCase(.named("boolean"), "0", "false", back: "false"),
        ConversionCase(.named("boolean"), "2", nil),
        ConversionCase(.named("boolean"), #""Potentially""#, nil),
        // MT-18, MT-19
        ConversionCase(.named("string"), #""a""#, #""a""#),
        ConversionCase(.named("string"), "666", nil),
        ConversionCase(.named("integer"), "69726278940360707", "69726278940360707"),
        ConversionCase(.named("integer"), "5.0", "5.0"),
        ConversionCase(.named("integer"), "5.5", nil),
        ConversionCase(.named("integer"), #""5""#, nil),
        ConversionCase(.named("decimal"), "0.10000000000000000001", "0.10000000000000000001"),
        ConversionCase(.named("decimal"), #""19.90""#, #""19.90""#),
        ConversionCase(.named("decimal"), #""Apple""#, nil),
        // MT-38
        ConversionCase(money, #""0.12345""#, "0.12345"),
        ConversionCase(money, #""12,345.678""#, "12345.678"),
        ConversionCase(money, #""-1,234,567""#, "-1234567"),
        ConversionCase(money, #""1234""#, "1234", back: #""1,234""#),
        ConversionCase(money, #""12,34""#, nil),
        ConversionCase(money, #""1,,234""#, nil),
        ConversionCase(money, #""1.""#, nil),
        ConversionCase(money, #""Apple""#, nil),
        ConversionCase(money, "12", nil),
        // MT-35
        ConversionCase(state, #""open""#, #""opened""#),
        ConversionCase(state, #""draft""#, nil),
        ConversionCase(state, #""opened""#, nil),
        ConversionCase(.named("base64"), #""aGVsbG8=""#, #""hello""#),
        ConversionCase(.named("base64"), #""aGVs\nbG8=\n""#, #""hello""#, back: #""aGVsbG8=""#),
        ConversionCase(.named("base64"), #""/w==""#, nil),
        ConversionCase(.named("base64"), #""a""#, nil),
        ConversionCase(.arrayOf(.date(.unixSeconds)), "[0, null]", #"["1970-01-01T00:00:00Z",null]"#, back: "[0,null]"),
        ConversionCase(.arrayOf(.named("url")), "7", nil),
        ConversionCase(
            .dictionaryOf(.date(.unixSeconds)),
            #"{"a" : 0}"#,
            #"{"a":"1970-01-01T00:00:00Z"}"#,
            back: #"{"a":0}"#
        ),
        ConversionCase(.chain([.named("base64"), state]), #""b3Blbg==""#, #""opened""#),
        ConversionCase(
            .values([.init(wire: Array("1".utf8), mapped: Array(#""one""#.utf8))], fallback: nil, reverseFallback: nil),
            "1.0",
            #""one""#,
            back: "1"
        ),
        ConversionCase(
            .values(
                [.init(wire: Array("null".utf8), mapped: Array(#""none""#.utf8))],
                fallback: nil,
                reverseFallback: nil
            ),
            "null",
            #""none""#
        ),
    ]

    @Test(
        arguments: cases
    )
    func `a value is converted, and converted back to what it was`(_ example: ConversionCase) throws {
        let converter = try Converter(example.declaration)
        let result = converter.forward(Array(example.wire.utf8))
        guard let mapped = example.mapped else {
            #expect(result.json == Array(example.wire.utf8))
            #expect(result.faults.first?.reason.hasSuffix("expected") == true && result.faults.allSatisfy(\.isKept))
            return
        }
        #expect(result == .value(Array(mapped.utf8)))
        #expect(converter.reverse(Array(mapped.utf8)) == .value(Array((example.back ?? example.wire).utf8)))
    }

    @Test(
        arguments: cases.filter { $0.mapped != nil }
    )
    func `forward, back and forward again gives the same mapped value`(_ example: ConversionCase) throws {
        let converter = try Converter(example.declaration)
        let mapped = try #require(converter.forward(Array(example.wire.utf8)).json)
        let back = try #require(converter.reverse(mapped).json)
        #expect(converter.forward(back) == .value(mapped))
    }

    @Test func `MT-35: a value unknown to an enumeration becomes its fallback, with a warning`() throws {
        let cases = [ConversionDeclaration.Pair(wire: "open", mapped: "opened")]
        let converter = try Converter(.enumeration(cases, fallback: "other", reverseFallback: "open"))
        guard case .partial(let json, let faults) = converter.forward(Array(#""draft""#.utf8)) else {
            Issue.record("the fallback was not used")
            return
        }
        #expect(json == Array(#""other""#.utf8))
        #expect(faults.map(\.reason) == [#"one of "open" is expected; the default "other" is shown instead"#])
        #expect(converter.reverse(Array(#""unheard of""#.utf8)).json == Array(#""open""#.utf8))
        #expect(converter.forward(Array("null".utf8)) == .value(Array("null".utf8)))
    }

    @Test func `MT-36: two values with one name cannot be written back, and are refused`() {
        let twice = ConversionDeclaration.enumeration([.init(wire: "a", mapped: "x"), .init(wire: "b", mapped: "x")])
        #expect(throws: MappingError.self) { try Converter(twice) }
    }

    @Test(
        arguments: [
            ConversionDeclaration.named("dat"), .chain([]), .enumeration([]),
            .date(.pattern("yyyy-MM-dd T", zone: "UTC")), .date(.pattern("yyyy 'of", zone: "UTC")),
            .date(.pattern("foo bar", zone: "UTC")),
            .date(.pattern("MMMM", zone: "Mars/Olympus")), .date(.pattern("", zone: "UTC")),
            .number(grouping: ".", decimal: "."), .number(grouping: "1", decimal: "."),
            .values([.init(wire: Array("{".utf8), mapped: Array("1".utf8))], fallback: nil, reverseFallback: nil),
        ]
    )
    func `an invalid declaration is refused with an explanation`(_ declaration: ConversionDeclaration)
        throws
    {
        let error = try #require(throws: MappingError.self) { try Converter(declaration) }
        #expect(error.description.count > 10)
    }

    @Test func `MT-33, MT-34: an element that its conversion cannot read stays, and the fault gives its position`()
        throws
    {
        let converter = try Converter(.arrayOf(.named("url")))
        let result = converter.forward(Array(#"["http://a.example/", "b", null, 4]"#.utf8))
        #expect(result.json == Array(#"["http://a.example/","b",null,4]"#.utf8))
        #expect(result.faults.map(\.pointer) == ["/1", "/3"])
    }

    @Test func `MT-41: a one-way conversion leaves its value out, writes it unchanged or fails, as declared`() throws {
        let json = Array(#""hello""#.utf8)
        #expect(try Converter(.oneWay(.named("base64"), back: .drop)).reverse(json) == .dropped)
        #expect(try Converter(.oneWay(.named("base64"), back: .raw)).reverse(json) == .value(json))
        guard case .refused = try Converter(.oneWay(.named("base64"), back: .fail)).reverse(json) else {
            Issue.record("the way back was taken")
            return
        }
        #expect(
            try Converter(.oneWay(.named("base64"), back: .drop)).forward(Array(#""aGVsbG8=""#.utf8)).json == json
        )
    }

    @Test(
        arguments: [
            (ConversionDeclaration.named("boolean"), #""yes""#, "true"), (.named("boolean"), #""F""#, "false"),
            (.named("integer"), #""69726278940360707""#, "69726278940360707"), (.named("decimal"), #""1.50""#, "1.50"),
            (.named("string"), "123", #""123""#), (.named("string"), "true", #""true""#),
            (.arrayOf(.named("string")), #""Blue""#, #"["Blue"]"#),
        ]
    )
    func `RK-05, RK-09, RK-10, RK-11: values of another type are coerced only where that is declared`(
        _ declaration: ConversionDeclaration,
        _ wire: String,
        _ mapped: String
    ) throws {
        let converter = try Converter(declaration)
        let coercion = try #require(Coercion.to(declaration))
        let slice = try #require(JSONSlice(Array(wire.utf8)))
        let meant = try #require(coercion.coerced(slice))
        #expect(converter.forward(meant) == .value(Array(mapped.utf8)))
        #expect(converter.forward(Array(wire.utf8)) != .value(Array(mapped.utf8)))
        let shown = try #require(JSONSlice(Array(mapped.utf8)))
        #expect(coercion.coerced(shown) == nil)
    }

    @Test func `no value that can be written as JSON makes a conversion crash`() throws {
        let hostile = [
            "{}", "[]", #""""#, "-0", "1e999999999999999999999", "-1e-999999999999999999999", #""\ud800""#,
            #""\u0000""#, "[[[[]]]]", #"{"a":{"a":1}}"#, "true", "123456789012345678901234567890.123456789012345678901",
            #""9999-12-31T23:59:60Z""#, #""0000-01-01T00:00:00+23:59""#,
            #""2012-11-13T13:31:36.99999999999999999999Z""#, #""9999-12-31T23:59:59.123456789Z""#,
            #""0000-01-01T00:00:00.123456789Z""#, #""9999-12-31T23:59:59-23:59""#,
            "\"\(String(repeating: "9", count: 5_000))\"", String(repeating: "9", count: 5_000),
        ]
        for declaration in Self.cases.map(\.declaration) {
            let converter = try Converter(declaration)
            for value in hostile.map({ Array($0.utf8) }) {
                let meant = JSONSlice(value).flatMap { Coercion.to(declaration)?.coerced($0) } ?? value
                for result in [converter.forward(value), converter.forward(meant), converter.reverse(value)] {
                    if let json = result.json { #expect(!JSONBody.isMalformed(json)) }
                }
            }
        }
    }
}
