import CachePolicy
import Glibc
import HTTPSemantics
import Store

/// The role of a request field or a query parameter in the cache key; empty if it has none.
struct FieldRole: OptionSet, Sendable {
    let rawValue: UInt8

    static let principal = FieldRole(rawValue: 1)
    static let context = FieldRole(rawValue: 2)
    /// It is neither known to be harmless nor in the key: see `OtherFields`.
    static let other = FieldRole(rawValue: 4)
    /// The parameter that asks for a stream of events.
    static let live = FieldRole(rawValue: 8)
    /// A parameter that may identify the principal: see `WeighedName`.
    static let weighed = FieldRole(rawValue: 16)
    /// It names another method than the request line, in whatever spelling.
    static let methodOverride = FieldRole(rawValue: 32)
}

extension FieldRole {
    /// This allocates; the hit path uses `FieldRoleCache`.
    init(of name: [UInt8], _ principal: PrincipalFields, _ context: ContextFields) {
        self = []
        // A field that does not go upstream selects nothing there.
        let isForwarded = !Fields.isHopByHop(name)
        if isForwarded, name.withUnsafeBytes({ name in context.matchers.contains { $0.matches(name) } }) {
            insert(.context)
        }
        if principal.reason(forField: name) != nil {
            insert(.principal)
        } else if isEmpty, isForwarded, !principal.isHarmless(field: name) {
            insert(.other)
        }
        if UpstreamFields.overridesMethod(name) { insert(.methodOverride) }
    }
}

extension ProxiedUpstream {
    /// The role of a request field; not for the hit path.
    func role(of field: Field) -> FieldRole { FieldRole(of: field.name, principal, context) }
}

/// The roles of names that a worker has met, so that each is computed once.
///
/// A look-up neither allocates nor locks. Names are compared in full, because clients choose them and could find two that
/// collide. The roles of long names are computed each time.
final class FieldRoleCache {
    private static let slotCount = 512
    /// Kind, count, role, the upstream's number, and the name.
    private static let (slotSize, headSize) = (64, 8)
    private let slots: UnsafeMutableRawPointer

    enum Kind: UInt8 { case field = 1, parameter = 2 }

    init() {
        slots = .allocate(byteCount: Self.slotCount * Self.slotSize, alignment: 8)
        slots.initializeMemory(as: UInt8.self, repeating: 0, count: Self.slotCount * Self.slotSize)
    }

    deinit { slots.deallocate() }

    @inline(__always)
    func role(of field: FieldView, _ upstream: ProxiedUpstream) -> FieldRole {
        if let known = field.known { return upstream.knownRoles[Int(known.rawValue)] }
        return role(of: field.name, .field, upstream)
    }

    /// The role of a field that is not a known one, or of a query parameter.
    func role(of name: UnsafeRawBufferPointer, _ kind: Kind, _ upstream: ProxiedUpstream) -> FieldRole {
        guard name.count <= Self.slotSize - Self.headSize, let start = name.baseAddress
        else { return Self.role(of: name, kind, upstream) }
        let slot = slots + Self.place(name, kind, upstream) * Self.slotSize
        let head = slot.assumingMemoryBound(to: UInt8.self)
        if head[0] == kind.rawValue, head[1] == UInt8(name.count),
            slot.load(fromByteOffset: 4, as: UInt32.self) == upstream.number,
            memcmp(slot + Self.headSize, start, name.count) == 0
        {
            return FieldRole(rawValue: head[2])
        }
        let role = Self.role(of: name, kind, upstream)
        (head[0], head[1], head[2]) = (kind.rawValue, UInt8(name.count), role.rawValue)
        slot.storeBytes(of: upstream.number, toByteOffset: 4, as: UInt32.self)
        memcpy(slot + Self.headSize, start, name.count)
        return role
    }

    private static func role(of name: UnsafeRawBufferPointer, _ kind: Kind, _ upstream: ProxiedUpstream) -> FieldRole {
        switch kind {
        case .field: FieldRole(of: Array(name), upstream.principal, upstream.context)
        case .parameter:
            if upstream.principal.reason(forParameter: name) != nil {
                .principal
            } else if name.elementsEqual(LiveMode.parameter.utf8) {
                .live
            } else {
                WeighedName(TargetNormaliser.unescaped(Array(name)[...])) != nil ? .weighed : []
            }
        }
    }

    @inline(__always)
    private static func place(_ name: UnsafeRawBufferPointer, _ kind: Kind, _ upstream: ProxiedUpstream) -> Int {
        var hash = UInt64(kind.rawValue) << 32 | UInt64(upstream.number) << 40 | UInt64(name.count)
        var offset = 0
        while offset + 8 <= name.count {
            hash = (hash ^ name.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) &* 0x9E37_79B9_7F4A_7C15
            hash ^= hash >> 29
            offset += 8
        }
        while offset < name.count {
            hash = (hash ^ UInt64(name[offset])) &* 0x9E37_79B9_7F4A_7C15
            offset += 1
        }
        return Int(hash >> 40) & (slotCount - 1)
    }
}

extension Digest128 {
    /// `OtherFields` as the store knows them: `ReceivedDocument.dividedBy`.
    var division: Int64 { Int64(bitPattern: low) }
}

extension OtherFields {
    /// Appends a field line to others, its name in lower case.
    static func append(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, to lines: inout [UInt8]) {
        for byte in name { lines.append(asciiLowercased(byte)) }
        lines.append(0x3A)
        lines.append(contentsOf: value)
        lines.append(0x0A)
    }

    static func text(_ digest: Digest128) -> [UInt8] {
        Array("\(String(digest.high, radix: 16))-\(String(digest.low, radix: 16))".utf8)
    }

    /// Parses the result of `text`; nil for anything else.
    static func digest(_ text: [UInt8]) -> Digest128? {
        let halves = String(decoding: text, as: UTF8.self).split(separator: "-").map { UInt64($0, radix: 16) }
        guard halves.count == 2, let high = halves[0], let low = halves[1] else { return nil }
        return Digest128(low: low, high: high)
    }
}
