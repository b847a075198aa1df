import Mapping
import Store
import Testing

struct DocumentTests {
    @Test func `a document comes back byte for byte`() async throws {
        let bench = try Bench()
        let body = #"[ {"id": 1, "title":"a\u003c","user":{"id":7,"login":"x"}, "n":1.0e+10}, {"id":2,"user":null} ]"#
        let receipt = try await bench.receive("/issues", body, issues)
        #expect(receipt.objects.count == 3)
        #expect(!receipt.isDirty)
        let document = try #require(try await bench.document("/issues"))
        #expect(String(decoding: document.body, as: UTF8.self) == body)
        #expect(document.form == .asReceived)
        #expect(document.status == 200)
        #expect(document.policy == [1, 2, 3])
        #expect(Set(document.objects) == Set(receipt.objects))
        let count = try await bench.store.count()
        #expect(count.objects == 3)
        #expect(count.documents == 1)
        #expect(count.models == ["Issue": 2, "User": 1])
        await bench.store.close()
    }

    @Test func `a list shows the values of a later detail`() async throws {
        let bench = try Bench()
        let list = #"[{"id":1,"title":"old","score":3,"user":{"id":7,"login":"x"}},{"id":2,"title":"other"}]"#
        try await bench.receive("/issues", list, issues)
        try await bench.receive("/issues/1", #"{"title": "new", "id":1, "number":5}"#, issue)
        let document = try #require(try await bench.document("/issues"))
        #expect(document.form == .composed)
        #expect(
            String(decoding: document.body, as: UTF8.self)
                == #"[{"id":1,"title":"new","score":3,"user":{"id":7,"login":"x"}},{"id":2,"title":"other"}]"#
        )
        #expect(try await bench.store.received(document.id).map { String(decoding: $0, as: UTF8.self) } == list)
        await bench.store.close()
    }
}
