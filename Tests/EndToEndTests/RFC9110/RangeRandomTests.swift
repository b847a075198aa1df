import Foundation
import TestSupport
import Testing

/// Ranges, writes, restarts and new versions in any order: no byte is ever of a version that had passed.
@Suite(.scripts) struct RangeRandomTests {
    /// One resource: its versions, of which the last is the present one.
    struct Resource: Sendable {
        var versions: [[UInt8]]
        /// Strong, weak or none.
        var prefix: String?
        var lifetime: Int

        var content: RangedContent {
            let tag = prefix.map { "\($0)\"v\(versions.count)\"" }
            return RangedContent(versions.last ?? [], tag: tag, ["Cache-Control": "max-age=\(lifetime)"])
        }
    }

    @Test(arguments: Array(1...8) as [UInt64])
    func `whole or in part, every response is of a version that may still be served, byte for byte`(seed: UInt64) throws
    {
        var lots = SeededGenerator(seed: seed)
        let paths = (0..<4).map { "/r/\($0)" }
        let resources = Monitor(
            Dictionary(
                uniqueKeysWithValues: zip(paths, ["", "", "W/", nil] as [String?]).map { path, prefix in
                    (path, Resource(versions: [lots.bytes()], prefix: prefix, lifetime: path == "/r/1" ? 0 : 600))
                }
            )
        )
        let origin = try Origin { request in
            resources.withLock { resources in
                guard var resource = resources[request.path] else { return .empty(404) }
                if request.method == "PUT" {
                    resource.versions.append(request.body)
                    resources[request.path] = resource
                    return .empty(204)
                }
                return resource.content.answer(request)
            }
        }
        let larder = try Larder(origin)
        // The oldest version of each resource that may still be shown: a write or a clean makes it the present one.
        var oldest = Dictionary(uniqueKeysWithValues: paths.map { ($0, 1) })
        for step in 0..<220 {
            let path = paths[lots.below(paths.count)]
            switch lots.below(20) {
            case 0:
                let body = String(decoding: lots.bytes(), as: UTF8.self)
                #expect(try larder.request("PUT", path, body: body).status == 204)
                oldest[path] = resources.current[path]?.versions.count
                continue
            case 1:
                // Behind Larder's back.
                let body = lots.bytes()
                resources.withLock { $0[path]?.versions.append(body) }
                continue
            case 2 where step % 3 == 0:
                try larder.restart()
                continue
            case 3 where step % 2 == 0:
                _ = try CleanTests.clean(larder, #"{"all":true}"#)
                for (path, resource) in resources.current { oldest[path] = resource.versions.count }
                continue
            default: break
            }
            var fields: FieldLines = [:]
            let kind = lots.below(10)
            if kind < 8 {
                fields.append(
                    "Range",
                    "bytes=" + (0...(kind == 7 ? 2 : 0)).map { _ in lots.range() }.joined(separator: ",")
                )
            }
            if lots.below(8) == 0 { fields.append("If-Range", "\"v\(1 + lots.below(4))\"") }
            if lots.below(10) == 0 { fields.append("Cache-Control", "no-cache") }
            let answer = try larder.get(path, fields)
            let all = resources.current[path]?.versions ?? []
            let first = resources.current[path]?.lifetime == 0 ? all.count : oldest[path] ?? 1
            let valid = (first...all.count).first { Self.isRight(answer, fields, of: all[$0 - 1], version: $0) }
            #expect(
                valid != nil,
                "seed \(seed), step \(step): \(path) \(fields.text)\(answer.status) \(answer.fields.text)\(answer.text)"
            )
            guard let valid else { return }
            // What has been seen newer is not shown older again.
            oldest[path] = valid
        }
    }

    @Test(arguments: [11, 12, 13] as [UInt64])
    func `with many clients at once every response is of one version, none from before the last write`(seed: UInt64)
        throws
    {
        let path = "/r/0"
        var lots = SeededGenerator(seed: seed)
        let first = lots.bytes()
        let resource = Monitor(Resource(versions: [first], prefix: "", lifetime: 600))
        let origin = try Origin { request in
            resource.withLock { resource in
                guard request.method == "PUT" else { return resource.content.answer(request) }
                resource.versions.append(request.body)
                return .empty(204)
            }
        }
        let larder = try Larder(origin)
        let written = Monitor(1)
        let mistakes = try together(6) { number -> [String] in
            var lots = SeededGenerator(seed: seed &* 1_000 &+ UInt64(number))
            var mistakes: [String] = []
            for step in 0..<80 {
                if number == 0, step % 8 == 7 {
                    _ = try larder.request("PUT", path, body: String(decoding: lots.bytes(), as: UTF8.self))
                    written.withLock { $0 += 1 }
                    continue
                }
                let oldest = written.current
                let fields: FieldLines = lots.below(5) == 0 ? [:] : ["Range": "bytes=" + lots.range()]
                let answer = try larder.get(path, fields)
                let all = resource.current.versions
                let isRight = (oldest...all.count).contains {
                    Self.isRight(answer, fields, of: all[$0 - 1], version: $0)
                }
                if !isRight { mistakes.append("\(fields.text)\(answer.status) \(answer.fields.text)\(answer.text)") }
            }
            return mistakes
        }
        #expect(mistakes.allSatisfy { $0.isEmpty }, "seed \(seed): \(mistakes)")
    }

    /// Whether a response may be given to a request while this is the version.
    private static func isRight(_ answer: Response, _ fields: FieldLines, of body: [UInt8], version: Int) -> Bool {
        if let tag = answer["ETag"], !tag.hasSuffix("\"v\(version)\"") { return false }
        switch answer.status {
        case 200: return answer.body == body
        case 416: return answer["Content-Range"] == "bytes */\(body.count)" && fields.contains("Range")
        case 206:
            guard fields.contains("Range") else { return false }
            if let condition = fields["If-Range"], condition != answer["ETag"] { return false }
            let parts = answer["Content-Range"].map { [[$0, answer.text]] } ?? answer.byteRanges
            return !parts.isEmpty && parts.allSatisfy { isPart($0[0], $0[1], of: body) }
        default: return false
        }
    }

    private static func isPart(_ content: String, _ text: String, of body: [UInt8]) -> Bool {
        let numbers = content.split { !$0.isNumber }.compactMap { Int($0) }
        guard numbers.count == 3, numbers[2] == body.count, numbers[1] < body.count else { return false }
        return Array(text.utf8) == Array(body[numbers[0]...numbers[1]])
    }
}

extension SeededGenerator {
    fileprivate mutating func bytes() -> [UInt8] { (0..<below(60)).map { _ in UInt8(97 + below(26)) } }

    fileprivate mutating func range() -> String {
        let one = below(70)
        return switch below(4) {
        case 0: "\(one)-"
        case 1: "-\(one)"
        default: "\(one)-\(one + below(30))"
        }
    }
}
