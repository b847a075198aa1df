import Mapping
import TestSupport
import Testing

@testable import Store

/// Lists of objects and documents in an order, page by page, and searches in them.
@Suite struct ListingTests {
    private let user = BodyRule(model: "User", isList: true)

    /// Twelve users of two principals, and a label.
    private func bench() async throws -> Bench {
        let bench = try Bench()
        let users = [10, 9, 2, 1].map { #"{"id":\#($0),"login":"u\#($0)"}"# } + [#"{"id":"zoe","login":"ZOE"}"#]
        _ = try await bench.store.receive(bench.response("/users", "[\(users.joined(separator: ","))]", user))
        let other = try await bench.store.receive(
            bench.response("/users", #"[{"id":5,"login":"u5"},{"id":4,"login":"u4"}]"#, user, context: "accept=b")
        )
        #expect(other.document != nil)
        _ = try await bench.store.receive(
            bench.response("/labels/1", #"{"id":1,"name":"bug"}"#, BodyRule(model: "Label", isList: false))
        )
        return bench
    }

    /// All pages of a listing, each of so many rows.
    private func pages(
        _ bench: Bench,
        _ order: ObjectListing.Order,
        isDescending: Bool = false,
        text: String? = nil,
        size: Int = 2,
        patience: Duration = .seconds(60)
    ) async throws -> [String] {
        var (found, after): ([String], String?) = ([], nil)
        repeat {
            let listing = try #require(
                ObjectListing(
                    model: "User",
                    text: text,
                    order: order,
                    isDescending: isDescending,
                    limit: size,
                    after: after
                )
            )
            let page = try await bench.store.list(listing, patience: patience)
            #expect(page.rows.count <= size)
            found += page.rows.map(\.identity)
            after = page.next
        } while after != nil
        return found
    }

    @Test(arguments: [1, 2, 3, 100])
    func `pages of any size give every row once, in the requested order`(size: Int) async throws {
        let bench = try await bench()
        let byIdentity = ["1", "2", "9", "10", "zoe", "4", "5"]
        #expect(try await pages(bench, .identity, size: size) == byIdentity)
        #expect(try await pages(bench, .identity, isDescending: true, size: size) == byIdentity.reversed())
        let stored = ["10", "9", "2", "1", "zoe", "5", "4"]
        #expect(try await pages(bench, .stored, size: size) == stored)
        #expect(try await pages(bench, .stored, isDescending: true, size: size) == stored.reversed())
    }

    @Test(arguments: [ObjectListing.Order.identity, .stored])
    func `a search finds what an identity, a key or the JSON contains, each object once`(
        order: ObjectListing.Order
    ) async throws {
        let bench = try await bench()
        #expect(try await Set(pages(bench, order, text: "U1")) == ["1", "10"])
        #expect(try await pages(bench, order, text: "zoe", size: 1) == ["zoe"])
        // What is called so comes first.
        #expect(try await pages(bench, order, isDescending: true, text: "u1", size: 1).first == "1")
        #expect(try await pages(bench, order, text: "%").isEmpty)
        #expect(try await pages(bench, order, text: "bug").isEmpty)
    }

    @Test func `a search that stops early says how far it came, and can continue there`() async throws {
        let bench = try Bench()
        for part in 0..<5 {
            let users = (1...200).map { #"{"id":\#(part * 200 + $0),"login":"u\#(part * 200 + $0)"}"# }
            _ = try await bench.store.receive(
                bench.response("/users?page=\(part)", "[\(users.joined(separator: ","))]", user)
            )
        }
        let all = try await pages(bench, .identity, text: "u99", size: 500, patience: .zero)
        #expect(Set(all) == Set(["99"] + (990...999).map { "\($0)" }))
        let listing = try #require(ObjectListing(model: "User", text: "nobody", order: .stored))
        let page = try await bench.store.list(listing, patience: .seconds(60))
        #expect(page.rows.isEmpty)
        #expect(page.next == nil)
        #expect(page.examined == 1000)
    }

    @Test func `objects of other principals, upstreams and models are left out`() async throws {
        let bench = try await bench()
        let listing = try #require(ObjectListing(model: "User", order: .identity, principal: "p-00000000"))
        #expect(try await bench.store.list(listing).rows.isEmpty)
        let elsewhere = try #require(ObjectListing(model: "User", order: .stored, upstream: "nobody"))
        #expect(try await bench.store.list(elsewhere).rows.isEmpty)
        let unknown = try #require(ObjectListing(model: "Nothing", order: .stored))
        #expect(try await bench.store.list(unknown).next == nil)
    }

    @Test(arguments: ["", "x", "1.", ".5", "1", "1.5.6"])
    func `a page's position is refused for another order`(after: String) {
        let byIdentity = ObjectListing(model: "User", order: .identity, after: after)
        #expect((byIdentity != nil) == ["1.", "1.5.6"].contains(after))
        #expect((ObjectListing(model: "User", order: .stored, after: after) != nil) == (after == "1"))
    }

    @Test func `documents are listed from the latest on, and found by a part of their URL`() async throws {
        let bench = try await bench()
        let all = try await bench.store.list(DocumentListing())
        #expect(all.rows.map(\.url) == ["/labels/1", "/users", "/users"])
        #expect(all.next == nil)
        let first = try await bench.store.list(DocumentListing(limit: 1))
        let second = try await bench.store.list(DocumentListing(limit: 5, after: first.next))
        #expect(second.rows.map(\.id) == Array(all.rows.map(\.id).dropFirst()))
        #expect(try await bench.store.list(DocumentListing(text: "LABEL")).rows.map(\.url) == ["/labels/1"])
        #expect(try await bench.store.list(DocumentListing(text: "_")).rows.isEmpty)
        #expect(try await bench.store.list(DocumentListing(upstream: "nobody")).rows.isEmpty)
    }

    @Test func `documents are listed from the oldest on, and found by the beginning of their URL`() async throws {
        let bench = try await bench()
        let all = try await bench.store.list(DocumentListing(isDescending: false))
        #expect(all.rows.map(\.url) == ["/users", "/users", "/labels/1"] && all.next == nil)
        let first = try await bench.store.list(DocumentListing(isDescending: false, limit: 1))
        let second = try await bench.store.list(DocumentListing(isDescending: false, limit: 5, after: first.next))
        #expect(second.rows.map(\.id) == Array(all.rows.map(\.id).dropFirst()))
        let labels = try await bench.store.list(DocumentListing(covers: { $0.hasPrefix("/lab") }, isDescending: false))
        #expect(labels.rows.map(\.url) == ["/labels/1"])
        #expect(
            try await bench.store.list(DocumentListing(covers: { $0.hasPrefix("abels") }, isDescending: false)).rows
                .isEmpty
        )
        // Out of time, a page is short and says where to go on.
        var (urls, after): ([String], Int64?) = ([], nil)
        repeat {
            let listing = DocumentListing(covers: { $0.hasPrefix("/l") }, isDescending: false, after: after)
            let page = try await bench.store.list(listing, patience: .zero)
            urls += page.rows.map(\.url)
            after = page.next
        } while after != nil
        #expect(urls == ["/labels/1"])
    }

    @Test func `a document is inspected as a look-up would find it`() async throws {
        let bench = try await bench()
        let row = try #require(try await bench.store.list(DocumentListing(text: "/users")).rows.last)
        let before = try #require(try await bench.store.inspect(row.id))
        #expect(before.row.url == "/users")
        #expect(before.stored.form == .asReceived)
        #expect(before.objects.map(\.identity) == ["10", "9", "2", "1", "zoe"])
        #expect(before.objects.allSatisfy { $0.model == "User" })
        _ = try await bench.store.receive(
            bench.response("/users/9", #"{"id":9,"login":"nine"}"#, BodyRule(model: "User", isList: false))
        )
        let after = try #require(try await bench.store.inspect(row.id))
        #expect(after.stored.form == .composed)
        #expect(after.stored.body.contains("nine"))
        #expect(try await bench.store.inspect(DocumentID(rawValue: 4711)) == nil)
    }
}
