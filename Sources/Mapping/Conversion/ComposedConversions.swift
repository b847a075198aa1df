/// A conversion as it is declared, with everything that can be known before there is a value.
indirect enum CompiledConversion: Sendable {
    case single(Conversion)
    case list(CompiledConversion)
    case dictionary(CompiledConversion)
    case chain([CompiledConversion])
    case firstOf([CompiledConversion])
    case oneWay(CompiledConversion, back: ConversionDeclaration.Back)

    /// Compiles a declaration; below `one_way`, a value map needs no way back.
    init(_ declaration: ConversionDeclaration, isOneWay: Bool = false) throws(MappingError) {
        func all(_ declarations: [ConversionDeclaration]) throws(MappingError) -> [CompiledConversion] {
            guard !declarations.isEmpty else { throw .invalidConversion("a list of conversions has none in it") }
            return try declarations.map { (declaration) throws(MappingError) in
                try Self(declaration, isOneWay: isOneWay)
            }
        }
        switch declaration {
        case .named(let name):
            guard let conversion = Conversion.builtIn[name] else {
                throw .invalidConversion("there is no conversion \"\(name)\"")
            }
            self = .single(conversion)
        case .date(let form): self = .single(try form.conversion())
        case .number(let grouping, let decimal):
            self = .single(try .number(grouping: grouping, decimal: decimal))
        case .values(let pairs, let fallback, let back):
            self = .single(try .map(pairs, fallback: fallback, reverseFallback: back, isOneWay: isOneWay))
        case .arrayOf(let element): self = .list(try Self(element, isOneWay: isOneWay))
        case .dictionaryOf(let value): self = .dictionary(try Self(value, isOneWay: isOneWay))
        case .chain(let links): self = Self.sequence(try all(links))
        case .firstOf(let alternatives): self = .firstOf(try all(alternatives))
        case .oneWay(let inner, let back): self = .oneWay(try Self(inner, isOneWay: true), back: back)
        }
    }

    /// Conversions one after the other; each element of a list goes through all by itself, and fits all or stays.
    private static func sequence(_ links: [CompiledConversion]) -> CompiledConversion {
        let elements = links.compactMap { if case .list(let element) = $0 { element } else { nil } }
        if elements.count == links.count { return .list(sequence(elements)) }
        let members = links.compactMap { if case .dictionary(let member) = $0 { member } else { nil } }
        return members.count == links.count ? .dictionary(sequence(members)) : .chain(links)
    }

    /// Whether null is converted like any other value.
    fileprivate var convertsNull: Bool {
        switch self {
        case .single(let conversion): conversion.convertsNull
        case .list, .dictionary: false
        case .chain(let inner), .firstOf(let inner): inner.contains(where: \.convertsNull)
        case .oneWay(let inner, _): inner.convertsNull
        }
    }

    /// Whether it is declared what happens to every value on the way back.
    fileprivate var isOneWay: Bool {
        switch self {
        case .single, .list, .dictionary: false
        case .chain(let inner), .firstOf(let inner): inner.contains(where: \.isOneWay)
        case .oneWay: true
        }
    }
}

/// The conversion of one value in one direction.
struct ConversionRun {
    let isReverse: Bool
    /// On the way back, the pointers of parts that were not converted on the way there.
    var unconverted: Set<String> = []
    private(set) var faults: [ConversionFault] = []
    /// Why a part must not be written back.
    private(set) var refusal: String?

    /// Converts a value, or a part of one; nil if it is left out.
    mutating func convert(_ value: JSONSlice, _ conversion: CompiledConversion, at pointer: String = "") -> [UInt8]? {
        if unconverted.contains(pointer), !conversion.isOneWay {
            return keep(value, "it was not converted, so it is written back as it is", at: pointer)
        }
        if isReverse, case .oneWay(_, let back) = conversion {
            if back == .fail, !value.isNull { refusal = "the conversion has no way back" }
            return back == .drop ? nil : value.json
        }
        if value.isNull, !conversion.convertsNull { return value.json }
        switch conversion {
        case .single(let conversion): return single(value, conversion, at: pointer)
        case .list(let element): return list(value, element, at: pointer)
        case .dictionary(let member): return dictionary(value, member, at: pointer)
        case .chain(let links): return chain(value, isReverse ? links.reversed() : links, at: pointer)
        case .firstOf(let alternatives): return firstOf(value, alternatives, at: pointer)
        case .oneWay(let inner, _): return convert(value, inner, at: pointer)
        }
    }

    private mutating func keep(_ value: JSONSlice, _ reason: String, at pointer: String) -> [UInt8] {
        faults.append(ConversionFault(pointer: pointer, reason: reason, value: value.json, isKept: true))
        return value.json
    }

    private mutating func single(_ value: JSONSlice, _ conversion: Conversion, at pointer: String) -> [UInt8] {
        do throws(Misfit) {
            return isReverse ? try conversion.reverse(value) : try conversion.forward(value)
        } catch {
            guard let substitute = error.substitute else { return keep(value, error.reason, at: pointer) }
            faults.append(ConversionFault(pointer: pointer, reason: error.reason, value: value.json, isKept: false))
            return substitute
        }
    }

    private mutating func list(_ value: JSONSlice, _ conversion: CompiledConversion, at pointer: String) -> [UInt8] {
        guard value.kind == .array else { return keep(value, "a list is expected", at: pointer) }
        var output = [UInt8(ascii: "[")]
        for (index, element) in value.elements.enumerated() {
            output.appendComma()
            // An element that is left out becomes null, so that the others keep their positions.
            output += convert(element, conversion, at: "\(pointer)/\(index)") ?? Array("null".utf8)
        }
        return output + [UInt8(ascii: "]")]
    }

    private mutating func dictionary(_ value: JSONSlice, _ member: CompiledConversion, at pointer: String) -> [UInt8] {
        guard value.kind == .object else { return keep(value, "an object is expected", at: pointer) }
        var output = [UInt8(ascii: "{")]
        for entry in value.members {
            guard let json = convert(entry.value, member, at: "\(pointer)/\(entry.name.text)") else { continue }
            output.appendComma()
            output += value.text[entry.nameRange] + [UInt8(ascii: ":")] + json
        }
        return output + [UInt8(ascii: "}")]
    }

    /// Applies conversions one after the other; a value that does not fit all of them stays as it was before the first.
    private mutating func chain(_ value: JSONSlice, _ links: [CompiledConversion], at pointer: String) -> [UInt8]? {
        var result = value
        var inner = ConversionRun(isReverse: isReverse)
        for link in links {
            guard let json = inner.convert(result, link, at: pointer), let next = JSONSlice(json) else { return nil }
            if let misfit = inner.misfit { return keep(value, misfit.reason, at: pointer) }
            result = next
        }
        adopt(inner)
        return result.json
    }

    private mutating func firstOf(_ value: JSONSlice, _ choices: [CompiledConversion], at pointer: String) -> [UInt8]? {
        var reasons: [String] = []
        for choice in choices {
            var inner = ConversionRun(isReverse: isReverse)
            let json = inner.convert(value, choice, at: pointer)
            guard let misfit = inner.misfit else {
                adopt(inner)
                return json
            }
            reasons.append(misfit.reason)
        }
        return keep(value, reasons.joined(separator: ", or "), at: pointer)
    }

    /// The first part that stays as it is.
    private var misfit: ConversionFault? { faults.first(where: \.isKept) }

    private mutating func adopt(_ inner: ConversionRun) {
        refusal = refusal ?? inner.refusal
        faults += inner.faults
    }
}
