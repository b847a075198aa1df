import Foundation

/// What the tests of `Larder-Live` have in common: bodies before and after a change, and a config that asks often.
protocol LiveFixtures {}

extension LiveFixtures {
    static var old: String { #"{"id":1,"name":"old"}"# }
    static var new: String { #"{"id":1,"name":"new"}"# }
    static var detail: String { #"{"id":1,"login":"ada","name":"Ada L."}"# }

    /// Asks as often as tests have patience for.
    static func quick(_ interval: String = "50ms") -> [String] { ["live: { interval: \(interval) }"] }

    /// What the list of `CoherenceTests` is once Ada's name is another.
    static func list(_ name: String) -> String {
        CoherenceTests.list.replacingOccurrences(of: #""Ada""#, with: "\"\(name)\"")
    }
}
