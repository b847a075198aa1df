import Foundation
import GRDB
import Mapping
import Synchronization

/// What a copy adds to a store that has content of its own.
extension ObjectStore {
    /// Adds what a copy contains to what the store knows, slice by slice, while the store is in use.
    ///
    /// The copy is checked as `load` checks it. Documents whose key the store has already stay as they are. What is added is of
    /// unknown age: it counts as older than all that this store has observed itself, so that it replaces no value but one with
    /// a lower `modified:` stamp. Each slice is a transaction. If it ends early, merging again adds the rest.
    ///
    /// - Parameters:
    ///   - path: a copy made by `save`. It is used up.
    ///   - principalKey: as for `load`.
    ///   - ofUnknownAge: makes the policy of a document that of one whose age is not known.
    public func merge(
        _ path: String,
        principalKey: [UInt8],
        ofUnknownAge: @escaping @Sendable (_ policy: [UInt8]) -> [UInt8]
    ) async throws(StoreError) -> LoadResult {
        try await loading(path) { core throws(StoreError) in
            let copiedKey = try await blocking { try StoreLoading.check(path, for: core, isMerged: true) }
            let dropped = try await StoreLoading.prepare(path, for: core, withoutPrivate: copiedKey != principalKey)
            defer { core.merging.withLock { $0 = nil } }
            var added = StoreCount()
            do throws(StoreError) {
                let copy = try await blocking { try CopiedContent(path, models: core.models, keys: core.keyHasher) }
                // Before any of it counts: a copy is refused whole.
                try await blocking { try copy.check() }
                let evicted = core.statistics.evicted
                var cursor = CopiedContent.Cursor()
                while true {
                    // It would go on forever displacing what it has added.
                    guard core.statistics.evicted == evicted else {
                        throw .refused(
                            Self.unfinished(
                                added,
                                "the store is full; raise store.maximum_size, or make room on its disk"
                            )
                        )
                    }
                    core.merging.withLock { [cursor] in $0 = MergeProgress(merged: cursor.done, total: copy.total) }
                    let (next, slice) = try await blocking { [cursor] in try copy.slice(after: cursor) }
                    guard !slice.isEmpty else { break }
                    let new = try await result { done in
                        core.post(
                            .prompt,
                            bytes: slice.bytes,
                            isDispensable: true,
                            { try $0.merge(slice, ofUnknownAge: ofUnknownAge) },
                            done: done
                        )
                    }
                    added.objects += new.objects
                    added.documents += new.documents
                    cursor = next
                }
            } catch .corrupt(let reason) where core.foundDamage == nil {
                throw .refused("the copy is damaged: \(reason)")
            } catch .unwritable(let reason) {
                throw .unwritable(Self.unfinished(added, reason))
            } catch .full(let reason) {
                throw .unwritable(Self.unfinished(added, reason))
            }
            return LoadResult(count: try await count(), dropped: dropped, added: added)
        }
    }

    /// How far the merging is that is under way; nil: none is.
    public var mergeProgress: MergeProgress? { core.merging.withLock { $0 } }

    private static func unfinished(_ added: StoreCount, _ reason: String) -> String {
        "\(reason). \(added.documents) documents were added so far; merging again adds the rest"
    }
}

/// How far a merging is: documents and objects of the copy.
public struct MergeProgress: Sendable {
    /// Those that were looked at.
    public var merged: Int
    /// All.
    public var total: Int
}

/// Times of what came with a copy.
///
/// Intervals of two stores are never compared: all times of a copy are moved before everything that this store can have
/// observed, in their own order and with their own distances. What this store observes is newer.
public enum CopiedTime {
    /// Some 47 years: what was observed in 2026 is kept as of 1979, until 2046 before 1999.
    private static let distance: Int64 = 1_500_000_000_000_000
    private static let end: Int64 = 900_000_000_000_000

    /// The time of what a copy adds to an object that is known here: before all else, other copies included.
    static let unknown: Int64 = 1

    /// Whether a time that this store keeps says only that the value came with a copy.
    public static func isUnknown(_ time: Int64) -> Bool { time == unknown }

    /// A time of a copy, as this store keeps it; what came to the copy from another one has been moved already.
    static func moved(_ time: Int64) -> Int64 { time < distance ? time : time - distance }

    /// A time that this store keeps, for people: where it came with a copy, by the clock of the copy's store.
    public static func shown(_ time: Int64) -> Int64 { time > 0 && time < end ? time + distance : time }
}

/// What one slice of a copy contains, read and checked before the writer has it.
struct CopiedSlice: Sendable {
    var documents: [CopiedDocument] = []
    /// By their ids in the copy.
    var objects: [ObjectID: CopiedObject] = [:]
    /// About how much is written for it.
    var bytes = 0

    var isEmpty: Bool { documents.isEmpty && objects.isEmpty }
}

/// Whose data it is, from where, in which representation.
struct CopiedScope: Sendable {
    var upstream: String
    /// The principal's digest.
    var principal: [UInt8]
    var context: String
}

struct CopiedDocument: Sendable {
    struct Pin: Sendable {
        var object: ObjectID
        var payload: [UInt8]
        /// The version of the model that the payload was stored under.
        var declared: Int
    }

    var scope: CopiedScope
    var url: String
    var variant: [UInt8]
    var status: Int64
    var length: Int64
    var head: [UInt8]
    var policy: [UInt8]
    /// The number of its observation in the copy.
    var sighting: Int64
    var observation: Observation
    var pins: [Pin]
    var skeleton: [UInt8]?
    var literal: [UInt8]?
    var keyed: [Int]
    /// Whether it is not known which objects it contains, or by which names writes may mean them.
    var isUndivided: Bool
    /// When it was last used, in seconds: before anything that this store has used, so that it is evicted first.
    var used: Int64
}

struct CopiedObject: Sendable {
    struct Sighting: Sendable {
        var observation: Observation
        /// Method and URL of its request.
        var source: String?
    }

    var scope: CopiedScope
    var model: String
    var identity: Identity
    /// What is known of it, at today's version of its model.
    var state: ObjectState
    var declared: Int
    /// The observations that its state names, by their numbers in the copy.
    var sightings: [Int64: Sighting]
    var markSource: String?
    /// The digests of its keys; nil: the copy made them with a secret that is not this store's.
    var keys: [(value: Int64, isBound: Bool)]?
}
