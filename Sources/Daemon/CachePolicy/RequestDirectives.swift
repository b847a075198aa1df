package import HTTPSemantics

/// What a request's `Cache-Control` asks of the cache (RFC 9111 §5.2.1, RFC 5861 §4).
///
/// Small and flat, because the hit path makes one per request. Of repeated directives the most demanding counts; a
/// number that cannot be read demands all (`max-age`, `min-fresh`) or allows nothing (`max-stale`, `stale-if-error`).
///
/// `no-store` keeps the response to this request from being stored; one that is stored already may be used for it (RFC 9111
/// §5.2.1.5). `no-transform` has nothing to forbid: content codings are undone because Larder, not the client, asked for
/// them. `immutable` in a response overrides none of these: a request that says `max-age=0` asks for validation, and RFC 8246
/// §2.1 heeds such a signal.
package struct RequestDirectives: Sendable, Equatable {
    /// Seconds; -1 when absent.
    package var maxAge: Int64 = -1
    var minFresh: Int64 = -1
    /// Seconds of staleness allowed; -1 when absent, `Int64.max` for `max-stale` without a number.
    var maxStale: Int64 = -1
    var staleIfError: Int64 = -1
    package var noCache = false
    package var noStore = false
    package var onlyIfCached = false
    /// Whether a stray quote has been read, which puts in doubt what follows on this line and the next.
    private var isInDoubt = false

    package init() {}

    /// A request that asks for nothing in particular.
    package static let none = RequestDirectives()

    /// Whether nothing is asked that the decision of reuse depends on.
    @inline(__always)
    var isPlain: Bool {
        maxAge < 0 && minFresh < 0 && maxStale < 0 && staleIfError < 0 && !noCache && !onlyIfCached
    }

    /// Reads one line of `Cache-Control`; call it once for each.
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

    /// Whether `no-cache` is there only because the request has conditions.
    ///
    /// `fetch`, in browsers as in Node, adds `Cache-Control: no-cache` and `Pragma: no-cache` to each request for which the
    /// program has set a condition, to keep the cache inside `fetch` out of the way (Fetch standard, "HTTP-network-or-cache
    /// fetch"). Taken by its word it would keep whoever remembers tags from ever being answered by this cache. A forced
    /// reload has no conditions; who wants the upstream asked under one says `max-age=0`, or `no-cache` without `Pragma`.
    private static func areOfFetch(_ lines: [[UInt8]], _ fields: Fields) -> Bool {
        let noCache = Array("no-cache".utf8)
        guard lines == [noCache], fields.all("pragma") == [noCache] else { return false }
        return fields.lines.contains { UpstreamFields.conditional.contains($0.lowercasedName) }
    }

    private mutating func apply(_ name: UnsafeRawBufferPointer, _ argument: DirectiveReader.Argument) {
        // Lengths tell most of them apart, so that each name is compared with two others at most.
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
