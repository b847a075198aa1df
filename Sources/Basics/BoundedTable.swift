public import Synchronization

/// A table with a bound, for what can be found or computed again: past the bound, the entries that were set first are forgotten.
///
/// It has two generations. A new entry joins the younger one; when that has half of the limit, the older one is dropped and the
/// younger takes its place. So nothing need be sorted or counted, and the latest entries, half of the limit, are always there.
///
/// Its functions can be inlined, so that other rooms get code for their own types; a miss asks such tables dozens of times.
public struct BoundedTable<Key: Hashable, Value> {
    @usableFromInline var young: [Key: Value] = [:]
    @usableFromInline var old: [Key: Value] = [:]
    @usableFromInline let limit: Int

    /// Creates a table of at most `limit` entries, two or more.
    @inlinable public init(limit: Int) { self.limit = limit }

    public var count: Int { young.count + old.count }

    /// The number of entries for which a condition holds.
    public func count(where isCounted: (_ key: Key, _ value: Value) -> Bool) -> Int {
        young.count { isCounted($0.key, $0.value) } + old.count { isCounted($0.key, $0.value) }
    }

    /// All entries, in any order.
    public var entries: [(key: Key, value: Value)] { young.map { ($0.key, $0.value) } + old.map { ($0.key, $0.value) } }

    /// Whether there are no entries.
    @inlinable public var isEmpty: Bool { young.isEmpty && old.isEmpty }

    /// The value of a key; setting it makes the entry young, and setting nil removes it.
    @inlinable
    public subscript(key: Key) -> Value? {
        get { young[key] ?? (old.isEmpty ? nil : old[key]) }
        set { set(newValue, for: key) }
    }

    @inlinable
    mutating func set(_ value: Value?, for key: Key) {
        if !old.isEmpty { old[key] = nil }
        guard let value else {
            if !young.isEmpty { young[key] = nil }
            return
        }
        if young.count >= max(limit / 2, 1), young[key] == nil { age() }
        young[key] = value
    }

    /// The value of a key; `make` makes one that is not known.
    @inlinable
    public mutating func value(for key: Key, _ make: () -> Value) -> Value {
        if let known = self[key] { return known }
        let value = make()
        self[key] = value
        return value
    }

    /// Drops the older generation, and begins a new one.
    @inlinable public mutating func age() { (old, young) = (young, [:]) }

    /// Removes all entries.
    public mutating func removeAll() { (young, old) = ([:], [:]) }

    /// Removes the entries for which a condition holds.
    public mutating func removeAll(where isRemoved: (_ key: Key, _ value: Value) -> Bool) {
        young = young.filter { !isRemoved($0.key, $0.value) }
        old = old.filter { !isRemoved($0.key, $0.value) }
    }
}

extension BoundedTable: Sendable where Key: Sendable, Value: Sendable {}

/// What was computed for recent arguments; any thread.
public final class Memo<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline let known: Mutex<BoundedTable<Key, Value>>

    /// Creates a memory of at most `limit` results.
    @inlinable public init(limit: Int) { known = Mutex(BoundedTable(limit: limit)) }

    /// The value for a key; `make`, which runs without a lock and maybe on several threads, makes one that is not known.
    @inlinable
    public func value(for key: Key, _ make: () -> Value) -> Value {
        if let value = known.withLock({ $0[key] }) { return value }
        let value = make()
        known.withLock { $0[key] = value }
        return value
    }
}
