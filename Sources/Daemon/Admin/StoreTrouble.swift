import Store
import Synchronization

/// What is wrong with the store at the moment, as its notices say; any thread.
final class StoreTrouble: Sendable {
    private enum Kind: Hashable, CaseIterable { case disk, lock, file, damage, secrets }

    private let sentences = Mutex<[Kind: String]>([:])

    var all: [String] { sentences.withLock { sentences in Kind.allCases.compactMap { sentences[$0] } } }

    func record(_ notice: StoreNotice) {
        let (kind, isRelief): (Kind, Bool)
        switch notice {
        case .writesFail: (kind, isRelief) = (.disk, false)
        case .writesWork: (kind, isRelief) = (.disk, true)
        case .lockedOut, .lockedAgainAndAgain: (kind, isRelief) = (.lock, false)
        case .lockGone: (kind, isRelief) = (.lock, true)
        case .fileMoved: (kind, isRelief) = (.file, false)
        case .damaged: (kind, isRelief) = (.damage, false)
        case .damagedFileEmptied: (kind, isRelief) = (.damage, true)
        case .secretsNotErased: (kind, isRelief) = (.secrets, false)
        case .corruptFileSetAside, .earlierFileSetAside, .largeFileSetAside, .suspectsDropped, .modelMigrated,
            .secretsErased:
            return
        }
        sentences.withLock { $0[kind] = isRelief ? nil : notice.description }
    }
}
