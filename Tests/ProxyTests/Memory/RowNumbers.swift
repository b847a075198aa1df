@testable import Store

// Tests name the ids of rows that they make up by plain numbers.
extension RowID where Self: ExpressibleByIntegerLiteral {
    init(integerLiteral value: Int64) { self.init(rawValue: value) }
}
extension PrincipalID: ExpressibleByIntegerLiteral {}
extension ObjectID: ExpressibleByIntegerLiteral {}
extension UpstreamKey: ExpressibleByStringLiteral {
    init(stringLiteral text: String) { self.init(rawValue: text) }
}
