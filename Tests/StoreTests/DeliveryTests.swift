import Mapping
import TestSupport
import Testing

@testable import Store

/// What an upstream sends on its own: it drops what shows an object, and is an observation by three rows alone.
struct DeliveryTests {
    private static let day: Int64 = 86_400_000_000
    private static let (list, detail) = (
        BodyRule(model: "Note", isList: true), BodyRule(model: "Note", isList: false)
    )

    /// A store of notes that say when they changed.
    private func bench(_ folder: TemporaryFolder = TemporaryFolder(), _ time: ManualTime = ManualTime()) throws -> Bench
    {
        let note = ModelDeclaration(
            name: "Note",
            identity: ["id"],
            properties: ["text", "kind"].map { PropertyDeclaration(name: $0, from: $0) },
            modified: "at"
        )
        let models: [UpstreamKey: Models] = ["github": try Models([note])]
        return try Bench(folder: folder, time: time) { $0.models = models }
    }

    private func delivery(_ body: String, id: UInt8 = 1, for observer: Delivery.Observer? = nil) -> Delivery {
        var delivery = Delivery(
            upstream: "github",
            path: "/hooks/notes",
            id: [id],
            repeatable: Self.day,
            body: Array(body.utf8),
            rule: BodyRule(model: "Note", arity: .one, root: "note")
        )
        delivery.observer = observer
        return delivery
    }

    @discardableResult
    private func take(_ bench: Bench, _ delivery: Delivery) async throws -> DeliveryReceipt {
        bench.time.advance(1_000_000)
        return try await bench.store.commit(bench.store.prepare(delivery), at: bench.store.clock.now())
    }

    private func note(_ text: String, at: Int, id: Int = 1, kind: String = "k") -> String {
        #"{"id":\#(id),"text":"\#(text)","kind":"\#(kind)","at":"2026-01-0\#(at)T00:00:00Z"}"#
    }

    private func isServed(_ bench: Bench, _ url: String, _ principal: PrincipalID = .anonymous) async throws -> Bool {
        guard let document = try await bench.document(url, principal: principal) else { return false }
        if case .outdated = document.form { return false }
        return true
    }

    @Test func `a delivery makes every principal's documents with its object outdated, and no others`() async throws {
        let bench = try bench()
        let other = try await bench.store.principal([7])
        for principal in [PrincipalID.anonymous, other] {
            try await bench.receive("/notes", "[\(note("a", at: 1))]", Self.list, principal: principal)
            try await bench.receive("/notes/2", note("b", at: 1, id: 2), Self.detail, principal: principal)
        }
        let receipt = try await take(bench, delivery(#"{"note":\#(note("c", at: 2))}"#))
        #expect(receipt == DeliveryReceipt())
        for principal in [PrincipalID.anonymous, other] {
            #expect(try await !isServed(bench, "/notes", principal))
            #expect(try await isServed(bench, "/notes/2", principal))
        }
        try await bench.receive("/notes", "[\(note("c", at: 2))]", Self.list)
        #expect(try await isServed(bench, "/notes"))
        await bench.store.close()
    }

    @Test func `a delivery is remembered for as long as it may be repeated, also after a restart`() async throws {
        let (folder, time) = (TemporaryFolder(), ManualTime())
        var bench = try bench(folder, time)
        let sent = delivery(#"{"note":\#(note("c", at: 2))}"#)
        #expect(try await take(bench, sent).isRepeated == false)
        await bench.store.close()
        bench = try self.bench(folder, time)
        time.advance(Self.day - 10_000_000)
        #expect(try await take(bench, sent).isRepeated)
        #expect(try await take(bench, delivery(#"{"note":\#(note("c", at: 2))}"#, id: 2)).isRepeated == false)
        time.advance(20_000_000)
        #expect(try await take(bench, sent).isRepeated == false)
        let rows = try await bench.store.core.read { try $0.query("SELECT count(*) FROM _deliveries").integer() }
        #expect(rows == 2)
        await bench.store.close()
    }

    @Test func `the number of remembered deliveries is limited, and the oldest go first`() async throws {
        let bench = try bench()
        try await bench.store.core.commit(.note, .prompt) { session in
            for number in 0...Int(WriterSession.deliveryLimit) {
                try session.query("INSERT INTO _deliveries VALUES (?, ?)").run(
                    withUnsafeBytes(of: number) { Array($0) },
                    session.clock.now() + Self.day + Int64(number)
                )
            }
        }
        try await take(bench, delivery(#"{"note":\#(note("c", at: 2))}"#))
        let rows = try await bench.store.core.read { try $0.query("SELECT count(*) FROM _deliveries").integer() }
        #expect(try #require(rows) < WriterSession.deliveryLimit)
        #expect(try await take(bench, delivery(#"{"note":\#(note("c", at: 2))}"#, id: 2)).isRepeated == false)
        await bench.store.close()
    }

    @Test func `for the configured principal a delivery's values are known at once if their time is later`()
        async throws
    {
        let bench = try bench()
        let other = try await bench.store.principal([7])
        for principal in [PrincipalID.anonymous, other] {
            try await bench.receive("/notes/1", note("a", at: 2), Self.detail, principal: principal)
        }
        let observer = Delivery.Observer(principal: "anonymous", context: "")
        func known(_ principal: String = "anonymous") async throws -> String? {
            var query = ObjectQuery(model: "Note", identity: "1")
            query.principal = principal
            return try await bench.store.objects(query).rows.first.map { String(decoding: $0.json, as: UTF8.self) }
        }
        // A member that the payload leaves out is not erased; one that nobody has seen is not added.
        let later = #"{"note":{"id":1,"text":"b","more":1,"at":"2026-01-03T00:00:00Z"}}"#
        #expect(try await take(bench, delivery(later, id: 1, for: observer)).observed == 1)
        let shown = try await known()
        #expect(shown?.contains(#""text":"b""#) == true && shown?.contains(#""kind":"k""#) == true, "\(shown ?? "")")
        #expect(shown?.contains("more") == false)
        #expect(try await known(ObjectStore.label(ofPrincipal: [7]))?.contains(#""text":"a""#) == true)
        // What is known is not served unasked: the lists that show it may have changed, too.
        #expect(try await !isServed(bench, "/notes/1"))
        for (id, body) in [(2, note("old", at: 1)), (3, #"{"id":1,"text":"no time"}"#), (4, note("new", at: 1, id: 9))]
        {
            try await take(bench, delivery(#"{"note":\#(body)}"#, id: UInt8(id), for: observer))
        }
        #expect(try await known()?.contains(#""text":"b""#) == true)
        #expect(try await bench.store.count().objects == 2)
        for wrong in [
            Delivery.Observer(principal: "p-00000000", context: ""), .init(principal: "anonymous", context: "x"),
        ] {
            let last = delivery(#"{"note":\#(note("c", at: 5))}"#, id: 10 + UInt8(wrong.context.count), for: wrong)
            #expect(try await take(bench, last).observed == 0)
        }
        #expect(try await known()?.contains(#""text":"b""#) == true)
        await bench.store.close()
    }

    @Test func `a response requested before a delivery is older, even if it shows the object first`() async throws {
        let bench = try bench()
        let early = bench.response("/notes/1", note("a", at: 1), Self.detail)
        try await take(bench, delivery(#"{"note":\#(note("c", at: 2))}"#))
        _ = try await bench.store.receive(early)
        #expect(try await !isServed(bench, "/notes/1"))
        try await bench.receive("/notes/1", note("c", at: 2), Self.detail)
        #expect(try await isServed(bench, "/notes/1"))
        await bench.store.close()
    }

    @Test(arguments: [
        #"{"note":{"text":"no id"}}"#, #"{"note":[]}"#, #"{"other":{"id":1}}"#, "[]", "", "{", #"{"note":{"id":true}}"#,
    ]) func `a payload in which no object has an identity yields no objects`(body: String) async throws {
        let bench = try bench()
        #expect(bench.store.prepare(delivery(body)).objects.isEmpty)
        await bench.store.close()
    }

    @Test func `a copy of a store with seeded and delivered values can be loaded`() async throws {
        let bench = try bench()
        try await bench.receive("/notes/1", note("a", at: 1), Self.detail)
        _ = try await bench.store.seed(
            Seed(
                upstream: "github",
                principal: .anonymous,
                model: "Note",
                values: [Array(note("s", at: 1, id: 2).utf8)]
            )
        )
        let observer = Delivery.Observer(principal: "anonymous", context: "")
        try await take(bench, delivery(#"{"note":\#(note("b", at: 2))}"#, for: observer))
        let copy = bench.folder.file("copy.db")
        try await bench.store.save(to: copy, principalKey: [1]) {}
        let second = try self.bench(TemporaryFolder(), bench.time)
        _ = try await second.store.load(copy, principalKey: [1], replacing: true, bodyLimit: 1 << 20) { _ in true }
        #expect(try await second.store.count().objects == 2)
        await bench.store.close()
        await second.store.close()
    }
}
