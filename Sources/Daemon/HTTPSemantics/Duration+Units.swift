extension Duration {
    /// The duration in nanoseconds, for comparison with a loop's clock.
    package var nanoseconds: UInt64 {
        let (seconds, attoseconds) = components
        return UInt64(max(0, seconds)) * 1_000_000_000 + UInt64(max(0, attoseconds) / 1_000_000_000)
    }

    /// A hundred years, written `forever`.
    package static let forever: Duration = .seconds(100 * 365 * 86_400)

    /// Whole seconds, as caching rules count.
    package var seconds: Int64 { components.seconds }
}
