/// What the tests of `/changes` have in common: lists of users, and a request that has them asked for again.
protocol ChangesFixtures {}

extension ChangesFixtures {
    typealias Changing = CoherenceTests.Changing

    static var again: FieldLines { ["Cache-Control": "no-cache"] }

    static func users(_ count: Int, _ name: String) -> String {
        "[" + (1...count).map { #"{"id":\#($0),"login":"u\#($0)","name":"\#(name)"}"# }.joined(separator: ",") + "]"
    }
}
