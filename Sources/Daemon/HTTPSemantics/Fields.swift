import Glibc

/// One header or trailer field line as a value of its own, in the spelling in which it arrived (RFC 9110 §5).
package struct Field: Sendable, Equatable {
    package var name: [UInt8]
    /// The field value without leading and trailing white space; arbitrary bytes, including obs-text.
    package var value: [UInt8]

    package init(name: [UInt8], value: [UInt8]) { (self.name, self.value) = (name, value) }
    package init(_ name: String, _ value: String) { self.init(name, Array(value.utf8)) }
    package init(_ name: String, _ value: [UInt8]) { self.init(name: Array(name.utf8), value: value) }

    /// Whether the field has this name; `lowercased` must be in lower case.
    package func isNamed(_ lowercased: String) -> Bool { FieldSyntax.equalsIgnoringCase(name, lowercased.utf8) }

    /// The value as text; bytes that are not UTF-8 are replaced, so it must not be passed on.
    package var text: String { String(decoding: value, as: UTF8.self) }

    package var lowercasedName: String { String(decoding: FieldSyntax.lowercased(name), as: UTF8.self) }
}

/// The field lines of one message, in order, in one buffer; names are found in any case.
///
/// Each name is recognised once, when its line is added (`KnownField`). Copies share the buffer, and so do those without some of the
/// lines. What is served from memory and stored is the buffer itself (`encoded`).
package struct Fields: Sendable {
    /// The lines in the form of HTTP/1.1, among them perhaps some that were removed.
    private var bytes: [UInt8] = []
    private var places: [Place] = []

    /// Where a line is: `name: value` and CRLF, from `start`.
    fileprivate struct Place {
        var start: UInt32
        var nameCount: UInt32
        var valueCount: UInt32
        /// The raw value of the `KnownField`.
        var known: UInt8

        static let unknown: UInt8 = 255

        init(_ start: Int, nameCount: Int, valueCount: Int, known: UInt8) {
            (self.start, self.known) = (UInt32(start), known)
            (self.nameCount, self.valueCount) = (UInt32(nameCount), UInt32(valueCount))
        }

        var name: Range<Int> { Int(start)..<Int(start) + Int(nameCount) }
        var valueStart: Int { Int(start) + Int(nameCount) + 2 }
        var value: Range<Int> { valueStart..<valueStart + Int(valueCount) }
        var end: Int { valueStart + Int(valueCount) + 2 }
    }

    /// A line in place.
    package struct Line {
        fileprivate let bytes: [UInt8]
        fileprivate let place: Place

        package var name: ArraySlice<UInt8> { bytes[place.name] }
        package var value: ArraySlice<UInt8> { bytes[place.value] }
        package var known: KnownField? { KnownField(rawValue: place.known) }
        /// The line in the form of HTTP/1.1, with its CRLF.
        package var encoded: ArraySlice<UInt8> { bytes[Int(place.start)..<place.end] }
        package var field: Field { Field(name: Array(name), value: Array(value)) }

        package func isNamed(_ name: KnownField) -> Bool { place.known == name.rawValue }
        package func isNamed(_ name: String) -> Bool { Fields.isNamed(name, place, in: bytes) }
        package func isOne(of names: KnownFields) -> Bool { names.contains(place.known) }

        package var lowercasedName: String { String(decoding: FieldSyntax.lowercased(name), as: UTF8.self) }
    }

    package init() {}

    package init(_ lines: [Field]) { for line in lines { append(line) } }

    /// The lines as values of their own, which takes two allocations for each.
    package var lines: [Field] {
        get { map(\.field) }
        set { self = Fields(newValue) }
    }

    // MARK: Look-up

    /// The value of the first line of this name.
    package subscript(name: KnownField) -> ArraySlice<UInt8>? {
        for place in places where place.known == name.rawValue { return bytes[place.value] }
        return nil
    }

    package func contains(_ name: KnownField) -> Bool { places.contains { $0.known == name.rawValue } }
    package func contains(oneOf names: KnownFields) -> Bool { places.contains { names.contains($0.known) } }

    /// The values of all lines of this name.
    package func all(_ name: KnownField) -> [ArraySlice<UInt8>] {
        var values: [ArraySlice<UInt8>] = []
        for place in places where place.known == name.rawValue { values.append(bytes[place.value]) }
        return values
    }

    package subscript(first name: String) -> [UInt8]? { index(of: name).map { Array(self[$0].value) } }
    package func text(_ name: String) -> String? {
        index(of: name).map { String(decoding: self[$0].value, as: UTF8.self) }
    }

    package func all(_ name: String) -> [[UInt8]] {
        if places.isEmpty { return [] }
        return Self.withName(name) { name, known in
            var values: [[UInt8]] = []
            for place in places where place.known == known && Self.isNamed(name, known, place, in: bytes) {
                values.append(Array(bytes[place.value]))
            }
            return values
        }
    }

    /// All lines of this name joined by a comma and a space (RFC 9110 §5.3); nil if there are none.
    package func combined(_ name: String) -> String? {
        combinedBytes(name).map { String(decoding: $0, as: UTF8.self) }
    }

    package func combinedBytes(_ name: String) -> [UInt8]? {
        let values = all(name)
        if values.count == 1 { return values[0] }
        return values.isEmpty ? nil : Array(values.joined(separator: [0x2C, 0x20]))
    }

    package func contains(_ name: String) -> Bool { index(of: name) != nil }

    /// The position of the first line of a name, from another position on.
    private func index(of name: String, from start: Int = 0) -> Int? {
        if places.isEmpty { return nil }
        return Self.withName(name) { name, known in
            places[start...].firstIndex { $0.known == known && Self.isNamed(name, known, $0, in: bytes) }
        }
    }

    private static func isNamed(_ name: String, _ place: Place, in bytes: [UInt8]) -> Bool {
        withName(name) { name, known in place.known == known && isNamed(name, known, place, in: bytes) }
    }

    private static func withName<Result>(_ name: String, _ body: (UnsafeRawBufferPointer, UInt8) -> Result) -> Result {
        var name = name
        return name.withUTF8 { utf8 in
            let name = UnsafeRawBufferPointer(utf8)
            return body(name, KnownFieldTable.shared.number(of: name))
        }
    }

    /// Whether a line has a name, if both have the same number.
    private static func isNamed(_ name: UnsafeRawBufferPointer, _ known: UInt8, _ place: Place, in bytes: [UInt8])
        -> Bool
    {
        if known != Place.unknown { return true }
        guard name.count == place.nameCount else { return false }
        let start = Int(place.start)
        for index in 0..<name.count where asciiLowercased(bytes[start + index]) != asciiLowercased(name[index]) {
            return false
        }
        return true
    }

    /// The value of `Content-Length`; nil if it is absent, or no plain number.
    package var contentLength: Int? {
        guard let value = self[.contentLength], (1...18).contains(value.count) else { return nil }
        var length = 0
        for byte in value {
            guard FieldSyntax.isDigit(byte) else { return nil }
            length = length * 10 + Int(byte - 0x30)
        }
        return length
    }

    /// How much memory the lines take, about, in bytes.
    package var byteCount: Int { bytes.count + MemoryLayout<Place>.stride * places.count }

    // MARK: Changes

    package mutating func append(_ name: String, _ value: String) {
        var value = value
        value.withUTF8 { append(name, UnsafeRawBufferPointer($0)) }
    }

    package mutating func append(_ name: String, _ value: [UInt8]) { value.withUnsafeBytes { append(name, $0) } }

    private mutating func append(_ name: String, _ value: UnsafeRawBufferPointer) {
        var name = name
        name.withUTF8 { append(name: UnsafeRawBufferPointer($0), value: value) }
    }

    package mutating func append(_ line: Field) {
        line.name.withUnsafeBytes { name in line.value.withUnsafeBytes { append(name: name, value: $0) } }
    }

    /// Adds a line; the bytes are copied.
    package mutating func append(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        append(name: name, value: value, known: KnownFieldTable.shared.number(of: name))
    }

    /// The same for a name that was recognised before.
    mutating func append(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer, known: UInt8) {
        // Most messages need no more; without it, both would grow line by line.
        if bytes.isEmpty { reserve(lines: 12, bytes: 480) }
        places.append(write(name, value, known))
    }

    /// Makes room for lines, so that adding them does not move the others.
    package mutating func reserve(lines: Int, bytes count: Int) {
        places.reserveCapacity(lines)
        bytes.reserveCapacity(count)
    }

    /// Adds a line of these fields, or of others.
    mutating func append(_ line: Line) { places.append(write(line.place, of: line.bytes)) }

    /// Adds the lines of others.
    package mutating func append(contentsOf others: Fields) {
        if places.isEmpty {
            self = others
            return
        }
        for place in others.places { places.append(write(place, of: others.bytes)) }
    }

    private mutating func write(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ known: UInt8)
        -> Place
    {
        let start = bytes.count
        bytes.append(contentsOf: name)
        bytes.append(0x3A)
        bytes.append(0x20)
        bytes.append(contentsOf: value)
        bytes.append(0x0D)
        bytes.append(0x0A)
        return Place(start, nameCount: name.count, valueCount: value.count, known: known)
    }

    private mutating func write(_ place: Place, of others: [UInt8]) -> Place {
        var copy = place
        copy.start = UInt32(bytes.count)
        bytes.append(contentsOf: others[Int(place.start)..<place.end])
        return copy
    }

    /// Gives a line another value.
    package mutating func replaceValue(at index: Int, by value: some Collection<UInt8>) {
        let (place, former) = (places[index], bytes)
        // The former line remains in the buffer, where nothing leads to it.
        places[index] = former.withUnsafeBytes { former in
            let name = UnsafeRawBufferPointer(rebasing: former[place.name])
            return Array(value).withUnsafeBytes { write(name, $0, place.known) }
        }
    }

    /// Adds a member to a field that is a list, and makes its lines one.
    package mutating func append(member: [UInt8], to name: String) {
        guard contains(name) else { return append(name, member) }
        let known = all(name).filter { !$0.isEmpty }
        remove(name)
        append(name, Array((known + [member]).joined(separator: [0x2C, 0x20])))
    }

    /// Replaces all lines of this name, in any case, with one line.
    package mutating func set(_ name: String, _ value: String) {
        remove(name)
        append(name, value)
    }

    package mutating func remove(_ name: String) {
        guard let first = index(of: name) else { return }
        places.remove(at: first)
        while let next = index(of: name, from: first) { places.remove(at: next) }
    }

    package mutating func remove(_ name: KnownField) { removeAll { $0.isNamed(name) } }

    package mutating func removeAll(where isRemoved: (Line) -> Bool) {
        let bytes = bytes
        guard let first = places.firstIndex(where: { isRemoved(Line(bytes: bytes, place: $0)) }) else { return }
        var end = first
        for index in (first + 1)..<places.count where !isRemoved(Line(bytes: bytes, place: places[index])) {
            places[end] = places[index]
            end += 1
        }
        places.removeLast(places.count - end)
    }

    /// The lines for which a condition holds.
    package func filter(_ isKept: (Line) -> Bool) -> Fields {
        var kept = self
        kept.removeAll { !isKept($0) }
        return kept
    }

    /// The same lines in no more memory than they take, to be kept.
    package var compact: Fields {
        var copy = Fields()
        copy.reserve(lines: places.count, bytes: places.reduce(0) { $0 + $1.end - Int($1.start) })
        for place in places { copy.places.append(copy.write(place, of: bytes)) }
        return copy
    }

    // MARK: Encoded

    /// The lines in the form of HTTP/1.1, each with its CRLF.
    package var encoded: [UInt8] {
        var end = 0
        if places.allSatisfy({ place in
            defer { end = place.end }
            return Int(place.start) == end
        }), end == bytes.count {
            return bytes
        }
        var encoded: [UInt8] = []
        encoded.reserveCapacity(bytes.count)
        append(to: &encoded)
        return encoded
    }

    /// Appends the lines in the form of HTTP/1.1.
    package func append(to encoded: inout [UInt8]) {
        var index = 0
        while index < places.count {
            let start = Int(places[index].start)
            var end = places[index].end
            index += 1
            while index < places.count, Int(places[index].start) == end {
                end = places[index].end
                index += 1
            }
            encoded.append(contentsOf: bytes[start..<end])
        }
    }

    /// The lines that were encoded; what is no field line is left out.
    package init(encoded: [UInt8]) {
        bytes = encoded
        encoded.withUnsafeBytes { encoded in
            var start = 0
            while start < encoded.count, let end = Self.find(0x0A, in: encoded, start..<encoded.count) {
                defer { start = end + 1 }
                guard let colon = Self.find(0x3A, in: encoded, start..<end) else { continue }
                let name = UnsafeRawBufferPointer(rebasing: encoded[start..<colon])
                let known = KnownFieldTable.shared.number(of: name)
                // After the colon and before the end, one byte each is no part of the value.
                let value = colon + 2..<Swift.max(colon + 2, end - 1)
                if end >= colon + 3, encoded[colon + 1] == 0x20, encoded[end - 1] == 0x0D {
                    places.append(Place(start, nameCount: name.count, valueCount: value.count, known: known))
                } else {
                    let bytes = UnsafeRawBufferPointer(rebasing: encoded[value.isEmpty ? 0..<0 : value])
                    places.append(write(name, bytes, known))
                }
            }
        }
    }

    private static func find(_ byte: UInt8, in bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> Int? {
        guard let start = bytes.baseAddress, let found = memchr(start + range.lowerBound, Int32(byte), range.count)
        else { return nil }
        return UnsafeRawPointer(found) - start
    }
}

extension [UInt8] {
    /// Appends a number that is not negative.
    package mutating func append(decimal number: Int) {
        var divisor = 1
        while number / divisor >= 10 { divisor *= 10 }
        while divisor > 0 {
            append(UInt8(0x30 + number / divisor % 10))
            divisor /= 10
        }
    }
}

extension Fields: ExpressibleByDictionaryLiteral, RandomAccessCollection, Equatable {
    package init(dictionaryLiteral lines: (String, String)...) {
        for (name, value) in lines { append(name, value) }
    }

    package var startIndex: Int { 0 }
    package var endIndex: Int { places.count }
    package subscript(index: Int) -> Line { Line(bytes: bytes, place: places[index]) }

    package static func == (left: Fields, right: Fields) -> Bool {
        left.count == right.count
            && zip(left, right).allSatisfy { $0.name == $1.name && $0.value == $1.value }
    }
}

/// The byte, with `A`–`Z` converted to `a`–`z`.
@inlinable
public func asciiLowercased(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }

/// Removes the fields that concern one connection only (RFC 9110 §7.6.1).
extension Fields {
    private static let hopByHop: KnownFields = [
        .connection, .keepAlive, .proxyConnection, .te, .trailer, .transferEncoding, .upgrade,
        // For the next proxy only (RFC 9111 §3.1).
        .proxyAuthenticate, .proxyAuthenticationInfo, .proxyAuthorization,
    ]

    /// Fields that stay even if `Connection` names them.
    ///
    /// `Cache-Control` is never a connection option (RFC 9110 §7.6.1). If a sender could have these fields dropped, it could
    /// change what may be stored or where a request goes.
    private static let protected = ["cache-control", "host"]

    /// Whether a field is hop-by-hop whether or not `Connection` names it.
    package static func isHopByHop(_ name: [UInt8]) -> Bool {
        hopByHop.contains(name.withUnsafeBytes { KnownFieldTable.shared.number(of: $0) })
    }

    /// The fields that `Connection` makes hop-by-hop, in lower case.
    package var namedByConnection: [String] {
        all(.connection).flatMap { FieldSyntax.members($0) }
            .map { String(decoding: FieldSyntax.lowercased($0), as: UTF8.self) }
            .filter { !Self.protected.contains($0) }
    }

    /// The fields without hop-by-hop ones and those that `Connection` names.
    package func withoutHopByHop() -> Fields {
        guard contains(oneOf: Self.hopByHop) else { return self }
        let named = namedByConnection
        return filter { line in !line.isOne(of: Self.hopByHop) && !named.contains { line.isNamed($0) } }
    }
}
