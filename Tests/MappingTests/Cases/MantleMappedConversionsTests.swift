import Mapping
import Testing

/// What Mantle's and RestKit's cases say of conversions, through the mapped view and back.
@Suite struct MantleMappedConversionsTests {
    private func fixture(_ conversion: ConversionDeclaration) throws -> MapperFixture {
        try MapperFixture(ModelDeclaration("A", Property("value", "v", as: conversion)))
    }

    /// What a value is shown as; nil, if it stays as it is with a warning.
    private func forward(_ value: String, _ conversion: ConversionDeclaration) throws -> String? {
        let shown = try fixture(conversion).one(#"{"v":\#(value)}"#, "A")
        guard shown.warnings.isEmpty else {
            #expect(shown.kinds == [.conversionFailed] && shown.pointers == ["/v"])
            #expect(shown.body == #"{"value":\#(value)}"#)
            return nil
        }
        return String(shown.body.dropFirst(9).dropLast())
    }

    /// What a mapped value is written back as.
    private func back(_ value: String, _ conversion: ConversionDeclaration) throws -> String {
        String(try fixture(conversion).unmap(#"{"value":\#(value)}"#, "A").dropFirst(5).dropLast())
    }

    @Test func `MT-13, MT-14: text that is no URL or no UUID stays, with a warning`() throws {
        #expect(try forward(#""this is not a url""#, .named("url")) == nil)
        #expect(try forward(#""fff-uuid""#, .named("uuid")) == nil)
        let uuid = #""8F5BB8B2-7DB1-4A1E-9A0C-5E5B8E2A2B7B""#
        #expect(try back(forward(uuid, .named("uuid")) ?? "", .named("uuid")) == uuid)
    }

    @Test func `MT-15: false is written back as false`() throws {
        #expect(try forward("false", .named("boolean")) == "false")
        #expect(try back("false", .named("boolean")) == "false")
    }

    @Test func `MT-35: an unknown value of an enumeration becomes its fallback or stays, with a warning`() throws {
        let cases = [ConversionDeclaration.Pair(wire: "open", mapped: "opened")]
        #expect(try forward(#""open""#, .enumeration(cases)) == #""opened""#)
        #expect(try forward(#""draft""#, .enumeration(cases)) == nil)
        let falling = ConversionDeclaration.enumeration(cases, fallback: "other", reverseFallback: "open")
        let shown = try fixture(falling).one(#"{"v":"draft"}"#, "A")
        #expect(shown.body == #"{"value":"other"}"# && shown.kinds == [.conversionFailed])
        #expect(shown.warnings[0].message.contains(#"the default "other" is shown instead"#))
        #expect(try back(#""unheard""#, falling) == #""open""#)
        // Empty, for those who want it so.
        let pairs = [ConversionDeclaration.Pair(wire: json(#""open""#), mapped: json(#""opened""#))]
        let emptying = ConversionDeclaration.values(pairs, fallback: json("null"), reverseFallback: nil)
        #expect(try fixture(emptying).one(#"{"v":"draft"}"#, "A").body == #"{"value":null}"#)
    }

    @Test func `MT-36: two values of an enumeration with one name are a mistake`() {
        let twice = ConversionDeclaration.enumeration([.init(wire: "a", mapped: "x"), .init(wire: "b", mapped: "x")])
        #expect(throws: MappingError.self) { try fixture(twice) }
    }

    @Test func `MT-37: dates of a declared form are of a declared zone`() throws {
        let form = ConversionDeclaration.date(.pattern("MMMM d, yyyy", zone: "America/Los_Angeles"))
        #expect(try forward(#""September 25, 2015""#, form) == #""2015-09-25T07:00:00Z""#)
        #expect(try back(try forward("1183135260", .date(.unixSeconds)) ?? "", form) == #""June 29, 2007""#)
        #expect(try back(#""2015-09-25T07:00:00Z""#, .date(.unixSeconds)) == "1443164400")
        #expect(try forward(#""September 37, 2015""#, form) == nil)
    }

    @Test func `MT-38: text with declared separators is read as a number, and written back with them`() throws {
        let form = ConversionDeclaration.number(grouping: ",", decimal: ".")
        #expect(try forward(#""0.12345""#, form) == "0.12345")
        #expect(try back("12345.678", form) == #""12,345.678""#)
        #expect(try forward(#""Apple""#, form) == nil)
    }

    @Test func `RK-12: dates are read in the declared form only`() throws {
        #expect(try forward("457574400", .date(.unixSeconds)) == #""1984-07-02T00:00:00Z""#)
        #expect(try forward(#""457574400""#, .date(.unixSeconds)) == nil)
        #expect(try forward(#""08/09/2011""#, .date(.pattern("MM/dd/yyyy", zone: "UTC"))) == #""2011-08-09T00:00:00Z""#)
        #expect(try forward(#""08/09/2011""#, .named("date")) == nil)
    }
}
