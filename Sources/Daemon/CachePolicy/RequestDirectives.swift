package import HTTPSemantics

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

    /// The directives of a request without any.
    package static let none = RequestDirectives()

    /// Whether no directive affects the decision on reuse.
    @inline(__always)
    var isPlain: Bool {
        maxAge < 0 && minFresh < 0 && maxStale < 0 && staleIfError < 0 && !noCache && !onlyIfCached
    }

    /// Reads one line of `Cache-Control`; must be called once per line.
    package mutating func read(cacheControl value: UnsafeRawBufferPointer) {
        var reader = DirectiveReader(value, isInDoubt: isInDoubt)
        while let directive = reader.next() {
            apply(directive.name, directive.argument)
        }
        isInDoubt = reader.isInDoubt
    }

    /// Reads `Pragma`, which counts only in requests without `Cache-Control` (RFC 9111 §5.4).
    mutating func read(pragma value: UnsafeRawBufferPointer) {
        var reader = DirectiveReader(value)
        while let directive = reader.next() {
            if FieldSyntax.equalsIgnoringCase(directive.name, "no-cache") { noCache = true }
        }
    }

    package init(fields: Fields) {
        let lines = fields.all("cache-control")
        if Self.areOfFetch(lines, fields) { return }
        for line in lines {
            line.withUnsafeBytes { read(cacheControl: $0) }
        }
        guard lines.isEmpty else { return }
        for line in fields.all("pragma") {
            line.withUnsafeBytes { read(pragma: $0) }
        }
    }

    /// Whether `no-cache` is present only because the request has conditions.
    ///
    /// `fetch`, in browsers as in Node, adds `Cache-Control: no-cache` and `Pragma: no-cache` to each request for which the
    /// program has set a condition, to bypass the cache inside `fetch` (Fetch standard, "HTTP-network-or-cache fetch"). Were it
    /// taken literally, a client that remembers tags would never be served from this cache. A forced reload has no conditions. A
    /// client that wants a conditional request validated sends `max-age=0`, or `no-cache` without `Pragma`.
    private static func areOfFetch(_ lines: [[UInt8]], _ fields: Fields) -> Bool {
        let noCache = Array("no-cache".utf8)
        guard lines == [noCache], fields.all("pragma") == [noCache] else { return false }
        return fields.lines.contains { UpstreamFields.conditional.contains($0.lowercasedName) }
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

    private static func smaller(_ known: Int64, _ new: Int64) -> Int64 {
        known < 0 ? new : min(known, new)
    }
}
