extension StringProtocol {
    /// What stands before the question mark: the path, where this is a path and query.
    ///
    /// By bytes: by characters it takes ten times as long, and a combining mark behind the question mark would hide it.
    @inlinable public var beforeQuery: SubSequence {
        self[..<(utf8.firstIndex(of: UInt8(ascii: "?")) ?? endIndex)]
    }
}
