import CachePolicy
import HTTPSemantics
import Mapping
import Proxy
import Settings
import Store

/// `POST /objects/{model}`: what seeding has stored.
package struct SeedResponse: AdminBody {
    static let sentences = [
        "values": "How many JSON values were read; each contains one object of the model, and perhaps others.",
        "created": "How many objects are new, those within others included.",
        "changed": "How many known objects have changed, those within others included.",
        "unchanged": "How many values showed nothing that was not known, or only what is older than what is known.",
        "skipped": "How many values were left out.", "reasons": "Why values were left out.",
        "warnings": "What did not fit the model in values that were stored.",
    ]
    package var values = 0
    package var created = 0
    package var changed = 0
    package var unchanged = 0
    package var skipped = 0
    package var reasons: [Finding] = []
    package var warnings: [Finding] = []

    /// What was found in values, once for each kind and property.
    package struct Finding: AdminBody {
        static let sentences = [
            "line": "The line in which the first such value begins.", "kind": "The kind of warning.",
            "message": "The warning as a sentence.", "pointer": "The place in the value (RFC 6901).",
            "count": "How often it was found.",
        ]
        package var line: Int
        package var kind: String
        package var message: String
        package var pointer: String?
        var model: String?
        var property: String?
        package var count: Int

        fileprivate init(_ warning: MappingWarning, line: Int) {
            (self.line, kind, message) = (line, warning.kind.rawValue, warning.message)
            (pointer, model, property, count) = (warning.pointer, warning.model, warning.property, warning.count)
        }
    }

    /// The most findings of each kind that are listed; the counts cover all.
    private static let listed = 100

    mutating func add(_ receipt: SeedReceipt, of batch: [JSONValueSplitter.Value]) {
        values += batch.count
        created += receipt.created
        changed += receipt.changed
        unchanged += receipt.unchanged
        skipped += receipt.skipped.count
        for finding in receipt.skipped { Self.add(finding, at: batch[finding.value].line, to: &reasons) }
        for finding in receipt.warnings { Self.add(finding, at: batch[finding.value].line, to: &warnings) }
    }

    private static func add(_ found: SeedReceipt.Finding, at line: Int, to findings: inout [Finding]) {
        let warning = found.warning
        let known = findings.firstIndex {
            $0.kind == warning.kind.rawValue && $0.model == warning.model && $0.property == warning.property
        }
        if let known {
            findings[known].count += warning.count
        } else if findings.count < listed {
            findings.append(Finding(warning, line: line))
        }
    }
}

/// Reads values as they arrive, and stores them batch by batch: each batch whole or not at all.
private struct Seeding {
    /// The most values and bytes of a batch; the last value may exceed the bytes.
    private static let (batchCount, batchBytes) = (500, 1 << 20)

    private let store: ObjectStore
    private var seed: Seed
    private var splitter: JSONValueSplitter
    private var pending: [JSONValueSplitter.Value] = []
    private var response = SeedResponse()

    init(_ seed: Seed, limit: Int, into store: ObjectStore) {
        (self.seed, self.store) = (seed, store)
        splitter = JSONValueSplitter(limit: limit)
    }

    mutating func run(_ body: RequestBody) async throws(ProblemDocument) -> SeedResponse {
        while let bytes = try await body.next(max: 256 << 10, or: problem(400, "the body is incomplete")) {
            try await read { (splitter, pending) in try splitter.take(bytes) { pending.append($0) } }
        }
        try await read { (splitter, pending) in try splitter.finish { pending.append($0) } }
        try await commit(pending[...])
        guard response.values > 0 else { throw .badRequest("the body has no JSON value") }
        return response
    }

    /// Reads on, and stores the batches that are full, also if what comes after them cannot be read.
    private mutating func read(
        _ step: (inout JSONValueSplitter, inout [JSONValueSplitter.Value]) throws -> Void
    ) async throws(ProblemDocument) {
        var failure: (any Error)?
        do { try step(&splitter, &pending) } catch { failure = error }
        try await commitFullBatches()
        guard let failure else { return }
        throw problem(400, "\(failure)", at: (failure as? JSONValueSplitter.Failure)?.line)
    }

    private mutating func commitFullBatches() async throws(ProblemDocument) {
        var (start, bytes) = (0, 0)
        for index in pending.indices {
            bytes += pending[index].text.count
            guard index - start + 1 >= Self.batchCount || bytes >= Self.batchBytes else { continue }
            try await commit(pending[start...index])
            (start, bytes) = (index + 1, 0)
        }
        pending.removeFirst(start)
    }

    private mutating func commit(_ batch: ArraySlice<JSONValueSplitter.Value>) async throws(ProblemDocument) {
        guard !batch.isEmpty else { return }
        seed.values = batch.map(\.text)
        do throws(StoreError) {
            response.add(try await store.seed(seed), of: Array(batch))
        } catch {
            let status =
                switch error {
                case .refused: 409
                case .full, .unwritable: 507
                case .closed: 503
                default: 500
                }
            throw problem(status, error.description, at: batch.first?.line, from: batch.first?.line)
        }
    }

    /// A problem that says how much was stored before it.
    private func problem(_ status: Int, _ reason: String, at line: Int? = nil, from first: Int? = nil)
        -> ProblemDocument
    {
        let stored = response.values
        let rest = (first ?? pending.first?.line ?? line).map { "nothing from line \($0) on was stored" }
        let before =
            stored == 0 ? "" : "; the \(stored) value\(stored == 1 ? "" : "s") before \(stored == 1 ? "was" : "were")"
        var problem = ProblemDocument(status, ([reason] + [rest].compactMap(\.self)).joined(separator: ": ") + before)
        problem.extra = line.map { [(name: "line", value: .integer($0))] } ?? []
        problem.extra.append((name: "values", value: .integer(stored)))
        return problem
    }
}

extension DaemonCore {
    fileprivate func seed(_ request: AdminRequest) async throws -> SeedResponse {
        guard state.replayer == nil else {
            throw ProblemDocument(409, "a replay serves what was recorded, and nothing else: objects cannot be added")
        }
        guard let body = request.upload else {
            throw ProblemDocument.badRequest(
                "the body is missing: send one JSON object, a list of them, or one per line"
            )
        }
        let upstream = try upstream(toSeed: request)
        let seed = Seed(
            upstream: upstream.storeKey,
            principal: try await principal(toSeed: request),
            context: upstream.context.canonical(try Self.fields(of: request)),
            model: request.capture("model"),
            values: []
        )
        var seeding = Seeding(seed, limit: settings.limits.document, into: store)
        return try await seeding.run(body)
    }

    private func upstream(toSeed request: AdminRequest) throws -> ProxiedUpstream {
        let (model, name) = (request.capture("model"), request.value("upstream"))
        if let complaint = complaint(aboutModel: model) { throw ProblemDocument.notFound(complaint) }
        let owners = upstreams.filter { $0.rules.models.declarations.contains { $0.name == model } }
        let names = owners.map(\.name).sorted().joined(separator: ", ")
        guard let name else {
            guard owners.count == 1 else {
                throw ProblemDocument.badRequest("several upstreams have a model \(model): say which (\(names))")
            }
            return owners[0]
        }
        guard let owner = owners.first(where: { $0.name == name }) else {
            throw ProblemDocument.badRequest("no upstream \"\(name)\" has a model \(model): it is a model of \(names)")
        }
        return owner
    }

    private func principal(toSeed request: AdminRequest) async throws -> PrincipalID {
        guard let label = request.value("principal"), label != "anonymous" else { return .anonymous }
        try await checkPrincipal(label)
        let found = try await store.principals(labelled: label)
        guard found.count == 1 else { throw ProblemDocument(409, "several principals have the label \(label)") }
        return found[0]
    }

    /// The fields of the requests that the objects are for.
    private static func fields(of request: AdminRequest) throws -> Fields {
        try request.values("header").reduce(into: Fields()) { fields, line in
            let parts = line.split(separator: ":", maxSplits: 1).map { $0.trimmingPrefix { $0 == " " } }
            guard parts.count == 2, FieldSyntax.isToken(parts[0].utf8) else {
                throw ProblemDocument.badRequest("a header is \"Name: value\"; it was \"\(line)\"")
            }
            fields.append(String(parts[0]), String(parts[1]))
        }
    }
}

extension AdminRoute {
    static let seeding: [AdminRoute] = documented([
        "Stores objects: the body is one JSON object as the upstream would send it, a list of them, or one per line. It is stored batch by batch, each whole or not at all; if something is wrong, the batches before stay.":
            AdminRoute(
                "POST /objects/{model}",
                query: Parameter.documented([
                    "The upstream's name; required if several have the model.": Parameter("upstream"),
                    "The label of the principal whose objects they are; `anonymous` by default.": Parameter(
                        "principal"
                    ),
                    "A field of the requests that they are for, as `Name: value`, such as `Accept`, which chooses the representation; may be repeated.":
                        Parameter("header", isRepeatable: true),
                ]),
                takesFile: true,
                schema: SeedResponse.self
            ) { request, daemon in .json(try await daemon.seed(request)) }
    ])
}
