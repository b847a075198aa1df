import Foundation
import Store
import TestSupport
import Testing

/// One file has one store, whatever it is called; and whom its files are for.
struct StoreAccessTests {
    enum Alias: CaseIterable {
        case link, folderLink, relativeLink, hardLink
    }

    /// Another name for the store in a folder.
    private func alias(_ alias: Alias, of folder: TemporaryFolder, in other: TemporaryFolder) throws -> String {
        switch alias {
        case .link:
            #expect(symlink(folder.file(), other.file("other.db")) == 0)
            return other.file("other.db")
        case .folderLink:
            #expect(symlink(folder.path, other.file("folder")) == 0)
            return other.file("folder") + "/larder.db"
        case .relativeLink:
            #expect(symlink("larder.db", folder.file("other.db")) == 0)
            return folder.file("other.db")
        case .hardLink:
            #expect(Glibc.link(folder.file(), other.file("other.db")) == 0)
            return other.file("other.db")
        }
    }

    @Test(arguments: Alias.allCases)
    func `an open store cannot be opened by another name of its file`(_ kind: Alias) async throws {
        let (bench, other) = (try Bench(), TemporaryFolder())
        try await bench.receive("/x", "1")
        let path = try alias(kind, of: bench.folder, in: other)
        #expect(throws: StoreError.self) { _ = try ObjectStore.open(StoreConfiguration(path: path)) }
        do throws(StoreError) {
            _ = try ObjectStore.open(StoreConfiguration(path: path))
        } catch {
            #expect(error.description.contains("is in use"), "\(error)")
        }
        // The refused opening has cost the first one neither its files nor its locks.
        #expect(!other.names.contains { $0.hasSuffix("-wal") || $0.hasSuffix("-shm") })
        try await bench.receive("/y", "2")
        #expect(try await bench.body("/y") == "2")
        await bench.store.close()
        guard kind != .hardLink else { return }
        let (again, _) = try ObjectStore.open(StoreConfiguration(path: path))
        #expect(try await again.count().documents == 2)
        await again.close()
    }

    @Test func `a file with two names is not opened by either, for each would have a WAL of its own`() async throws {
        let (bench, other) = (try Bench(), TemporaryFolder())
        try await bench.receive("/x", "1")
        await bench.store.close()
        let path = try alias(.hardLink, of: bench.folder, in: other)
        for name in [path, bench.folder.file()] {
            do throws(StoreError) {
                _ = try ObjectStore.open(StoreConfiguration(path: name))
                Issue.record("\(name) was opened")
            } catch {
                #expect(error.description.contains("2 names (hard links)"), "\(error)")
            }
        }
        #expect(unlink(path) == 0)
        let (again, _) = try ObjectStore.open(StoreConfiguration(path: bench.folder.file()))
        #expect(try await again.count().documents == 1)
        await again.close()
    }

    @Test func `a link to a missing file creates that file`() async throws {
        let (folder, other) = (TemporaryFolder(), TemporaryFolder())
        #expect(symlink(folder.file("real.db"), other.file()) == 0)
        let (store, _) = try ObjectStore.open(StoreConfiguration(path: other.file()))
        await store.close()
        #expect(folder.names.contains("real.db"))
        #expect(other.names == ["larder.db"])
    }

    @Test func `a file that replaces the file of an open store cannot be opened`() async throws {
        let notices = Monitor<[StoreNotice]>([])
        let bench = try Bench { $0.notify = { notice in notices.withLock { $0.append(notice) } } }
        let moved = StoreNotice.fileMoved(path: bench.folder.file())
        #expect(rename(bench.folder.file(), bench.folder.file("away")) == 0)
        #expect(throws: StoreError.self) { _ = try ObjectStore.open(StoreConfiguration(path: bench.folder.file())) }
        // The writer looks after a commit, and says it once.
        #expect(
            try await eventually {
                try await bench.receive("/x", "1")
                return notices.current.contains(moved)
            }
        )
        try await bench.receive("/y", "1")
        #expect(notices.current.count { $0 == moved } == 1)
        await bench.store.close()
    }

    /// Whether something becomes true, tried again and again; only a failure meets the limit.
    private func eventually(_ condition: () async throws -> Bool) async throws -> Bool {
        for _ in 0..<2400 {
            if try await condition() { return true }
            try await Task.sleep(for: .milliseconds(50))
        }
        return false
    }

    @Test func `a path that is not a regular file is refused, and the error says what it is`() throws {
        let folder = TemporaryFolder()
        #expect(mkfifo(folder.file("pipe"), 0o600) == 0)
        for (path, word) in [(folder.file("pipe"), "named pipe"), (folder.path, "folder"), ("/dev/null", "device")] {
            do throws(StoreError) {
                _ = try ObjectStore.open(StoreConfiguration(path: path))
                Issue.record("opened \(path)")
            } catch {
                #expect(error.description.contains("cannot be opened") && error.description.contains(word), "\(error)")
            }
        }
    }

    private func mode(_ path: String) -> mode_t {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode & 0o777 : 0
    }

    @Test func `a store in a shared folder is readable by its owner only`() async throws {
        let folder = TemporaryFolder()
        chmod(folder.path, 0o755)
        try await Bench(folder: folder).store.close()
        chmod(folder.file(), 0o644)
        let bench = try Bench(folder: folder)
        for suffix in ["", "-wal", "-shm"] { #expect(mode(folder.file() + suffix) == 0o600, "\(suffix)") }
        await bench.store.close()
    }

    @Test func `the configured group can read all files of the store`() async throws {
        let folder = TemporaryFolder()
        chmod(folder.path, 0o755)
        let group = try #require(getgrgid(getegid())).pointee
        let bench = try Bench(folder: folder) { $0.group = String(cString: group.gr_name) }
        for suffix in ["", "-wal", "-shm"] {
            var status = stat()
            #expect(stat(folder.file() + suffix, &status) == 0)
            #expect(status.st_mode & 0o777 == 0o640 && status.st_gid == group.gr_gid, "\(suffix)")
        }
        #expect(mode(folder.file("larder.db.lock")) == 0o600)
        await bench.store.close()
    }

    @Test func `an unknown group is an error`() throws {
        let folder = TemporaryFolder()
        do throws(StoreError) {
            var configuration = StoreConfiguration(path: folder.file())
            configuration.group = "no-such-group"
            _ = try ObjectStore.open(configuration)
            Issue.record("opened")
        } catch {
            #expect(error.description.contains("no-such-group"))
        }
        #expect(folder.names.isEmpty)
    }
}
