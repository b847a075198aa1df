import Testing

@testable import CachePolicy
@testable import HTTPSemantics
@testable import Proxy

/// Combining pieces of one representation.
@Suite struct PartialContentTests {
    private static let whole = Array("0123456789".utf8)

    private func piece(_ range: Range<Int>, length: Int? = 10, of body: [UInt8] = whole) throws -> PartialContent {
        let value = RangeField.contentRange(range, length: length)
        return try #require(PartialContent(fields: ["Content-Range": value], body: Array(body[range])))
    }

    @Test(arguments: [
        ([0..<3, 3..<5], [0..<5]), ([3..<5, 0..<3], [0..<5]), ([0..<3, 5..<7], [0..<3, 5..<7]),
        ([5..<7, 0..<3], [0..<3, 5..<7]), ([0..<5, 2..<4], [0..<5]), ([2..<4, 0..<5], [0..<5]),
        ([0..<2, 4..<6, 8..<10, 1..<9], [0..<10]), ([0..<2, 4..<6, 8..<10, 3..<7], [0..<2, 3..<7, 8..<10]),
        ([4..<6, 4..<6], [4..<6]),
    ])
    func `pieces that touch become one, whatever their order`(ranges: [Range<Int>], expected: [Range<Int>]) throws {
        var parts = try piece(ranges[0])
        for range in ranges.dropFirst() { parts = try #require(parts.combined(with: piece(range))) }
        #expect(parts.ranges == expected)
        #expect(parts.body == expected.flatMap { Self.whole[$0] })
        #expect(parts.isWhole == (expected == [0..<10]))
        for range in expected { #expect(parts.bytes(in: range).map(Array.init) == Array(Self.whole[range])) }
        let fields = Fields(parts.contentRanges.map { Field("Content-Range", $0) })
        #expect(PartialContent(fields: fields, body: parts.body) == parts)
    }

    @Test func `the gap is the one missing range; there is none if several are missing`() throws {
        #expect(try piece(0..<4).gap == 4..<10)
        #expect(try piece(4..<10).gap == 0..<4)
        #expect(try piece(0..<2).combined(with: piece(6..<10))?.gap == 2..<6)
        #expect(try piece(2..<4).gap == nil)
        #expect(try piece(0..<4, length: nil).gap == nil)
        #expect(try piece(0..<10).gap == nil)
    }

    @Test func `pieces that contradict each other are not combined`() throws {
        let other = Array("abcdefghij".utf8)
        #expect(try piece(0..<4).combined(with: piece(2..<6, of: other)) == nil)
        #expect(try piece(0..<4).combined(with: piece(4..<6, length: 11)) == nil)
        #expect(try piece(0..<9, length: nil).combined(with: piece(4..<6, length: 8)) == nil)
        #expect(try piece(0..<4, length: nil).combined(with: piece(4..<10))?.isWhole == true)
    }

    @Test(arguments: [
        [], ["bytes 0-2/10", "bytes 3-4/10"], ["bytes 5-7/10", "bytes 0-1/10"], ["bytes 0-2/10", "bytes 5-6/11"],
        ["bytes 0-3/10"], ["bytes */5"], ["x"],
    ])
    func `a stored part whose fields and body do not fit is not read`(values: [String]) {
        let fields = Fields(values.map { Field("Content-Range", $0) })
        #expect(PartialContent(fields: fields, body: Array("01234".utf8)) == nil)
    }

    @Test func `a piece must have the length in its Content-Range`() {
        let fields: Fields = ["Content-Range": "bytes 0-4/10"]
        #expect(PartialContent(fields: fields, body: Array("0123".utf8)) == nil)
        #expect(PartialContent(fields: fields, body: Array("012345".utf8)) == nil)
    }

    @Test func `the number of pieces is limited`() throws {
        let long = [UInt8](repeating: 1, count: 1_000)
        var parts = try piece(0..<5, length: 1_000, of: long)
        for start in stride(from: 10, to: 990, by: 10) {
            parts = try #require(parts.combined(with: piece(start..<(start + 2), length: 1_000, of: long)))
        }
        #expect(parts.ranges.count == PartialContent.maximumCount)
        #expect(parts.bytes(in: 0..<5) != nil && parts.bytes(in: 980..<982) != nil)
        #expect(parts.body.count == parts.ranges.reduce(0) { $0 + $1.count })
    }

    @Test func `a large document is not rewritten for a small piece`() throws {
        let long = [UInt8](repeating: 1, count: 8 << 20)
        let known = try piece(0..<(6 << 20), length: long.count, of: long)
        let little = try piece((6 << 20)..<(6 << 20 + 1_000), length: long.count, of: long)
        #expect(try #require(known.combined(with: little)).isWorthKeeping(for: little) == false)
        let rest = try piece((6 << 20)..<long.count, length: long.count, of: long)
        #expect(try #require(known.combined(with: rest)).isWorthKeeping(for: rest))
        let small = try piece(0..<1_000, length: long.count, of: long)
        #expect(try #require(small.combined(with: little)).isWorthKeeping(for: little))
    }

    @Test func `a multipart boundary is searched for in a part, and differs in each response`() {
        let text = Array("larder_0123".utf8)
        #expect(MultipartByteRanges.occurs(text, in: Array("xxlarder_0123".utf8)[...]))
        #expect(!MultipartByteRanges.occurs(text, in: Array("xxlarder_012".utf8)[...]))
        #expect(!MultipartByteRanges.occurs(text, in: []))
        let part = (range: 0..<2, bytes: [1, 2] as ArraySlice<UInt8>)
        #expect(
            MultipartByteRanges([part], contentType: nil, length: nil).contentType
                != MultipartByteRanges([part], contentType: nil, length: 2).contentType
        )
    }
}
