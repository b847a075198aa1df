public import Synchronization

/// The number of a row, or of a change.
///
/// Each kind of number has its own type, so that none is taken for another. They are issued from 1 on.
public protocol RowID: RawRepresentable<Int64>, Hashable, Comparable, Sendable, CustomStringConvertible {
    init(rawValue: Int64)
}

extension RowID {
    @inlinable public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    public var description: String { String(rawValue) }

    /// The id of no row, less than all others.
    @inlinable package static var zero: Self { Self(rawValue: 0) }

    static var max: Self { Self(rawValue: .max) }

    mutating func increment() -> Self {
        self = Self(rawValue: rawValue + 1)
        return self
    }
}

/// The surrogate id of a principal.
public struct PrincipalID: RowID {
    public let rawValue: Int64
    @inlinable public init(rawValue: Int64) { self.rawValue = rawValue }

    /// The id of no principal: nothing is stored under it.
    @inlinable public static var nobody: PrincipalID { PrincipalID(rawValue: 0) }

    /// The id of requests without credentials.
    @inlinable public static var anonymous: PrincipalID { PrincipalID(rawValue: 1) }
}

/// The id of an object; it is never reused while the store is open.
public struct ObjectID: RowID {
    public let rawValue: Int64
    @inlinable public init(rawValue: Int64) { self.rawValue = rawValue }
}

/// The id of a document; it is never reused while the store is open.
public struct DocumentID: RowID, AtomicRepresentable {
    public let rawValue: Int64
    @inlinable public init(rawValue: Int64) { self.rawValue = rawValue }
}

/// A number of the commit sequence, which numbers every change in the file.
///
/// Clients see it as another number, by `ObjectStore.publicSequence`.
public struct CommitNumber: RowID, AtomicRepresentable {
    public let rawValue: Int64
    @inlinable public init(rawValue: Int64) { self.rawValue = rawValue }
}

/// The id of a set of URLs that a write in progress may change.
public struct SuspectID: RowID {
    public let rawValue: Int64
    @inlinable public init(rawValue: Int64) { self.rawValue = rawValue }
}

/// The id of an observation: of a response, as evidence about objects.
struct ObservationID: RowID { let rawValue: Int64 }

struct VersionID: RowID { let rawValue: Int64 }

/// The id of bytes that documents of several principals have in common.
struct SharedBodyID: RowID { let rawValue: Int64 }

/// The id of a scope: an upstream, a principal and a context.
struct ScopeID: RowID { let rawValue: Int64 }

/// The id of a collection: the objects of one model in one scope.
struct CollectionID: RowID { let rawValue: Int64 }
