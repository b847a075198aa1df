/// Converts each element of a list; elements that fail stay as they are.
struct ListConversion: Conversion {
    let element: any Conversion

    func forward(_ value: JSONSlice) -> ConversionResult { convert(value, element.forward) }

    func reverse(_ value: JSONSlice) -> ConversionResult { convert(value, element.reverse) }

    private func convert(_ value: JSONSlice, _ convert: (JSONSlice) -> ConversionResult) -> ConversionResult {
        if value.isNull { return .value(value.json) }
        guard value.kind == .array else { return .failed(reason: "a list is expected") }
        var parts = ConvertedParts(opening: "[")
        for (index, element) in value.elements.enumerated() {
            // A dropped element becomes null, so that the others keep their positions.
            parts.append(convert(element), in: element, pointer: "/\(index)", dropped: Array("null".utf8))
        }
        return parts.result(closing: "]")
    }
}

/// Converts the value of each member of an object.
struct DictionaryConversion: Conversion {
    let value: any Conversion

    func forward(_ value: JSONSlice) -> ConversionResult { convert(value, self.value.forward) }

    func reverse(_ value: JSONSlice) -> ConversionResult { convert(value, self.value.reverse) }

    private func convert(_ value: JSONSlice, _ convert: (JSONSlice) -> ConversionResult) -> ConversionResult {
        if value.isNull { return .value(value.json) }
        guard value.kind == .object else { return .failed(reason: "an object is expected") }
        var parts = ConvertedParts(opening: "{")
        for member in value.members {
            let name = value.text[member.nameRange] + [UInt8(ascii: ":")]
            parts.append(convert(member.value), in: member.value, pointer: "/" + member.name.text, before: name)
        }
        return parts.result(closing: "}")
    }
}

/// A list or an object under construction, from converted parts.
private struct ConvertedParts {
    private var output: [UInt8]
    private var faults: [ConversionFault] = []

    init(opening: Character) { output = [opening.asciiValue ?? 0] }

    /// Adds one part; writes `dropped` in place of a dropped part, or nothing if it is nil.
    mutating func append(
        _ result: ConversionResult,
        in original: JSONSlice,
        pointer: String,
        before: ArraySlice<UInt8> = [],
        dropped: [UInt8]? = nil
    ) {
        var json = result.json
        switch result {
        case .failed(let reason):
            faults.append(ConversionFault(pointer: pointer, reason: reason))
            json = original.json
        case .dropped: json = dropped
        case .value, .partial: break
        }
        faults += result.faults.map { ConversionFault(pointer: pointer + $0.pointer, reason: $0.reason) }
        guard let json else { return }
        output.appendComma()
        output += before
        output += json
    }

    func result(closing: Character) -> ConversionResult {
        let json = output + [closing.asciiValue ?? 0]
        return faults.isEmpty ? .value(json) : .partial(json, faults: faults)
    }
}

/// Applies conversions one after the other; the way back applies them in reverse order.
struct ChainConversion: Conversion {
    private let links: [any Conversion]

    init(_ links: [any Conversion]) throws(MappingError) {
        guard !links.isEmpty else { throw .invalidConversion("a chain has no conversion in it") }
        self.links = links
    }

    func forward(_ value: JSONSlice) -> ConversionResult { run(value, links) { $0.forward($1) } }

    func reverse(_ value: JSONSlice) -> ConversionResult { run(value, links.reversed()) { $0.reverse($1) } }

    private func run(
        _ value: JSONSlice,
        _ links: [any Conversion],
        _ convert: (any Conversion, JSONSlice) -> ConversionResult
    ) -> ConversionResult {
        var value = value
        var faults: [ConversionFault] = []
        for link in links {
            let result = convert(link, value)
            guard let json = result.json, let next = JSONSlice(json) else { return result }
            faults += result.faults
            value = next
        }
        return faults.isEmpty ? .value(value.json) : .partial(value.json, faults: faults)
    }
}

/// A conversion without a way back.
struct OneWayConversion: Conversion {
    let inner: any Conversion
    let back: ConversionDeclaration.Back

    func forward(_ value: JSONSlice) -> ConversionResult { inner.forward(value) }

    func reverse(_ value: JSONSlice) -> ConversionResult {
        switch back {
        case .drop: .dropped
        case .raw: .value(value.json)
        case .fail: .failed(reason: "the conversion has no way back")
        }
    }
}
