public import Mapping

/// A document that shows an object.
public struct ShowingDocument: Sendable {
    /// What it shows, as far as is known newer.
    public enum Appearance: Sendable, Equatable {
        /// The newest of everything, as it was received.
        case newest
        /// Something older; the newest is put in at the next hit.
        case composed
        /// Something older, and the newest cannot be put in: a miss (law 6).
        case outdated(reason: String)
    }

    /// The document.
    public var row: DocumentRow
    /// What it shows, of all its objects.
    public var appearance: Appearance
    /// The versions of the object that it pins.
    var versions: [Int64]
    /// When and as what it was observed.
    var observation: Observation
}

/// Where an observation comes from.
public struct ObservationSource: Sendable, Equatable {
    /// The method of the request.
    public var method: String
    /// Path and query; credentials in it are replaced.
    public var url: String
    /// Whether the answer is still in the store.
    public var isStored: Bool
}

/// That an object is gone, or that a write has happened of which nobody was told what it made of it.
public struct ObjectNotice: Sendable, Equatable {
    /// What is known.
    public enum Kind: Sendable, Equatable {
        /// It is gone.
        case deleted
        /// Nobody was told what has become of it.
        case unknown
    }

    /// By what that is known.
    public enum Cause: Sendable, Equatable {
        /// A request.
        case request(MarkSource)
        /// An answer in which it says so of itself; nil where its request is no longer known.
        case itself(ObservationSource?)
        /// What that was is no longer known.
        case forgotten
    }

    /// What is known.
    public var kind: Kind
    /// Since when: of a write its end, of a read its start; microseconds of the store's clock.
    public var time: Int64
    /// By what.
    public var cause: Cause
    /// Whether the object was observed after that, so that only older answers are concerned.
    public var isSuperseded: Bool
}

/// What is known of an object, where from, and which documents show it.
public struct ObjectWhy: Sendable {
    /// That it is gone, or that a write may have changed it; nil where neither is so.
    public var notice: ObjectNotice?
    /// Its members.
    public var members: [Provenance.Member]
    /// Where the observations that they name come from; none where that is no longer known.
    public var sources: [Int64: ObservationSource]
    /// The documents that show it, the newest first; a page that may be short.
    public var documents: Page<ShowingDocument>
}
