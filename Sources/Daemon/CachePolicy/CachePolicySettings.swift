/// The rules for interpreting one upstream's responses.
package struct CachePolicySettings: Sendable, Equatable {
    /// The heuristic lifetime of responses that name none, in percent of the time since their last change.
    package static let heuristicPercent: Int64 = 10

    /// Whether to follow RFC 9111's rules for a shared cache, instead of those for a private one.
    package var isShared = false
    /// Whether Larder adds a credential of its own to every request.
    ///
    /// The rules for a shared cache treat it as `Authorization`, whatever field it is sent in.
    package var addsCredential = false
    /// The fields of RFC 9213 that are heeded, the most specific first.
    package var targets: [String] = ["Larder-Cache-Control"]
    /// The longest heuristic lifetime, in seconds.
    package var heuristicMaximum: Int64 = 86_400
    package var storesPartialContent = false

    package init() {}
}
