/// The request fields that Larder looks up; the parser notes the position of each.
package enum KnownField: UInt8, CaseIterable, Sendable {
    case host, connection, keepAlive, proxyConnection, te, trailer, upgrade, transferEncoding, contentLength, expect
    case accept, acceptEncoding, acceptLanguage, userAgent, contentType, timeZone
    case authorization, cookie, privateToken, apiKey, stripeAccount
    case cacheControl, pragma, range, ifRange, ifMatch, ifNoneMatch, ifModifiedSince, ifUnmodifiedSince
    case origin, referer, secFetchSite, secPurpose, purpose, xMoz
    case accessControlRequestMethod, accessControlRequestHeaders, privateNetwork
    case larderView, larderLive, larderSession
    case via, forwarded, methodOverride, httpMethodOverride, httpMethod

    /// The field's name in lower case.
    package var name: StaticString {
        switch self {
        case .host: "host"
        case .connection: "connection"
        case .keepAlive: "keep-alive"
        case .proxyConnection: "proxy-connection"
        case .te: "te"
        case .trailer: "trailer"
        case .upgrade: "upgrade"
        case .transferEncoding: "transfer-encoding"
        case .contentLength: "content-length"
        case .expect: "expect"
        case .accept: "accept"
        case .acceptEncoding: "accept-encoding"
        case .acceptLanguage: "accept-language"
        case .userAgent: "user-agent"
        case .contentType: "content-type"
        case .timeZone: "time-zone"
        case .authorization: "authorization"
        case .cookie: "cookie"
        case .privateToken: "private-token"
        case .apiKey: "x-api-key"
        case .stripeAccount: "stripe-account"
        case .cacheControl: "cache-control"
        case .pragma: "pragma"
        case .range: "range"
        case .ifRange: "if-range"
        case .ifMatch: "if-match"
        case .ifNoneMatch: "if-none-match"
        case .ifModifiedSince: "if-modified-since"
        case .ifUnmodifiedSince: "if-unmodified-since"
        case .origin: "origin"
        case .referer: "referer"
        case .secFetchSite: "sec-fetch-site"
        case .secPurpose: "sec-purpose"
        case .purpose: "purpose"
        case .xMoz: "x-moz"
        case .accessControlRequestMethod: "access-control-request-method"
        case .accessControlRequestHeaders: "access-control-request-headers"
        case .privateNetwork: "access-control-request-private-network"
        case .larderView: "larder-view"
        case .larderLive: "larder-live"
        case .larderSession: "larder-session"
        case .via: "via"
        case .forwarded: "forwarded"
        case .methodOverride: "x-method-override"
        case .httpMethodOverride: "x-http-method-override"
        case .httpMethod: "x-http-method"
        }
    }
}

/// Finds the known field of a name, in any case, with one hash and one comparison.
// Unchecked: its memory is written once, before it is shared, and lives as long as the process.
package final class KnownFieldTable: @unchecked Sendable {
    package static let shared = KnownFieldTable()

    private static let slotCount = 256
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
        let mixed = (UInt32(truncatingIfNeeded: count) &+ first &<< 6 &+ middle &<< 12 &+ last &<< 18) &* multiplier
        return Int(((mixed ^ (mixed >> 15)) &* 0x9E37_79B1) >> 24)
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
}
