import HTTPSemantics
import Mapping
import Proxy
import Settings

/// Which names mark a value as a secret, in requests and in responses.
///
/// For one thread at a time.
final class SecretNames {
    /// The direction of a message.
    enum Side { case request, response }

    private let principal: PrincipalFields
    /// The names of members that models declare `secret:`, without what precedes the last dot.
    let declared: Set<String>
    private var known: [[UInt8]: Bool] = [:]

    init(_ upstream: ProxiedUpstream) {
        principal = upstream.principal
        let paths = upstream.rules.settings.models.flatMap(\.secret)
        declared = Set(paths.compactMap { $0.split(separator: ".").last.map(String.init) })
    }

    /// Tokens of OAuth and OpenID Connect, in lower case and without separators (RFC 6749, 7521, 7591, 7636, 8628, 8693).
    private static let tokens: Set<String> = [
        "accesstoken", "refreshtoken", "idtoken", "idtokenhint", "devicecode", "codeverifier", "clientsecret",
        "clientassertion", "registrationaccesstoken", "subjecttoken", "actortoken", "oauthtokensecret",
    ]

    /// Parameters that come with an authorization code, and say that `code` is one.
    private static let companions: Set<String> = ["granttype", "redirecturi", "codeverifier", "clientsecret"]
    /// Companions that others use, too; then the value has to look like a code.
    private static let looseCompanions: Set<String> = ["state", "clientid", "sessionstate", "iss"]

    private static func plain(_ name: some Sequence<UInt8>) -> String {
        String(decoding: FieldSyntax.lowercased(name.filter { $0 != 0x5F && $0 != 0x2D }), as: UTF8.self)
    }

    /// Whether a member of JSON is a secret.
    ///
    /// - Parameter usesDeclared: Whether `secret:` counts by name, because the place in the body is not known.
    func isSecret(member name: [UInt8], _ side: Side, usesDeclared: Bool) -> Bool {
        if usesDeclared, !declared.isEmpty, declared.contains(String(decoding: name, as: UTF8.self)) { return true }
        let key = (side == .request ? [1] : [0]) + name
        if let known = known[key] { return known }
        let isSecret =
            Self.tokens.contains(Self.plain(name))
            || side == .request
                && principal.reason(forParameter: name).map { $0 == .configured || !Self.isFact(name) } ?? false
        if known.count > 4_096 { known.removeAll() }
        known[key] = isSecret
        return isSecret
    }

    /// Whether a parameter of a form is a secret, or one of a URL, where more names are parts of the principal.
    func isSecret(parameter name: [UInt8], isForm: Bool) -> Bool {
        isSecret(member: name, .request, usesDeclared: true) || !isForm && principal.reason(forParameter: name) != nil
    }

    /// Whether a name is that of a fact about a credential, such as `token_type`.
    private static func isFact(_ name: [UInt8]) -> Bool {
        let name = plain(name)
        return facts.contains { name.hasSuffix($0) }
    }

    private static let facts = [
        "type", "typehint", "expiresin", "expiresat", "expires", "expiry", "scope", "scopes", "method", "endpoint",
        "url",
        "uri", "count", "limit", "format", "algorithm", "version",
    ]

    /// Whether a name may be that of an authorization code; many others have it, too.
    static func isCode(_ name: some Sequence<UInt8>) -> Bool { plain(name) == "code" }

    /// Whether a name beside `code` says that it is an authorization code.
    static func isCompanion(_ name: some Sequence<UInt8>) -> Bool { companions.contains(plain(name)) }

    /// Whether a value of this name is an authorization code, by the names beside it.
    static func isCode(_ value: some Collection<UInt8>, beside names: [[UInt8]]) -> Bool {
        let names = names.map { plain($0) }
        if names.contains(where: companions.contains) { return true }
        return value.count >= KnownValues.shortest && value.contains(where: FieldSyntax.isDigit)
            && names.contains(where: looseCompanions.contains)
    }
}

/// The members and strings of JSON, found in any text: in one document or in many, in lines of other text, within a script.
///
/// For each string and each number it says whether it is the value of a member, or of an element of one.
struct JSONScan {
    /// A string or a number.
    struct Value {
        /// The name of the member, unescaped; nil for an element of a list, and for a string that is no value.
        var name: [UInt8]?
        /// The value as written; without the quotes of a string.
        var range: Range<Int>
        var isString: Bool
        /// The object that it is a member of.
        var object: Int
        /// Whether a container around it has a secret name: how its content is treated.
        var container: Container
    }

    enum Container { case plain, secretList, secretObject }

    /// The objects with a member that makes `code` an authorization code.
    private(set) var coded: Set<Int> = []
    private(set) var values: [Value] = []

    private var stack: [(object: Int, container: Container)] = [(0, .plain)]
    private var objects = 0

    /// - Parameters:
    ///   - isSecret: Whether a member of this name is a secret.
    ///   - isNeeded: Whether another string is to be listed, by its bytes as written.
    init(
        _ text: UnsafeBufferPointer<UInt8>,
        isSecret: ([UInt8]) -> Bool,
        isNeeded: (UnsafeBufferPointer<UInt8>.SubSequence) -> Bool
    ) {
        var place = 0
        while place < text.count {
            switch text[place] {
            case 0x7B, 0x5B:
                open(text[place], .plain)
                place += 1
            case 0x7D, 0x5D:
                if stack.count > 1 { stack.removeLast() }
                place += 1
            case 0x22:
                guard let end = Self.end(ofString: text, place) else {
                    place += 1
                    continue
                }
                let string = place + 1..<end - 1
                let colon = Self.skippingSpace(text, end)
                guard colon < text.count, text[colon] == 0x3A else {
                    add(text, string, isString: true, name: nil, isNeeded: isNeeded(text[string]))
                    place = end
                    continue
                }
                place = readMember(text, string, Self.skippingSpace(text, colon + 1), isSecret, isNeeded)
            case 0x2D, 0x30...0x39:
                let end = Self.end(ofWord: text, place)
                add(text, place..<end, isString: false, name: nil, isNeeded: false)
                place = max(end, place + 1)
            default: place += 1
            }
        }
    }

    /// Reads the value of a member; returns the place after it, or within it if it has members itself.
    private mutating func readMember(
        _ text: UnsafeBufferPointer<UInt8>,
        _ string: Range<Int>,
        _ place: Int,
        _ isSecret: ([UInt8]) -> Bool,
        _ isNeeded: (UnsafeBufferPointer<UInt8>.SubSequence) -> Bool
    ) -> Int {
        guard place < text.count else { return place }
        let name = Self.unescaped(text, string)
        let isNamed = isSecret(name)
        if SecretNames.isCompanion(name) { coded.insert(stack.last?.object ?? 0) }
        let isWanted = isNamed || SecretNames.isCode(name)
        switch text[place] {
        case 0x7B, 0x5B:
            open(text[place], isNamed ? text[place] == 0x7B ? .secretObject : .secretList : .plain)
            return place + 1
        case 0x22:
            guard let end = Self.end(ofString: text, place) else { return place + 1 }
            let range = place + 1..<end - 1
            add(text, range, isString: true, name: isWanted ? name : nil, isNeeded: isNeeded(text[range]))
            return end
        default:
            let end = Self.end(ofWord: text, place)
            let isNumber = end > place && (FieldSyntax.isDigit(text[place]) || text[place] == 0x2D)
            if isNumber { add(text, place..<end, isString: false, name: isWanted ? name : nil, isNeeded: false) }
            return end
        }
    }

    private mutating func open(_ byte: UInt8, _ container: Container) {
        // What is within a secret is secret.
        let outer = stack.last?.container ?? .plain
        let inner = container == .plain ? outer : container
        if byte == 0x7B { objects += 1 }
        // Deeper levels are all one.
        if stack.count < 512 {
            stack.append((objects, inner == .secretList && byte == 0x7B ? .secretObject : inner))
        }
    }

    private mutating func add(
        _ text: UnsafeBufferPointer<UInt8>,
        _ range: Range<Int>,
        isString: Bool,
        name: [UInt8]?,
        isNeeded: Bool
    ) {
        let (object, container) = stack.last ?? (0, .plain)
        guard !range.isEmpty, name != nil || isNeeded || container != .plain else { return }
        values.append(Value(name: name, range: range, isString: isString, object: object, container: container))
    }

    /// The place after the quote that ends a string; nil if the line ends first, because then it is none.
    private static func end(ofString text: UnsafeBufferPointer<UInt8>, _ start: Int) -> Int? {
        var place = start + 1
        while place < text.count {
            switch text[place] {
            case 0x22: return place + 1
            case 0x5C: place += 2
            case 0x0A: return nil
            default: place += 1
            }
        }
        return nil
    }

    private static func end(ofWord text: UnsafeBufferPointer<UInt8>, _ start: Int) -> Int {
        var place = start
        while place < text.count,
            FieldSyntax.isLetter(text[place]) || FieldSyntax.isDigit(text[place])
                || [0x2B, 0x2D, 0x2E].contains(text[place])
        { place += 1 }
        return place
    }

    private static func skippingSpace(_ text: UnsafeBufferPointer<UInt8>, _ start: Int) -> Int {
        var place = start
        while place < text.count, [0x20, 0x09, 0x0A, 0x0D].contains(text[place]) { place += 1 }
        return place
    }

    static func unescaped(_ text: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) -> [UInt8] {
        let part = UnsafeBufferPointer(rebasing: text[range])
        return UnescapedText(unescaping: part, .backslash)?.bytes ?? Array(part)
    }
}
