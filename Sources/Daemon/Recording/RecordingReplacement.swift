import Foundation

/// A recording that is made beside the one in a folder, and then takes its place; other files in the folder stay.
///
/// 1. The new recording is written into the folder `.larder-new`, with the folder around it locked. A crash leaves the old
///    recording as it is; the next replacement removes what is in `.larder-new`.
/// 2. `commit` renames that folder to `.larder-complete`. From here on the new recording counts.
/// 3. Its files are moved over the old ones, one after the other. After a crash, whoever locks or reads the folder goes on.
package final class RecordingReplacement {
    /// The new recording, until `commit`.
    package let draft: RecordingFolder
    private let folder: RecordingFolder
    private let lock: RecordingLock
    private let hasMadeFolder: Bool
    private var isLeft = false

    /// Begins a new recording for a folder, which is made unless it exists.
    ///
    /// Fails if another process records into it, or if it has files with a recording's names that are not of a recording.
    package init(_ folder: RecordingFolder) throws(RecordingError) {
        if folder.hasManifest {
            _ = try RecordingManifest.read(folder)
        } else if let name = Self.foreignName(in: folder) {
            throw RecordingError(
                folder.path,
                "the folder contains \(name), but no recording; a new one would replace it: move it away, or name another folder"
            )
        }
        self.folder = folder
        draft = Self.draft(of: folder)
        hasMadeFolder = access(folder.path, F_OK) != 0
        try RecordingFolder.makeFolder(folder.path)
        lock = try RecordingLock(folder)
        draft.remove()
        try RecordingFolder.makeFolder(draft.path)
        // What is not complete must not be committed with the rest of the folder.
        try draft.write(Array("*\n".utf8), to: "\(draft.path)/.gitignore")
    }

    /// Removes the new recording if it was neither committed nor left.
    deinit {
        guard !isLeft else { return }
        draft.remove()
        if hasMadeFolder { rmdir(folder.path) }
    }

    /// Puts the new recording in the place of the old one, which is removed; no writer may use it any more.
    package func commit() throws(RecordingError) {
        // The new recording must survive a power loss before an old one goes. It may have very many files.
        if folder.exists { sync() }
        // Larder makes no link of this name. Only the link itself is removed, not what it leads to.
        if RecordingFolder.kind(Self.complete(folder)) == S_IFLNK { unlink(Self.complete(folder)) }
        guard rename(draft.path, Self.complete(folder)) == 0 else {
            isLeft = true
            throw RecordingError(draft.path, "the new recording stays here: \(RecordingFolder.reason(errno))")
        }
        try Self.finish(in: folder)
    }

    /// Leaves the new recording where it is, for a person to look at, until the next replacement.
    package func leave() { isLeft = true }

    private static func complete(_ folder: RecordingFolder) -> String { "\(folder.path)/.larder-complete" }

    private static func draft(of folder: RecordingFolder) -> RecordingFolder {
        RecordingFolder("\(folder.path)/.larder-new")
    }

    /// Whether a new recording is complete and not in its place yet.
    static func isPending(in folder: RecordingFolder) -> Bool { isFolder(complete(folder)) }

    /// A new recording with exchanges that was not completed, whether it is still being made or Larder was killed.
    static func unfinished(in folder: RecordingFolder) -> RecordingFolder? {
        let draft = draft(of: folder)
        return isFolder(draft.path) && draft.exists && access(draft.exchanges, F_OK) == 0 ? draft : nil
    }

    /// Whether a folder itself is there: a link would lead to files that are none of this recording's.
    private static func isFolder(_ path: String) -> Bool { RecordingFolder.kind(path) == S_IFDIR }

    /// Moves a complete new recording to its place, if there is one; the folder must be locked.
    static func finish(in folder: RecordingFolder) throws(RecordingError) {
        guard isPending(in: folder) else { return }
        let new = RecordingFolder(complete(folder))
        func move(_ file: String, to old: String) throws(RecordingError) {
            guard access(file, F_OK) != 0 || rename(file, old) == 0 else {
                let reason = RecordingFolder.reason(errno)
                throw RecordingError(file, "the new recording cannot be put in its place: \(reason)")
            }
        }
        if access(folder.attributes, F_OK) != 0 { try move(new.attributes, to: folder.attributes) }
        try move(new.manifest, to: folder.manifest)
        if access(new.bodies, F_OK) == 0 { try? FileManager.default.removeItem(atPath: folder.bodies) }
        try move(new.bodies, to: folder.bodies)
        try move(new.exchanges, to: folder.exchanges)
        new.remove()
    }

    /// The name of a file that is not Larder's and would be replaced.
    private static func foreignName(in folder: RecordingFolder) -> String? {
        var status = stat()
        if lstat(folder.exchanges, &status) == 0, status.st_size > 0 { return RecordingFolder.exchangesName }
        let isEmpty = (try? FileManager.default.contentsOfDirectory(atPath: folder.bodies))?.isEmpty
        return RecordingFolder.kind(folder.bodies) != nil && isEmpty != true ? RecordingFolder.bodiesName : nil
    }
}

/// The lock of a recording's folder, held while it exists: only one process at a time records into a folder.
///
/// Whoever takes it first finishes a replacement that was interrupted.
final class RecordingLock {
    let descriptor: Int32

    /// Fails if another process has the lock; never waits.
    init(_ folder: RecordingFolder) throws(RecordingError) {
        let opened = open(folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard opened >= 0 else { throw RecordingError(folder.path, RecordingFolder.reason(errno)) }
        do throws(RecordingError) {
            guard flock(opened, LOCK_EX | LOCK_NB) == 0 else {
                throw RecordingError(folder.path, "another process is recording into this folder; name another one")
            }
            try RecordingReplacement.finish(in: folder)
        } catch {
            close(opened)
            throw error
        }
        descriptor = opened
    }

    deinit { close(descriptor) }
}
