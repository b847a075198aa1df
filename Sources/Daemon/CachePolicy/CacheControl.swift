package import HTTPSemantics
import RawStructuredFieldValues

/// The directives of a request's `Cache-Control` (RFC 9111 §5.2.1, RFC 5861 §4).
///
/// The type is small and flat, because the hit path makes one per request. Of repeated directives the strictest counts. An
/// unreadable number demands the maximum (`max-age`, `min-fresh`) or allows nothing (`max-stale`, `stale-if-error`).
///
/// `no-store` prevents storing the response to this request, but a response already stored may be used for it (RFC 9111
/// §5.2.1.5). `no-transform` forbids nothing here: Larder removes content codings because it asked for them itself, not the
/// client. A response's `immutable` overrides none of these: a request with `max-age=0` asks for validation, and RFC 8246
/// §2.1 heeds such a signal.
package struct RequestDirectives: Sendable, Equatable {
    /// Seconds; -1 if absent.
    package var maxAge: Int64 = -1
    var minFresh: Int64 = -1
    /// The allowed staleness in seconds; -1 if absent, `Int64.max` for `max-stale` without a number.
    var maxStale: Int64 = -1
    var staleIfError: Int64 = -1
    package var noCache = false
    package var noStore = false
    package var onlyIfCached = false
    /// Whether a misplaced quote has been read, which puts the rest of this line and later lines in doubt.
    private var isInDoubt = false

    package init() {}

    package static let none = RequestDirectives()

    /// Whether no directive affects the decision on reuse.
    @inline(__always)
    var isPlain: Bool { maxAge < 0 && minFresh < 0 && maxStale < 0 && staleIfError < 0 && !noCache && !onlyIfCached }

    /// Reads one line of `Cache-Control`; must be called once per line.
    package mutating func read(cacheControl value: UnsafeRawBufferPointer) {
        var reader = DirectiveReader(value, isInDoubt: isInDoubt)
        while let directive = reader.next() { apply(directive.name, directive.argument) }
        isInDoubt = reader.isInDoubt
    }

    /// Reads `Pragma`, which counts only in requests without `Cache-Control` (RFC 9111 §5.4).
    mutating func read(pragma value: UnsafeRawBufferPointer) {
        var reader = DirectiveReader(value)
        while let directive = reader.next() {
            if FieldSyntax.equalsIgnoringCase(directive.name, "no-cache") { noCache = true }
        }
    }

    /// Reads `Cache-Control`, or `Pragma` if there is none.
    package init(fields: Fields) {
        guard fields.contains(oneOf: Self.fields) else { return }
        let lines = fields.all("cache-control")
        if Self.areOfFetch(lines, fields) { return }
        for line in lines { line.withUnsafeBytes { read(cacheControl: $0) } }
        guard lines.isEmpty else { return }
        for line in fields.all("pragma") { line.withUnsafeBytes { read(pragma: $0) } }
    }

    private static let fields: KnownFields = [.cacheControl, .pragma]

    /// Whether `no-cache` is present only because the request has conditions.
    ///
    /// `fetch`, in browsers as in Node, adds `Cache-Control: no-cache` and `Pragma: no-cache` to each request for which the
    /// program has set a condition, to bypass the cache inside `fetch` (Fetch standard, "HTTP-network-or-cache fetch"). Were it
    /// taken literally, a client that remembers tags would never be served from this cache. A forced reload has no conditions. A
    /// client that wants a conditional request validated sends `max-age=0`, or `no-cache` without `Pragma`.
    private static func areOfFetch(_ lines: [[UInt8]], _ fields: Fields) -> Bool {
        let noCache = Array("no-cache".utf8)
        guard lines == [noCache], fields.all("pragma") == [noCache] else { return false }
        return UpstreamFields.areConditional(fields)
    }

    private mutating func apply(_ name: UnsafeRawBufferPointer, _ argument: DirectiveReader.Argument) {
        // The length distinguishes most names, so that each is compared with two others at most.
        switch name.count {
        case 7 where FieldSyntax.equalsIgnoringCase(name, "max-age"):
            maxAge = Self.smaller(maxAge, argument.seconds ?? 0)
        case 8 where FieldSyntax.equalsIgnoringCase(name, "no-cache"): noCache = true
        case 8 where FieldSyntax.equalsIgnoringCase(name, "no-store"): noStore = true
        case 9 where FieldSyntax.equalsIgnoringCase(name, "min-fresh"):
            minFresh = max(minFresh, argument.seconds ?? DeltaSeconds.maximum)
        case 9 where FieldSyntax.equalsIgnoringCase(name, "max-stale"):
            if case .none = argument {
                maxStale = Self.smaller(maxStale, .max)
            } else {
                maxStale = Self.smaller(maxStale, argument.seconds ?? 0)
            }
        case 14 where FieldSyntax.equalsIgnoringCase(name, "only-if-cached"): onlyIfCached = true
        case 14 where FieldSyntax.equalsIgnoringCase(name, "stale-if-error"):
            if let seconds = argument.seconds { staleIfError = Self.smaller(staleIfError, seconds) }
        default: break
        }
    }

    private static func smaller(_ known: Int64, _ new: Int64) -> Int64 { known < 0 ? new : min(known, new) }
}

/// The directives of a response's `Cache-Control`, or of a targeted field that replaces it (RFC 9111 §5.2.2).
///
/// Of repeated and of conflicting directives the most restrictive counts: the smallest number, the unqualified form before
/// the qualified, `no-store` before all others (RFC 9111 §4.2.1). An unreadable number is 0 if it would grant freshness
/// (`max-age`, `s-maxage`: stale), and is ignored if it would grant staleness (`stale-…`). Unknown directives are ignored.
/// If a directive that takes no argument has one, it still counts if it restricts, but not if it permits (`public`,
/// `must-understand`, `immutable`), because the meaning of the argument is unknown.
package struct ResponseDirectives: Sendable, Equatable {
    /// Seconds; nil if absent, 0 if present but unreadable.
    var maxAge: Int64?
    var sMaxAge: Int64?
    var staleWhileRevalidate: Int64?
    var staleIfError: Int64?
    package var noStore = false
    var noCache = false
    /// Lower-case field names of `no-cache="…"`: not to be reused without validation.
    var noCacheFields: [[UInt8]] = []
    package var isPrivate = false
    /// Lower-case field names of `private="…"`: not to be stored by a shared cache.
    var privateFields: [[UInt8]] = []
    var isPublic = false
    var mustRevalidate = false
    var proxyRevalidate = false
    var mustUnderstand = false
    var immutable = false

    init() {}

    /// Reads `Cache-Control`.
    package init(_ fields: Fields) {
        var isInDoubt = false
        for line in fields where line.isNamed(.cacheControl) {
            line.value.withUnsafeBytes { bytes in
                var reader = DirectiveReader(bytes, isInDoubt: isInDoubt)
                while let directive = reader.next() { apply(directive) }
                isInDoubt = reader.isInDoubt
            }
        }
    }

    private mutating func apply(_ directive: DirectiveReader.Directive) {
        let argument: Argument =
            switch directive.argument {
            case .none: .none
            case .malformed: .unreadable
            case .token, .quoted:
                directive.argument.seconds.map(Argument.seconds) ?? .text(directive.argument.bytes ?? [])
            }
        // The usual one needs no text.
        if FieldSyntax.equalsIgnoringCase(directive.name, "max-age") { return apply("max-age", argument) }
        apply(String(decoding: FieldSyntax.lowercased(directive.name), as: UTF8.self), argument)
    }

    enum Argument {
        case none, unreadable
        case seconds(Int64)
        case text([UInt8])

        var isNone: Bool {
            if case .none = self { true } else { false }
        }
    }

    /// Directives whose argument is a number of seconds.
    static let numeric: Set<String> = ["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"]

    /// Applies one directive; `name` is in lower case.
    mutating func apply(_ name: String, _ argument: Argument) {
        switch name {
        case "max-age": maxAge = Self.stricter(maxAge, Self.seconds(argument) ?? 0)
        case "s-maxage": sMaxAge = Self.stricter(sMaxAge, Self.seconds(argument) ?? 0)
        case "stale-while-revalidate":
            if let seconds = Self.seconds(argument) {
                staleWhileRevalidate = Self.stricter(staleWhileRevalidate, seconds)
            }
        case "stale-if-error":
            if let seconds = Self.seconds(argument) { staleIfError = Self.stricter(staleIfError, seconds) }
        case "no-store": noStore = true
        case "no-cache": Self.qualify(argument, all: &noCache, fields: &noCacheFields)
        case "private": Self.qualify(argument, all: &isPrivate, fields: &privateFields)
        case "public": isPublic = isPublic || argument.isNone
        case "must-revalidate": mustRevalidate = true
        case "proxy-revalidate": proxyRevalidate = true
        case "must-understand": mustUnderstand = mustUnderstand || argument.isNone
        case "immutable": immutable = immutable || argument.isNone
        default: break
        }
    }

    /// Whether a shared cache may store the response to a request with an `Authorization` field (RFC 9111 §3.5).
    ///
    /// The stored response may then serve any principal.
    package var permitsAuthorization: Bool { isPublic || mustRevalidate || sMaxAge != nil }

    private static func seconds(_ argument: Argument) -> Int64? {
        if case .seconds(let value) = argument { value } else { nil }
    }

    private static func stricter(_ known: Int64?, _ new: Int64) -> Int64 { min(known ?? new, new) }

    /// Applies `no-cache` or `private`, either to the whole response or to the fields it names.
    ///
    /// An argument that names no field applies to the whole response.
    private static func qualify(_ argument: Argument, all: inout Bool, fields: inout [[UInt8]]) {
        let text: [UInt8] =
            switch argument {
            case .none, .unreadable: []
            // A field name may consist of digits only.
            case .seconds(let value): Array(String(value).utf8)
            case .text(let text): text
            }
        let names = FieldSyntax.members(text)
        guard !names.isEmpty, names.allSatisfy({ FieldSyntax.isToken($0) }) else {
            all = true
            return
        }
        for name in names.map({ FieldSyntax.lowercased($0) }) where !fields.contains(name) { fields.append(name) }
    }
}

/// Response directives from fields that address certain caches, such as `CDN-Cache-Control` (RFC 9213).
package enum TargetedDirectives {
    /// The directives of the first field of the target list that is present, not empty, and well formed.
    ///
    /// Such a field replaces `Cache-Control`, `Expires` and `Pragma` altogether (RFC 9213 §2.2).
    /// - Parameter targets: Field names, the most specific first.
    package static func find(in fields: Fields, targets: [String]) -> (field: String, directives: ResponseDirectives)? {
        for target in targets {
            guard fields.contains(target), let directives = parse(fields.all(target)) else { continue }
            return (target, directives)
        }
        return nil
    }

    /// Parses the lines of one targeted field, a structured dictionary; nil if it is empty or malformed.
    ///
    /// Unlike in `Cache-Control`, names are in lower case, numbers are not quoted, the last of repeated members counts, and one
    /// mistake anywhere invalidates the whole field (RFC 9213 §2.1). A value of the wrong type grants nothing: `max-age="60"`
    /// and `max-age=60.5` grant no freshness, `public=1` permits nothing.
    static func parse(_ lines: [[UInt8]]) -> ResponseDirectives? {
        var parser = StructuredFieldValueParser(Array(lines.joined(separator: [0x2C, 0x20])))
        guard let members = try? parser.parseDictionaryFieldValue(), !members.isEmpty else { return nil }
        var directives = ResponseDirectives()
        for (name, member) in members {
            // Parameters of a directive are ignored. No directive has an inner list as its value.
            guard case .item(let item) = member else {
                directives.apply(name, .unreadable)
                continue
            }
            switch item.rfc9651BareItem {
            case .bool(true): directives.apply(name, .none)
            // `no-store=?0` states explicitly that the directive does not apply.
            case .bool(false):
                if ResponseDirectives.numeric.contains(name) { directives.apply(name, .unreadable) }
            case .integer(let number) where number >= 0:
                directives.apply(name, .seconds(min(number, DeltaSeconds.maximum)))
            case .string(let text), .token(let text): directives.apply(name, .text(Array(text.utf8)))
            default: directives.apply(name, .unreadable)
            }
        }
        return directives
    }
}

/// Reads the directives of one `Cache-Control` field line in place, without allocating (RFC 9111 §5.2).
///
/// A member that is not a directive is skipped. After a misplaced or unclosed quote, directives can no longer be distinguished from
/// quoted text. All later directives are still returned, so that restrictions are heeded, but with a malformed argument, so
/// that none of them grants anything.
struct DirectiveReader {
    struct Directive {
        var name: UnsafeRawBufferPointer
        var argument: Argument
    }

    enum Argument {
        case none
        case token(UnsafeRawBufferPointer)
        /// The text between the quotes, including backslashes.
        case quoted(UnsafeRawBufferPointer)
        /// Neither: white space around the `=`, an unclosed quote, or bytes allowed in neither form.
        case malformed

        /// The argument in seconds; nil if it is missing or is not a delta-seconds value.
        @inline(__always)
        var seconds: Int64? {
            switch self {
            case .token(let bytes): DeltaSeconds.parse(bytes)
            case .quoted(let bytes):
                // Escaped digits are valid, though no client sends them.
                bytes.contains(0x5C) ? DeltaSeconds.parse(self.bytes ?? []) : DeltaSeconds.parse(bytes)
            case .none, .malformed: nil
            }
        }

        /// The unescaped bytes of the argument; nil if it is missing or malformed.
        var bytes: [UInt8]? {
            switch self {
            case .token(let bytes): return Array(bytes)
            case .quoted(let bytes):
                var unescaped: [UInt8] = []
                var isEscaped = false
                for byte in bytes {
                    if byte == 0x5C, !isEscaped {
                        isEscaped = true
                    } else {
                        unescaped.append(byte)
                        isEscaped = false
                    }
                }
                return unescaped
            case .none, .malformed: return nil
            }
        }
    }

    private let bytes: UnsafeRawBufferPointer
    private var position = 0
    /// Whether a misplaced quote has been read.
    private(set) var isInDoubt: Bool

    /// - Parameter isInDoubt: Whether an earlier line of the field had a misplaced quote; the lines form one list.
    init(_ bytes: UnsafeRawBufferPointer, isInDoubt: Bool = false) { (self.bytes, self.isInDoubt) = (bytes, isInDoubt) }

    /// Returns the next directive; nil at the end of the line.
    mutating func next() -> Directive? {
        while position < bytes.count {
            let byte = bytes[position]
            if byte == 0x2C || FieldSyntax.isWhitespace(byte) {
                position += 1
            } else if FieldSyntax.isTokenByte(byte) {
                return directive()
            } else {
                skipToComma()
            }
        }
        return nil
    }

    private mutating func directive() -> Directive {
        let wasInDoubt = isInDoubt
        let name = token()
        var argument = Argument.none
        if position < bytes.count, bytes[position] == 0x3D {
            position += 1
            argument = self.argument()
        }
        skipWhitespace()
        if position < bytes.count, bytes[position] != 0x2C {
            // For example `max-age =5` and `max-age=5; x`: the directive is recognised, but its argument is unreliable.
            argument = .malformed
            skipToComma()
        }
        if wasInDoubt { argument = .malformed }
        return Directive(name: name, argument: argument)
    }

    private mutating func argument() -> Argument {
        guard position < bytes.count else { return .malformed }
        guard bytes[position] == 0x22 else {
            let value = token()
            return value.isEmpty ? .malformed : .token(value)
        }
        // After a misplaced quote, no quote may hide a directive.
        if isInDoubt { return .malformed }
        let start = position + 1
        var index = start
        while index < bytes.count {
            if bytes[index] == 0x5C {
                index += 2
            } else if bytes[index] == 0x22 {
                position = index + 1
                return .quoted(UnsafeRawBufferPointer(rebasing: bytes[start..<index]))
            } else {
                index += 1
            }
        }
        // An unclosed quote must not hide a directive behind the next comma.
        return .malformed
    }

    private mutating func token() -> UnsafeRawBufferPointer {
        let start = position
        while position < bytes.count, FieldSyntax.isTokenByte(bytes[position]) { position += 1 }
        return UnsafeRawBufferPointer(rebasing: bytes[start..<position])
    }

    private mutating func skipWhitespace() {
        while position < bytes.count, FieldSyntax.isWhitespace(bytes[position]) { position += 1 }
    }

    private mutating func skipToComma() {
        while position < bytes.count, bytes[position] != 0x2C {
            if bytes[position] == 0x22 { isInDoubt = true }
            position += 1
        }
    }
}
