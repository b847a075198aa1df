/// A 128-bit keyed digest that names a document's key.
///
/// Made by `KeyHasher` under the store's own secret, so that no client can
/// choose keys that collide. Its bits are uniform already: hashing passes one
/// half of them on and computes nothing.
public struct Digest128: Hashable, Sendable {
    /// The lower 64 bits; the store's index is over these.
    public let low: UInt64

    /// The upper 64 bits.
    public let high: UInt64

    /// Puts the two halves of a digest together.
    public init(low: UInt64, high: UInt64) {
        self.low = low
        self.high = high
    }

    /// Feeds the lower half, which is as good as a hash already.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(low)
    }
}
