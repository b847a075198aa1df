public import Synchronization

/// The number of a row; each kind of row has a type of its own, so that no id is taken for another.
///
/// Rows are numbered from 1.
public protocol RowID: RawRepresentable<Int64>, Hashable, Comparable, Sendable, CustomStringConvertible {
    /// Makes the id of a number.
    init(rawValue: Int64)
}

extension RowID {
    /// In the order in which the ids were given out.
    @inlinable
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// The number.
    public var description: String { String(rawValue) }

    /// The id of no row, before all others.
    @inlinable
    package static var zero: Self { Self(rawValue: 0) }

    /// An id after all others.
    static var max: Self { Self(rawValue: .max) }

    /// Goes on to the next id, and returns it.
    mutating func increment() -> Self {
        self = Self(rawValue: rawValue + 1)
        return self
    }
}

/// The surrogate id of a principal.
public struct PrincipalID: RowID {
    /// The row's number.
    public let rawValue: Int64

    /// Makes the id of a number.
    @inlinable
    public init(rawValue: Int64) { self.rawValue = rawValue }

    /// The id of no principal: nothing is stored under it.
    @inlinable
    public static var nobody: PrincipalID { PrincipalID(rawValue: 0) }

    /// The id of requests without credentials.
    @inlinable
    public static var anonymous: PrincipalID { PrincipalID(rawValue: 1) }
}

/// The id of an object; never given to another one while the store is open.
public struct ObjectID: RowID {
    /// The row's number.
    public let rawValue: Int64

    /// Makes the id of a number.
    @inlinable
    public init(rawValue: Int64) { self.rawValue = rawValue }
}

/// The id of a document; never given to another one while the store is open.
public struct DocumentID: RowID, AtomicRepresentable {
    /// The row's number.
    public let rawValue: Int64

    /// Makes the id of a number.
    @inlinable
    public init(rawValue: Int64) { self.rawValue = rawValue }
}

/// The id of a set of URLs that a write under way may change.
public struct SuspectID: RowID {
    /// The row's number.
    public let rawValue: Int64

    /// Makes the id of a number.
    @inlinable
    public init(rawValue: Int64) { self.rawValue = rawValue }
}

/// The id of a scope: an upstream, a principal and a context.
struct ScopeID: RowID {
    let rawValue: Int64
}

/// The id of a collection: the objects of one model in one scope.
struct CollectionID: RowID {
    let rawValue: Int64
}
