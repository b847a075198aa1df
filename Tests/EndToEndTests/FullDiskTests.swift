import Foundation
import TestSupport
import Testing

/// A disk that is really full, of a file system of its own.
@Suite(.scripts, .enabled(if: SmallDisk.isPossible, "file systems can be mounted by root only"))
struct FullDiskTests {
    private static func larder(_ disk: SmallDisk, _ origin: Origin) throws -> Larder {
        let config = Configs.plain(origin, top: ["store: { maximum_size: 16MiB }"])
        return try Larder(
            arguments: ["--config", try disk.outside.write(config, to: "larder.yaml")],
            folder: disk.folder,
            startedBy: disk.entrance
        )
    }

    private static func origin() throws -> Origin {
        try Origin { request in
            guard request.method == "GET" else { return .empty(204) }
            // Random, or the store would compress it to a few bytes, and be as small as an empty one.
            let bytes = (0..<6_000).map { _ in UInt8.random(in: 0...255) }
            return .text(request.path + Data(bytes).base64EncodedString(), Fresh.hour)
        }
    }

    private func documents(_ larder: Larder, _ disk: SmallDisk) throws -> Int {
        let answer = try larder.admin("GET", "/count", disk.authorization)
        return answer.object["documents"] as? Int ?? -1
    }

    private func lines(_ larder: Larder) -> [Substring] {
        larder.log.split(separator: "\n").filter { !$0.contains(" info ") && !$0.contains(" notice stop") }
    }

    @Test func `a full disk is logged once, requests are served, and with room responses are stored again`() throws {
        let (disk, origin) = (try SmallDisk(megabytes: 10), try Self.origin())
        let larder = try Self.larder(disk, origin)
        for number in 0..<100 { #expect(try larder.get("/before/\(number)").status == 200) }
        #expect(try eventually { try documents(larder, disk) == 100 })
        for number in 0..<300 {
            // A store that writes its log back gives room back, which is taken again.
            if number % 50 == 0 { try disk.fill() }
            #expect(try larder.get("/during/\(number)").status == 200)
        }
        #expect(eventually { larder.log.contains("No space left on device") })
        #expect(try larder.get("/during/299").text.hasPrefix("/during/299"))
        #expect(try larder.request("DELETE", "/thing").status == 204)
        #expect(try documents(larder, disk) > 0)
        #expect(lines(larder).count == 1, "\(larder.log)")

        larder.kill()
        try larder.start()
        let stored = try documents(larder, disk)
        #expect(stored > 0)
        let clean = try larder.admin("POST", "/clean", disk.authorization, body: #"{"all":true}"#)
        #expect(clean.status == 200 && clean.object["documents"] as? Int == stored, "\(clean.text)")
        #expect(try documents(larder, disk) == 0)
        #expect(lines(larder).count <= 2, "\(larder.log)")

        disk.makeRoom()
        #expect(
            try eventually {
                _ = try larder.get("/after/\(origin.count())")
                return !larder.log.contains("No space left") || larder.log.contains("has room for the store again")
            }
        )
        let before = try documents(larder, disk)
        for number in 0..<100 { #expect(try larder.get("/again/\(number)").status == 200) }
        #expect(try eventually { try documents(larder, disk) >= before + 100 })
        #expect(lines(larder).count <= 2, "\(larder.log)")
        #expect(larder.terminate() == .exited(0))
    }

    @Test func `on a disk that is full from the start, the latest response is stored all the same`() throws {
        let origin = try Origin { .json(#"{"id":\#($0.path.dropFirst("/posts/".count)),"title":"x"}"#, Fresh.hour) }
        let disk = try SmallDisk(megabytes: 3)
        let larder = try Larder(
            arguments: ["--config", try disk.outside.write(Configs.blog(origin), to: "larder.yaml")],
            folder: disk.folder,
            startedBy: disk.entrance
        )
        for number in 1...9 {
            #expect(try larder.get("/posts/\(number)").cacheStatus.contains("stored"))
            // What is evicted for it is gone a moment later.
            #expect(try eventually { try documents(larder, disk) > 0 })
            #expect(try larder.get("/posts/\(number)").isHit, "\(number): \(larder.log)")
        }
        #expect(larder.log.contains("the store cannot grow"), "\(larder.log)")
    }

    @Test func `while a disk is full Cache-Status does not say stored, and it does once there is room`() throws {
        let noise = (0..<200_000).map { _ in String(UInt64.random(in: .min ... .max)) }.joined(separator: ",")
        let origin = try Origin { _ in .json(#"{"id":1,"title":"\#(noise)"}"#, Fresh.hour) }
        let disk = try SmallDisk(megabytes: 20)
        let config = Configs.blog(origin, top: ["store: { maximum_size: 8MiB, withhold: 10s }"])
        let larder = try Larder(
            arguments: ["--config", try disk.outside.write(config, to: "larder.yaml")],
            folder: disk.folder,
            startedBy: disk.entrance
        )
        try disk.fill()
        // The first commit that fails shows it.
        _ = try larder.get("/posts/1")
        for _ in 0..<3 {
            let response = try larder.get("/posts/1")
            #expect(response.says("larder;fwd=uri-miss;ttl=3600;detail=unwritable"), "\(larder.log)")
            #expect(response.text.hasSuffix("\"}"))
        }
        let explained = try larder.admin("GET", "/explain?url=/posts/1", disk.authorization)
        #expect(explained.text.contains("the store cannot take it now"), "\(explained.text)")
        disk.makeRoom()
        #expect(try eventually { try larder.get("/posts/1").isHit }, "\(larder.log)")
        #expect(try larder.get("/posts/1", ["Cache-Control": "no-cache"]).cacheStatus.contains("stored"))
    }

    @Test func `a start after an orderly stop needs no room on the disk`() throws {
        let (disk, origin) = (try SmallDisk(megabytes: 10), try Self.origin())
        let larder = try Self.larder(disk, origin)
        for number in 0..<50 { _ = try larder.get("/\(number)") }
        #expect(try eventually { try documents(larder, disk) == 50 })
        #expect(larder.terminate() == .exited(0))
        try disk.fill()
        try larder.start()
        #expect(try documents(larder, disk) == 50)
        #expect(try larder.get("/7").isHit)
        #expect(larder.terminate() == .exited(0))
    }
}

/// A small file system in memory, seen by the processes that enter it only.
final class SmallDisk: Sendable {
    let folder = TemporaryFolder()
    /// A folder that is not on it.
    let outside = TemporaryFolder()
    private let keeper: TestProcess

    /// Whether file systems may be mounted here.
    static let isPossible =
        (try? TestProcess.run("unshare", ["-m", "sh", "-c", "mount -t tmpfs -o size=1m none /mnt"])) != nil

    init(megabytes: Int) throws {
        let script = "mount -t tmpfs -o size=\(megabytes)m none \(folder.path) && echo ready >&2 && exec sleep infinity"
        keeper = try TestProcess("unshare", ["-m", "sh", "-c", script])
        guard keeper.waitForErrors(until: { $0.contains("ready") }) else {
            throw Larder.DidNotStart(description: "no file system was mounted: \(keeper.errors)")
        }
    }

    /// What starts a program where it sees the disk.
    var entrance: [String] { ["nsenter", "-m", "-t", "\(keeper.pid)"] }

    /// The folder as seen from outside.
    private var path: String { "/proc/\(keeper.pid)/root\(folder.path)" }

    var authorization: FieldLines {
        let token = (try? String(contentsOfFile: path + "/admin.token", encoding: .utf8)) ?? ""
        return ["Authorization": "Bearer \(token.trimmingCharacters(in: .whitespacesAndNewlines))"]
    }

    /// Takes all room there is.
    func fill() throws {
        let file = open(path + "/filler", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw Larder.DidNotStart(description: "the disk cannot be filled: \(errno)") }
        defer { close(file) }
        let block = [UInt8](repeating: 1, count: 4096)
        while write(file, block, block.count) > 0 {}
    }

    func makeRoom() { unlink(path + "/filler") }
}

/// A limit of the process on the size of files (`LimitFSIZE`).
@Suite(.scripts) struct FileLimitTests {
    @Test func `a store larger than the file size limit is set aside, without blaming another process`() throws {
        let origin = try Origin { _ in
            let numbers = (0..<2_000).map { _ in String(UInt64.random(in: .min ... .max)) }
            return .json("[\(numbers.joined(separator: ","))]", Fresh.hour)
        }
        let larder = try Larder(origin)
        for number in 0..<60 { _ = try larder.get("/\(number)") }
        #expect(try larder.waitForDocuments(60))
        larder.terminate()
        let limited = try Larder(
            arguments: ["--upstream", origin.url],
            folder: larder.folder,
            startedBy: ["prlimit", "--fsize=500000"]
        )
        #expect(limited.log.contains("LimitFSIZE"), "\(limited.log)")
        #expect(limited.folder.names.contains { $0.hasPrefix("larder.db.large-") })
        for number in 0..<60 { #expect(try limited.get("/\(number)").status == 200) }
        #expect(try limited.waitForQuiet())
        #expect(try limited.request("PATCH", "/1", body: "{}").status == 200)
        #expect(try limited.admin("POST", "/clean", body: #"{"all":true}"#).status == 200)
        #expect(try limited.admin("GET", "/count").object["documents"] as? Int == 0)
        #expect(!limited.log.contains("keeps it locked") && !limited.log.contains("cannot grow"), "\(limited.log)")
    }
}
