package import HTTPSemantics
import RawStructuredFieldValues

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

    /// Reads all lines of `Cache-Control`.
    package init(lines: [[UInt8]]) {
        var isInDoubt = false
        for line in lines {
            line.withUnsafeBytes { bytes in
                var reader = DirectiveReader(bytes, isInDoubt: isInDoubt)
                while let directive = reader.next() {
                    apply(directive)
                }
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
        apply(FieldSyntax.lowercased(directive.name), argument)
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
    mutating func apply(_ name: [UInt8], _ argument: Argument) {
        switch String(decoding: name, as: UTF8.self) {
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

    private static func stricter(_ known: Int64?, _ new: Int64) -> Int64 {
        min(known ?? new, new)
    }

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
        for name in names.map({ FieldSyntax.lowercased($0) }) where !fields.contains(name) {
            fields.append(name)
        }
    }
}

/// Response directives from fields that address certain caches, such as `CDN-Cache-Control` (RFC 9213).
package enum TargetedDirectives {
    /// The directives of the first field of the target list that is present, not empty, and well formed.
    ///
    /// Such a field replaces `Cache-Control`, `Expires` and `Pragma` altogether (RFC 9213 §2.2).
    /// - Parameter targets: Field names, the most specific first.
    /// - Returns: The directives with the name of their field; nil if there is no such field.
    package static func find(in fields: Fields, targets: [String]) -> (field: String, directives: ResponseDirectives)? {
        for target in targets {
            let lines = fields.lines.filter { $0.isNamed(target.lowercased()) }
            guard !lines.isEmpty, let directives = parse(lines.map(\.value)) else { continue }
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
        let value = Array(lines.joined(separator: [0x2C, 0x20]))
        var parser = StructuredFieldValueParser(value)
        guard let members = try? parser.parseDictionaryFieldValue(), !members.isEmpty else { return nil }
        var directives = ResponseDirectives()
        for (name, member) in members {
            // Parameters of a directive are ignored. No directive has an inner list as its value.
            guard case .item(let item) = member else {
                directives.apply(Array(name.utf8), .unreadable)
                continue
            }
            switch item.rfc9651BareItem {
            case .bool(true): directives.apply(Array(name.utf8), .none)
            // `no-store=?0` states explicitly that the directive does not apply.
            case .bool(false):
                if ResponseDirectives.numeric.contains(name) { directives.apply(Array(name.utf8), .unreadable) }
            case .integer(let number) where number >= 0:
                directives.apply(Array(name.utf8), .seconds(min(number, DeltaSeconds.maximum)))
            case .string(let text): directives.apply(Array(name.utf8), .text(Array(text.utf8)))
            case .token(let text): directives.apply(Array(name.utf8), .text(Array(text.utf8)))
            default: directives.apply(Array(name.utf8), .unreadable)
            }
        }
        return directives
    }
}
