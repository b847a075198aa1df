import Store

// Tests name upstreams that they make up by plain texts.
extension UpstreamKey: ExpressibleByStringLiteral {
    init(stringLiteral text: String) { self.init(rawValue: text) }
}
