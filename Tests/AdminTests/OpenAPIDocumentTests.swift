import Foundation
import Testing

@testable import Admin
@testable import HTTPSemantics

@Suite struct OpenAPIDocumentTests {
    let document: [String: Any]

    init() throws {
        let bytes = OpenAPIDocument.describe(AdminRoute.all, version: "0.1").bytes
        document = try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
    }

    @Test func `the OpenAPI document describes exactly the routes of the table`() throws {
        let paths = try #require(document["paths"] as? [String: [String: Any]])
        let described = paths.flatMap { path, operations in operations.keys.map { "\($0.uppercased()) \(path)" } }
        #expect(described.sorted() == AdminRoute.all.map { "\($0.method) \($0.path)" }.sorted())
    }

    @Test func `every capture of a path is a parameter`() throws {
        let paths = try #require(document["paths"] as? [String: [String: [String: Any]]])
        let operation = try #require(paths["/objects/{model}/{id}"]?["get"])
        let parameters = try #require(operation["parameters"] as? [[String: Any]])
        let names = parameters.filter { $0["in"] as? String == "path" }.compactMap { $0["name"] as? String }
        #expect(names == ["model", "id"])
    }

    @Test func `every operation has a unique name`() throws {
        let paths = try #require(document["paths"] as? [String: [String: [String: Any]]])
        let names = paths.values.flatMap { $0.values.compactMap { $0["operationId"] as? String } }
        #expect(Set(names).count == AdminRoute.all.count)
    }

    @Test func `members that may be absent are not required`() throws {
        let clean = try #require(ResponseSchema.make(of: CleanResponse.self).object)
        #expect(clean["required"] as? [String] == ["objects", "documents", "bytes", "models", "orphaned"])
        let request = try #require(ResponseSchema.make(of: RequestsResponse.Request.self).object)
        #expect((request["required"] as? [String])?.contains("upstream_seconds") == false)
        let properties = try #require(request["properties"] as? [String: [String: String]])
        #expect(properties["upstream_seconds"]?["type"] == "number" && properties["bytes"]?["type"] == "integer")
    }
}

extension JSONText {
    fileprivate var object: [String: Any]? {
        (try? JSONSerialization.jsonObject(with: Data(bytes))) as? [String: Any]
    }
}
