import Glibc

/// The fields that Larder looks up, or that most clients send; each is recognised once, when its message is read.
///
/// A hit finds their roles in the cache key by index, without a look at the name (`FieldRole`).
package enum KnownField: UInt8, CaseIterable, Sendable {
    case host, connection, keepAlive, proxyConnection, te, trailer, upgrade, transferEncoding, contentLength, expect
    case accept, acceptEncoding, acceptLanguage, userAgent, contentType, timeZone
    case authorization, cookie, privateToken, apiKey, stripeAccount
    case cacheControl, pragma, range, ifRange, ifMatch, ifNoneMatch, ifModifiedSince, ifUnmodifiedSince
    case origin, referer, secFetchSite, secPurpose, purpose, xMoz
    case accessControlRequestMethod, accessControlRequestHeaders, privateNetwork
    case larderView, larderLive, larderSession, larderPosition
    case via, forwarded, methodOverride, httpMethodOverride, httpMethod
    case age, date, expires, etag, lastModified, vary, location, link, warning, server
    case setCookie, setCookie2, retryAfter, altSvc, cacheStatus, larderCacheControl
    case contentLocation, contentEncoding, contentLanguage, contentRange, contentDisposition, acceptRanges
    case contentMd5, contentDigest, reprDigest, digest
    case proxyAuthenticate, proxyAuthenticationInfo, proxyAuthorization
    case xRatelimitLimit, xRatelimitRemaining, xRatelimitReset, xRatelimitResource, xRatelimitUsed
    case ratelimit, ratelimitPolicy, ratelimitLimit, ratelimitRemaining, ratelimitReset
    case rateLimitLimit, rateLimitRemaining, rateLimitReset
    case larderOtherFields, larderJsonOnly

    /// The field's name in lower case.
    package var name: StaticString { Self.names[Int(rawValue)] }

    /// The names in the order of the cases.
    private static let names: [StaticString] = [
        "host", "connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade", "transfer-encoding",
        "content-length", "expect",
        "accept", "accept-encoding", "accept-language", "user-agent", "content-type", "time-zone",
        "authorization", "cookie", "private-token", "x-api-key", "stripe-account",
        "cache-control", "pragma", "range", "if-range", "if-match", "if-none-match", "if-modified-since",
        "if-unmodified-since",
        "origin", "referer", "sec-fetch-site", "sec-purpose", "purpose", "x-moz",
        "access-control-request-method", "access-control-request-headers", "access-control-request-private-network",
        "larder-view", "larder-live", "larder-session", "larder-position",
        "via", "forwarded", "x-method-override", "x-http-method-override", "x-http-method",
        "age", "date", "expires", "etag", "last-modified", "vary", "location", "link", "warning", "server",
        "set-cookie", "set-cookie2", "retry-after", "alt-svc", "cache-status", "larder-cache-control",
        "content-location", "content-encoding", "content-language", "content-range", "content-disposition",
        "accept-ranges",
        "content-md5", "content-digest", "repr-digest", "digest",
        "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
        "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "x-ratelimit-resource", "x-ratelimit-used",
        "ratelimit", "ratelimit-policy", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset",
        "x-rate-limit-limit", "x-rate-limit-remaining", "x-rate-limit-reset",
        "larder-other-fields", "larder-json-only",
    ]
}

/// A set of known fields.
package struct KnownFields: Sendable, ExpressibleByArrayLiteral {
    private var bits: (UInt64, UInt64) = (0, 0)

    package init(arrayLiteral fields: KnownField...) { self.init(fields) }

    package init(_ fields: some Sequence<KnownField>) {
        for field in fields {
            let bit: UInt64 = 1 << UInt64(field.rawValue % 64)
            if field.rawValue < 64 { bits.0 |= bit } else { bits.1 |= bit }
        }
    }

    package func contains(_ field: KnownField) -> Bool { contains(field.rawValue) }

    /// Whether the set contains the field of a raw value; false for any other number.
    func contains(_ number: UInt8) -> Bool {
        number < 128 && (number < 64 ? bits.0 : bits.1) >> UInt64(number % 64) & 1 == 1
    }
}

/// Finds the known field of a name, in any case, with one hash and one comparison.
// Unchecked: its memory is written once, before it is shared, and lives as long as the process.
package final class KnownFieldTable: @unchecked Sendable {
    package static let shared = KnownFieldTable()

    private static let slotCount = 1024
    /// The raw value plus one of the field whose name hashes to this slot; 0 for none.
    private let slots = UnsafeMutablePointer<UInt8>.allocate(capacity: slotCount)
    private let names: UnsafeMutablePointer<StaticString>
    private var multiplier: UInt32 = 1

    private init() {
        names = .allocate(capacity: KnownField.allCases.count)
        for field in KnownField.allCases { (names + Int(field.rawValue)).initialize(to: field.name) }
        // A few dozen attempts find a multiplier that gives each name its own slot.
        while !fillSlots() { multiplier &+= 2 }
    }

    private func fillSlots() -> Bool {
        slots.initialize(repeating: 0, count: Self.slotCount)
        for field in KnownField.allCases {
            let place = slot(field.name.utf8Start, field.name.utf8CodeUnitCount)
            if slots[place] != 0 { return false }
            slots[place] = field.rawValue + 1
        }
        return true
    }

    private func slot(_ name: UnsafePointer<UInt8>, _ count: Int) -> Int {
        let first = UInt32(name[0] | 0x20)
        let middle = UInt32(name[count / 2] | 0x20)
        let last = UInt32(name[count - 1] | 0x20)
        let late = UInt32(name[max(count - 3, 0)] | 0x20)
        let sum = UInt32(truncatingIfNeeded: count) &+ first &<< 6 &+ middle &<< 12 &+ last &<< 18 &+ late &<< 24
        let mixed = sum &* multiplier
        return Int(((mixed ^ (mixed >> 15)) &* 0x9E37_79B1) >> 22)
    }

    /// The known field of this name, which must be a non-empty token.
    package func find(_ name: UnsafePointer<UInt8>, _ count: Int) -> KnownField? {
        let candidate = slots[slot(name, count)]
        guard candidate != 0 else { return nil }
        let wanted = names[Int(candidate) - 1]
        guard wanted.utf8CodeUnitCount == count else { return nil }
        let text = wanted.utf8Start
        // Setting bit 5 folds the case of letters; no other token bytes that matter here become equal.
        for index in 0..<count where name[index] | 0x20 != text[index] { return nil }
        return KnownField(rawValue: candidate - 1)
    }

    /// The raw value of the known field of a name, which may be any bytes; 255 for none.
    func number(of name: UnsafeRawBufferPointer) -> UInt8 {
        guard let start = name.baseAddress, name.count > 0,
            let known = find(start.assumingMemoryBound(to: UInt8.self), name.count),
            // For `find` it equals a hyphen.
            memchr(start, 0x0D, name.count) == nil
        else { return 255 }
        return known.rawValue
    }
}
