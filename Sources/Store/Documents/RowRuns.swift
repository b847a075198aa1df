/// Rows to be read by their numbers, of which those that lie close together are read in one go.
///
/// What came in one answer has numbers one after the other. To step to the next row takes a tenth of what it takes to look one
/// up from the root of its table.
enum RowRuns {
    /// How far apart two rows may lie for what is in between to be stepped over.
    private static let gap: Int64 = 8

    /// Stretches that hold all of these numbers, ascending.
    static func of(_ numbers: some Sequence<Int64>) -> [ClosedRange<Int64>] {
        var runs: [ClosedRange<Int64>] = []
        for number in numbers.sorted() {
            if let last = runs.last, number &- last.upperBound <= gap {
                runs[runs.count - 1] = last.lowerBound...number
            } else {
                runs.append(number...number)
            }
        }
        return runs
    }
}
