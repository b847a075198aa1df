/// What the tests of parts have in common: ten digits, and an upstream that sends any range of them.
protocol RangeOfPartsFixtures {}

extension RangeOfPartsFixtures {
    static var digits: String { "0123456789" }

    static func ranged(_ text: String = digits, tag: String? = "\"one\"", _ fields: FieldLines = Fresh.hour)
        throws -> Origin
    {
        try Origin { RangedContent(text, tag: tag, fields).answer($0) }
    }
}
