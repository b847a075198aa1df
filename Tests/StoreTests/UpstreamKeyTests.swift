import Foundation
import Testing

@testable import Store

struct UpstreamKeyTests {
    @Test func `in JSON a key is a string, and by keys a dictionary is an object`() throws {
        let key = UpstreamKey(name: "a", url: "b")
        #expect(String(decoding: try JSONEncoder().encode([key]), as: UTF8.self) == #"["a b"]"#)
        let positions = try JSONEncoder().encode([key: 1])
        #expect(String(decoding: positions, as: UTF8.self) == #"{"a b":1}"#)
        #expect(try JSONDecoder().decode([UpstreamKey: Int].self, from: positions) == [key: 1])
        #expect(key.name == "a")
    }
}
