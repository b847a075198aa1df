/// The form in which a document is served.
package enum View: Sendable, Equatable {
    /// The upstream's own shape, with the newest known values.
    case wire
    /// The bytes as received, after content decoding.
    case raw
    /// The models' shape, with the newest known values.
    case mapped

    /// Distinguishes the views where responses are distinguished by bytes.
    var number: UInt8 {
        switch self {
        case .wire: 0
        case .raw: 1
        case .mapped: 2
        }
    }
}
