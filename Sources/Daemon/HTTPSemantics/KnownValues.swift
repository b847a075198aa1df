import Glibc

/// Values to look for in bytes, in whatever spelling: with the escapes of URLs, JSON, HTML, also escaped several times, in Base64
/// at any position, in UTF-16 and UTF-32.
///
/// The time of a search does not depend on the number of values.
package struct KnownValues: Sendable {
    /// Shorter values are not looked for, because they would be found by chance.
    package static let shortest = 8
    /// Longer ones are not either: they are files, and no credentials.
    static let longest = 16 << 10
    /// How many times a value may be escaped or encoded, at most.
    private static let depth = 4
    /// The bytes that are searched at once.
    private static let segment = 1 << 20

    private struct Spelling {
        let value: Int
        /// The number of bytes before the value, modulo 3, if it is spelled in Base64; nil if not.
        let alignment: Int?
    }

    private(set) var count = 0
    /// The number of the value of `insert(beginningOfPlaceholders:)`.
    private var placeholder: Int?
    private var patterns: [[UInt8]] = []
    /// Of each pattern.
    private var spellings: [Spelling] = []
    private var table = ShiftTable()
    private var longestPattern = 0

    package init() {}

    package init(_ values: [[UInt8]]) { for value in values { insert(value) } }

    var isEmpty: Bool { count == 0 }

    /// Adds a value, unless it is too short or too long; returns its number.
    @discardableResult
    package mutating func insert(_ value: [UInt8]) -> Int? {
        guard value.count >= Self.shortest, value.count <= Self.longest else { return nil }
        let number = count
        count += 1
        var known: Set<[UInt8]> = []
        for form in Self.forms(of: value) {
            if known.insert(form).inserted { add(form, Spelling(value: number, alignment: nil)) }
            for alignment in 0..<3 {
                for digits in Self.base64(form, alignment) where known.insert(digits).inserted {
                    add(digits, Spelling(value: number, alignment: alignment))
                }
            }
        }
        return number
    }

    /// Adds what placeholders begin with, before their numbers: within Base64 they are replaced, number and all, elsewhere left.
    package mutating func insert(beginningOfPlaceholders beginning: [UInt8]) { placeholder = insert(beginning) }

    private mutating func add(_ pattern: [UInt8], _ spelling: Spelling) {
        if patterns.count >= table.room { table = ShiftTable(larger: table, patterns) }
        table.insert(pattern, patterns.count)
        patterns.append(pattern)
        spellings.append(spelling)
        longestPattern = max(longestPattern, pattern.count)
    }

    /// The value, what it stands for if it has escapes itself, and what both become where `+` stands for a space.
    private static func forms(of value: [UInt8]) -> [[UInt8]] {
        var forms = [value]
        var last = value
        while forms.count < 3, let unescaped = last.withUnsafeBufferPointer({ UnescapedText(unescaping: $0) }) {
            last = unescaped.bytes
            forms.append(last)
        }
        for form in forms {
            if form.contains(0x20) { forms.append(form.map { $0 == 0x20 ? 0x2B : $0 }) }
            if form.contains(0x2B) { forms.append(form.map { $0 == 0x2B ? 0x20 : $0 }) }
            guard form.contains(where: { $0 >= 0x80 }) else { continue }
            // In fields ISO 8859-1 is usual.
            if let text = String(validating: form, as: UTF8.self) {
                let scalars = text.unicodeScalars.map(\.value)
                if scalars.allSatisfy({ $0 < 256 }) { forms.append(scalars.map { UInt8($0) }) }
            } else {
                forms.append(Array(String(String.UnicodeScalarView(form.map { Unicode.Scalar($0) })).utf8))
            }
        }
        return forms.filter { $0.count >= shortest }
    }

    /// The digits that a value has wherever it stands in Base64, after so many bytes modulo 3; in both alphabets.
    private static func base64(_ value: [UInt8], _ alignment: Int) -> Set<[UInt8]> {
        let digits = Base64.encode([UInt8](repeating: 0, count: alignment) + value, isPadded: false)
        let start = firstDigits[alignment]
        let whole = (alignment + value.count) * 8 / 6
        let stable = Array(digits[start..<whole])
        return [stable, stable.map { $0 == 0x2B ? 0x2D : $0 == 0x2F ? 0x5F : $0 }]
    }

    /// The first digit that only a value decides, by the number of bytes before it.
    private static let firstDigits = [0, 2, 3]

    // MARK: Search

    package func occurs(in bytes: [UInt8]) -> Bool {
        guard !isEmpty else { return false }
        var isFound = false
        bytes.withUnsafeBufferPointer { bytes in
            for start in stride(from: 0, to: bytes.count, by: Self.segment) where !isFound {
                forEachText(in: segment(of: bytes, from: start), []) { text, _ in
                    table.search(text, patterns) { _, _ in
                        isFound = true
                        return false
                    }
                    return !isFound
                }
            }
        }
        return isFound
    }

    /// Replaces all occurrences; nil if there are none.
    ///
    /// - Parameter replacement: The text for a value, by its number; letters, digits and hyphens only. It is spelled as the
    ///   value was: in UTF-16, or in the Base64 around it.
    package func replacing(in bytes: [UInt8], by replacement: (Int) -> [UInt8]) -> [UInt8]? {
        replacing(in: bytes, depth: 0, by: replacement)
    }

    private func replacing(in bytes: [UInt8], depth: Int, by replacement: (Int) -> [UInt8]) -> [UInt8]? {
        guard !isEmpty else { return nil }
        var result = bytes
        var rounds = 0
        // What is left of one occurrence where two overlapped may contain a third.
        while rounds < Self.depth, let edits = edits(in: result, depth, replacement) {
            result = Edit.apply(edits, to: result)
            rounds += 1
        }
        return rounds == 0 ? nil : result
    }

    private func segment(of bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> UnsafeBufferPointer<UInt8> {
        // An escaped letter has up to twelve bytes, an escaped escape a few more.
        let end = min(bytes.count, start + Self.segment + 24 * longestPattern)
        return UnsafeBufferPointer(rebasing: bytes[start..<end])
    }

    /// Calls a function with a text and all that it may stand for, until it returns false.
    private func forEachText(
        in text: UnsafeBufferPointer<UInt8>,
        _ path: [UnescapedText],
        _ body: (_ text: UnsafeBufferPointer<UInt8>, _ path: [UnescapedText]) -> Bool
    ) {
        guard body(text, path), path.count < Self.depth else { return }
        var goesOn = true
        func visit(_ derived: UnescapedText?, isLast: Bool = false) {
            guard goesOn, let derived else { return }
            derived.bytes.withUnsafeBufferPointer { bytes in
                if isLast {
                    goesOn = body(bytes, path + [derived])
                } else {
                    forEachText(in: bytes, path + [derived]) { text, path in
                        goesOn = body(text, path)
                        return goesOn
                    }
                }
            }
        }
        if path.isEmpty { visit(UnescapedText(withoutNULs: text)) }
        visit(UnescapedText(unescaping: text))
        visit(UnescapedText(joiningBase64Lines: text), isLast: true)
    }

    // MARK: Replacement

    private func edits(in bytes: [UInt8], _ depth: Int, _ replacement: (Int) -> [UInt8]) -> [Edit]? {
        var edits: [Edit] = []
        bytes.withUnsafeBufferPointer { bytes in
            for start in stride(from: 0, to: bytes.count, by: Self.segment) {
                forEachText(in: segment(of: bytes, from: start), []) { text, path in
                    // The end of the Base64 that was decoded last, so that none is decoded for each value in it.
                    var decoded = 0
                    table.search(text, patterns) { number, place in
                        let spelling = spellings[number]
                        var found = place..<place + patterns[number].count
                        if spelling.value == placeholder, spelling.alignment == nil {
                            guard depth > 0 else { return true }
                            let digits = text[found.upperBound...].prefix(while: FieldSyntax.isDigit)
                            found = place..<digits.endIndex
                        }
                        var edit = Edit(range: found, text: replacement(spelling.value))
                        if let alignment = spelling.alignment {
                            guard place >= decoded else { return true }
                            if depth < Self.depth, let coded = base64Edit(text, found, alignment, depth, replacement) {
                                edit = coded
                                decoded = coded.range.upperBound
                            }
                        }
                        edits.append(edit.at(path, in: bytes, from: start))
                        return true
                    }
                    return true
                }
            }
        }
        return edits.isEmpty ? nil : Edit.withoutOverlaps(edits)
    }

    /// Replaces values in the Base64 around one; nil if they cannot be found there.
    private func base64Edit(
        _ text: UnsafeBufferPointer<UInt8>,
        _ found: Range<Int>,
        _ alignment: Int,
        _ depth: Int,
        _ replacement: (Int) -> [UInt8]
    ) -> Edit? {
        let alphabet = text[found].lazy.compactMap { Base64.alphabet(of: $0) }.first
        func belongs(_ byte: UInt8) -> Bool {
            guard Base64.isDigit(byte) else { return false }
            guard let alphabet, let own = Base64.alphabet(of: byte) else { return true }
            return own == alphabet
        }
        var (start, end) = (found.lowerBound, found.upperBound)
        while start > 0, belongs(text[start - 1]) { start -= 1 }
        while end < text.count, belongs(text[end]) { end += 1 }
        // What stands before may be no part of the Base64.
        start += ((found.lowerBound - start - Self.firstDigits[alignment]) % 4 + 4) % 4
        guard start <= found.lowerBound else { return nil }
        let digits = text[start..<end]
        let hasPadding = end < text.count && text[end] == 0x3D
        while end < text.count, text[end] == 0x3D { end += 1 }
        guard let decoded = replacing(in: Base64.decode(digits), depth: depth + 1, by: replacement) else { return nil }
        let own = alphabet ?? digits.lazy.compactMap { Base64.alphabet(of: $0) }.first ?? .standard
        let isInToken = start > 0 && text[start - 1] == 0x2E || end < text.count && text[end] == 0x2E
        let isPadded = hasPadding || digits.count % 4 == 0 && own == .standard && !isInToken
        let encoded = Base64.encode(decoded, in: own, isPadded: isPadded)
        return Edit(range: start..<end, text: encoded, isWithin: true)
    }
}

/// A range of bytes to be replaced.
package struct Edit: Sendable, Equatable {
    package var range: Range<Int>
    package var text: [UInt8]
    /// Whether it replaces the code around a value; where the code itself is a value, that one counts.
    private var isWithin: Bool

    package init(range: Range<Int>, text: [UInt8], isWithin: Bool = false) {
        (self.range, self.text, self.isWithin) = (range, text, isWithin)
    }

    /// The edits in the order of their places; of those that overlap, the longer ones.
    package static func withoutOverlaps(_ edits: [Edit]) -> [Edit] {
        var kept: [Edit] = []
        let sorted = edits.sorted { one, other in
            if one.range.lowerBound != other.range.lowerBound { return one.range.lowerBound < other.range.lowerBound }
            return one.rank > other.rank
        }
        for edit in sorted {
            guard let last = kept.last, edit.range.lowerBound < last.range.upperBound else {
                kept.append(edit)
                continue
            }
            if edit.rank > last.rank { kept[kept.count - 1] = edit }
        }
        return kept
    }

    private var rank: (Int, Int) { (isWithin ? 0 : 1, range.count) }

    /// Applies edits, which are in order and do not overlap.
    package static func apply(_ edits: [Edit], to bytes: [UInt8]) -> [UInt8] {
        var (result, end): ([UInt8], Int) = ([], 0)
        for edit in edits where edit.range.lowerBound >= end {
            result += bytes[end..<edit.range.lowerBound]
            result += edit.text
            end = edit.range.upperBound
        }
        return result + bytes[end...]
    }

    /// The same edit of bytes with others before them.
    package func moved(by distance: Int) -> Edit {
        Edit(range: range.lowerBound + distance..<range.upperBound + distance, text: text, isWithin: isWithin)
    }

    /// The same edit of the text that another was made of.
    ///
    /// - Parameters:
    ///   - path: How the text was made of a segment of the bytes.
    ///   - start: Where that segment begins.
    fileprivate func at(_ path: [UnescapedText], in bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Edit {
        var edit = self
        for text in path.reversed() { edit.range = text.source(of: edit.range) }
        edit = edit.moved(by: start)
        let source = bytes[edit.range]
        if source.contains(0) { return edit.widened(in: bytes) }
        // In a URL, some digits of Base64 have to be escaped.
        if isWithin, source.contains(0x25) { edit.text = PercentEncoding.encode(bytes: edit.text) }
        return edit
    }

    /// The edit in UTF-16 or UTF-32, with as many NULs for each letter as there are in what it replaces.
    private func widened(in bytes: UnsafeBufferPointer<UInt8>) -> Edit {
        let step = bytes[range].dropFirst().prefix { $0 == 0 }.count + 1
        let zeros = [UInt8](repeating: 0, count: step - 1)
        let (lower, upper) = (range.lowerBound, range.upperBound)
        if lower >= step - 1, bytes[(lower - step + 1)..<lower].allSatisfy({ $0 == 0 }) {
            // The most significant byte comes first.
            return Edit(range: lower - step + 1..<upper, text: text.flatMap { zeros + [$0] }, isWithin: isWithin)
        }
        let end = min(bytes.count, upper + step - 1)
        return Edit(range: lower..<end, text: text.flatMap { [$0] + zeros }, isWithin: isWithin)
    }
}

/// Finds many patterns in one pass: the algorithm of Wu and Manber, which skips most bytes.
private struct ShiftTable: Sendable {
    /// The bytes of a pattern that decide where it may occur: as many as the shortest has.
    private static let window = KnownValues.shortest
    private static let block = 4

    /// How far a window may move, by the hash of its last block.
    private var shifts: [UInt8]
    private let bits: UInt32
    /// The patterns by the last block of their first window.
    private var candidates: [UInt32: [Int]] = [:]

    /// The number of patterns until a larger table is better.
    var room: Int { shifts.count / 32 }

    init(bits: UInt32 = 12) {
        self.bits = bits
        shifts = [UInt8](repeating: UInt8(Self.window - Self.block + 1), count: 1 << Int(bits))
    }

    init(larger table: ShiftTable, _ patterns: [[UInt8]]) {
        self.init(bits: table.bits + 2)
        for (number, pattern) in patterns.enumerated() { insert(pattern, number) }
    }

    mutating func insert(_ pattern: [UInt8], _ number: Int) {
        pattern.withUnsafeBytes { bytes in
            for offset in 0...Self.window - Self.block {
                let block = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
                let shift = UInt8(Self.window - Self.block - offset)
                let slot = slot(of: block)
                shifts[slot] = min(shifts[slot], shift)
                if shift == 0 { candidates[block, default: []].append(number) }
            }
        }
    }

    @inline(__always)
    private func slot(of block: UInt32) -> Int { Int((block &* 0x9E37_79B1) >> (32 - bits)) }

    /// Calls a function with each pattern found and its place, until it returns false.
    func search(
        _ text: UnsafeBufferPointer<UInt8>,
        _ patterns: [[UInt8]],
        _ found: (_ number: Int, _ place: Int) -> Bool
    ) {
        guard text.count >= Self.window, let start = text.baseAddress.map({ UnsafeRawPointer($0) }) else { return }
        shifts.withUnsafeBufferPointer { shifts in
            var place = 0
            let last = text.count - Self.window
            while place <= last {
                let block = start.loadUnaligned(fromByteOffset: place + Self.window - Self.block, as: UInt32.self)
                let shift = shifts[Int((block &* 0x9E37_79B1) >> (32 - bits))]
                guard shift == 0 else {
                    place += Int(shift)
                    continue
                }
                for number in candidates[block] ?? [] {
                    let pattern = patterns[number]
                    guard place + pattern.count <= text.count,
                        pattern.withUnsafeBytes({ memcmp($0.baseAddress!, start + place, pattern.count) }) == 0
                    else { continue }
                    guard found(number, place) else { return }
                }
                place += 1
            }
        }
    }
}
