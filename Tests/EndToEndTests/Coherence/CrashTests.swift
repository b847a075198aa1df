import Foundation
import TestSupport
import Testing

/// What is evicted, lost in a crash, or has no room: answers stay right, or become misses.
@Suite(.scripts) struct CrashTests {
    /// A world whose objects have numbers that only grow: what is shown can be told from what was told.
    private final class World: Sendable {
        let numbers = Monitor([Int: Int]())

        func number(of user: Int) -> Int { numbers.current[user] ?? 0 }

        func raise(_ user: Int) { numbers.withLock { $0[user, default: 0] += 1 } }

        /// Lists show five users each, details one.
        func body(_ path: String, filler: String = "") -> String {
            let parts = path.split(separator: "/")
            guard parts.count == 2, let index = Int(parts[1]) else { return "{}" }
            let user = { (id: Int) in #"{"id":\#(id),"name":"\#(self.number(of: id))","x":"\#(filler)"}"# }
            return parts[0] == "list"
                ? "[" + (0..<5).map { user((index + $0) % 8) }.joined(separator: ", ") + "]" : user(index)
        }

        static func numbers(in text: String) -> [Int: Int] {
            guard let json = try? JSONSerialization.jsonObject(with: Data(text.utf8)) else { return [:] }
            let objects = json as? [[String: Any]] ?? [json as? [String: Any] ?? [:]]
            var found: [Int: Int] = [:]
            for object in objects {
                guard let id = object["id"] as? Int, let name = object["name"] as? String else { continue }
                found[id] = Int(name)
            }
            return found
        }
    }

    private static func config(_ origin: Origin, _ top: String...) -> String {
        """
        upstreams: { api: { url: "\(origin.url)" } }
        models: { User: { identity: id, properties: { name: name } } }
        routes:
          - { path: "list/{n}", model: [User] }
          - { path: "user/{n}", model: User }
        \(top.joined(separator: "\n"))
        """
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func `after a kill under load every response is whole, with values that the upstream sent`(seed: UInt64) throws {
        let world = World()
        let origin = try Origin { request in .json(world.body(request.path), Fresh.hour) }
        let larder = try Larder(origin, config: Self.config(origin))
        var random = SeededGenerator(seed: seed)
        for _ in 0..<3 {
            let port = larder.port
            let (isOver, base) = (Monitor(false), random.below(1_000))
            let clients = (0..<3).map { number in
                Background {
                    var step = base + number
                    while !isOver.current {
                        guard let client = try? Client(port: port) else { break }
                        // Half the details are asked for anew, and every one of those may differ.
                        for _ in 0..<20 {
                            step = (step * 73 + 31) % 1_009
                            let path = step % 3 == 0 ? "/list/\(step % 8)" : "/user/\(step % 8)"
                            if step % 5 == 0 { world.raise(step % 8) }
                            let fields: FieldLines = step % 2 == 0 ? ["Cache-Control": "no-cache"] : [:]
                            guard let answer = try? client.get(path, fields) else { break }
                            let shown = World.numbers(in: answer.text)
                            guard answer.status == 200, shown.count == (path.hasPrefix("/list") ? 5 : 1),
                                shown.allSatisfy({ $0.value <= world.number(of: $0.key) })
                            else { return "\(path): \(answer.status) \(answer.text)" }
                        }
                    }
                    return ""
                }
            }
            origin.waitForRequests(20)
            pause(.milliseconds(20 + random.below(250)))
            larder.kill()
            isOver.withLock { $0 = true }
            for client in clients { #expect(try client.value() == "") }
            try larder.start()
            #expect(try larder.sql("PRAGMA integrity_check") == ["ok"])
            // What has survived was told.
            for path in (0..<8).flatMap({ ["/list/\($0)", "/user/\($0)"] }) {
                let answer = try larder.get(path, ["Cache-Control": "only-if-cached"])
                guard answer.status == 200 else { continue }
                for (id, number) in World.numbers(in: answer.text) {
                    #expect(number <= world.number(of: id))
                }
            }
            // Told the newest of all: everything shows it.
            for id in 0..<8 { _ = try larder.get("/user/\(id)", ["Cache-Control": "no-cache"]) }
            for index in 0..<8 {
                let matches = try eventually {
                    try World.numbers(in: larder.get("/list/\(index)").text).allSatisfy {
                        $0.value == world.number(of: $0.key)
                    }
                }
                #expect(matches, "/list/\(index)")
            }
            origin.forget()
        }
    }

    @Test func `with little room on disk and in memory, every response still shows the newest values`() throws {
        let world = World()
        let filler = String(repeating: "f", count: 20_000)
        let origin = try Origin { request in .json(world.body(request.path, filler: filler), Fresh.hour) }
        let folder = TemporaryFolder()
        let rooms = [("64MiB", "16MiB"), ("4MiB", "16MiB"), ("4MiB", "0"), ("64MiB", "200KiB")]
        for (round, (disk, memory)) in rooms.enumerated() {
            let larder = try Larder(
                config: Self.config(origin, "store: { maximum_size: \(disk) }", "memory: { maximum_size: \(memory) }"),
                store: folder
            )
            for step in 0..<80 {
                if step % 4 == 0 { world.raise(step % 8) }
                let path =
                    step % 4 == 0 ? "/user/\(step % 8)?r=\(step / 8)" : "/list/\((step + round) % 8)?p=\(step % 20)"
                _ = try larder.get(path, step % 4 == 0 ? ["Cache-Control": "no-cache"] : [:])
            }
            for id in 0..<8 { _ = try larder.get("/user/\(id)", ["Cache-Control": "no-cache"]) }
            for step in 0..<20 {
                let path = "/list/\(step % 8)?p=\(step)"
                let isRight = try eventually {
                    try World.numbers(in: larder.get(path).text).allSatisfy { $0.value == world.number(of: $0.key) }
                }
                #expect(isRight, "\(disk) \(memory) \(path)")
            }
            #expect(larder.terminate() == .exited(0))
            #expect(try larder.sql("PRAGMA integrity_check") == ["ok"])
        }
        #expect(origin.mistakes.isEmpty)
    }
}
