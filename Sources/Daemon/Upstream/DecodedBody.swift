/// Bodies that are whole already, such as those in files of other tools.
package enum DecodedBody {
    /// The body without its content coding; nil where it is not in that, or nobody knows it.
    ///
    /// - Parameter limit: the most bytes that it may have decoded.
    package static func decode(_ body: [UInt8], coding: String, limit: Int) -> [UInt8]? {
        guard let coding = ContentDecoder.Coding(named: coding) else { return nil }
        let decoder = ContentDecoder(coding)
        var room = [UInt8](repeating: 0, count: 64 << 10)
        var result: [UInt8] = []
        let isWhole = body.withUnsafeBytes { input in
            var rest = input
            while true {
                guard let count = try? room.withUnsafeMutableBytes({ try decoder.decode(&rest, into: $0) }) else {
                    return false
                }
                result += room[..<count]
                if result.count > limit { return false }
                if count == 0 { return rest.isEmpty && decoder.isAtEnd }
            }
        }
        return isWhole ? result : nil
    }
}
