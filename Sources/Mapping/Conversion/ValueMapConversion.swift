/// A declared map from values to values, for enumerations (strings) and for arbitrary JSON values.
struct ValueMapConversion: Conversion {
    private let pairs: [(wire: JSONSlice, mapped: JSONSlice)]
    private let fallback: [UInt8]?
    private let reverseFallback: [UInt8]?

    init(_ cases: [ConversionDeclaration.Case], fallback: String?, reverseFallback: String?) throws(MappingError) {
        func json(_ text: String) -> [UInt8] {
            var json: [UInt8] = []
            JSONString.append(text, to: &json)
            return json
        }
        try self.init(
            cases.map { ConversionDeclaration.Pair(wire: json($0.wire), mapped: json($0.mapped)) },
            fallback: fallback.map(json),
            reverseFallback: reverseFallback.map(json)
        )
    }

    init(
        _ declared: [ConversionDeclaration.Pair],
        fallback: [UInt8]?,
        reverseFallback: [UInt8]?
    ) throws(MappingError) {
        guard !declared.isEmpty else { throw .invalidConversion("a map of values has no entry") }
        var pairs: [(wire: JSONSlice, mapped: JSONSlice)] = []
        for pair in declared {
            let (wire, mapped) = (try Self.slice(pair.wire), try Self.slice(pair.mapped))
            if pairs.contains(where: { $0.wire.isEqual(to: wire) }) {
                throw .invalidConversion("\(Self.text(wire)) is mapped twice")
            }
            if let other = pairs.first(where: { $0.mapped.isEqual(to: mapped) }) {
                throw .invalidConversion(
                    "\(Self.text(other.wire)) and \(Self.text(wire)) are both mapped to \(Self.text(mapped)), "
                        + "so that there is no way back; give each its own, or use \"default\" for one of them"
                )
            }
            pairs.append((wire, mapped))
        }
        self.pairs = pairs
        self.fallback = try fallback.map { (json) throws(MappingError) in try Self.slice(json).json }
        self.reverseFallback = try reverseFallback.map { (json) throws(MappingError) in try Self.slice(json).json }
    }

    private static func slice(_ json: [UInt8]) throws(MappingError) -> JSONSlice {
        guard !JSONBody.isMalformed(json), let slice = JSONSlice(json) else {
            throw .invalidConversion("\"\(String(decoding: json, as: UTF8.self))\" is not JSON")
        }
        return slice
    }

    private static func text(_ value: JSONSlice) -> String { String(decoding: value.bytes, as: UTF8.self) }

    func forward(_ value: JSONSlice) -> ConversionResult {
        if let pair = pairs.first(where: { $0.wire.isEqual(to: value) }) { return .value(pair.mapped.json) }
        return unknown(value, fallback, known: pairs.map(\.wire))
    }

    func reverse(_ value: JSONSlice) -> ConversionResult {
        if let pair = pairs.first(where: { $0.mapped.isEqual(to: value) }) { return .value(pair.wire.json) }
        return unknown(value, reverseFallback, known: pairs.map(\.mapped))
    }

    /// The result for a value without an entry.
    ///
    /// It is always a fault: the upstream has begun to send something new, and the user should know.
    private func unknown(_ value: JSONSlice, _ fallback: [UInt8]?, known: [JSONSlice]) -> ConversionResult {
        if value.isNull { return .value(value.json) }
        let shown = known.prefix(8).map(Self.text).joined(separator: ", ") + (known.count > 8 ? ", …" : "")
        let reason = "one of \(shown) is expected"
        guard let fallback else { return .failed(reason: reason) }
        let shownInstead = String(decoding: fallback.prefix(80), as: UTF8.self)
        let fault = ConversionFault(pointer: "", reason: "\(reason); the default \(shownInstead) is shown instead")
        return .partial(fallback, faults: [fault])
    }
}
