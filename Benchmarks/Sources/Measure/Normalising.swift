import Foundation
import Mapping

/// How fast bodies are scanned and taken apart, on one core.
enum Normalising {
    static func measure(_ file: String?) throws -> [(name: String, value: Double)] {
        let samples = try file.map(read) ?? IssuePages.make(pages: 40, detailsEvery: 4)
        let decomposer = Decomposer(models: try IssuePages.models())
        let bytes = samples.reduce(0) { $0 + $1.body.count }
        var objects = 0

        let taken = median {
            objects = 0
            for sample in samples {
                guard case .objects(let parts) = decompose(sample, decomposer) else { continue }
                objects += parts.occurrences.count
            }
        }
        let verified = median {
            for sample in samples {
                guard case .objects(let parts) = decompose(sample, decomposer) else { continue }
                precondition(parts.recomposes(to: sample.body), "\(sample.path) does not recompose")
            }
        }
        return [
            ("scan and normalise", Double(bytes) / taken / 1e6), ("and verified", Double(bytes) / verified / 1e6),
            ("bytes in MB", Double(bytes) / 1e6), ("objects", Double(objects)),
        ]
    }

    private static func decompose(_ sample: Sample, _ decomposer: Decomposer) -> Decomposition {
        decomposer.decompose(sample.body, as: BodyRule(model: sample.model, isList: sample.isList, root: sample.root))
    }

    /// The median of some rounds, in seconds of this thread's processor time: what others do meanwhile does not count.
    static func median(_ body: () -> Void) -> Double {
        body()
        return (0..<9).map { _ in
            let start = processorSeconds()
            body()
            return processorSeconds() - start
        }.sorted()[4]
    }

    private static func processorSeconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    static func read(_ file: String) throws -> [Sample] {
        struct Line: Decodable {
            let model: String
            let isList: Bool
            let root: String?
            let body: String
            let path: String
        }
        return try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").map {
            let line = try JSONDecoder().decode(Line.self, from: Data($0.utf8))
            let body = Array(line.body.utf8)
            return Sample(body: body, model: line.model, isList: line.isList, root: line.root, path: line.path)
        }
    }
}
