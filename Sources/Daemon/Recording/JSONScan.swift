import HTTPSemantics

/// The members and strings of JSON, found in any text: in one document or in many, in lines of other text, within a script.
///
/// For each string and each number it says whether it is the value of a member, or of an element of one.
struct JSONScan {
    /// A string or a number.
    struct Value {
        /// The name that says what it is, unescaped; nil if it does not matter, and for a string that is no value.
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

    private let text: UnsafeBufferPointer<UInt8>
    private let meaning: ([UInt8]) -> SecretNames.Meaning
    private(set) var values: [Value] = []
    /// What the names of an object's members say together, if anything.
    private var companies: [Int: Company] = [:]

    private var stack = [Frame(object: 0, container: .plain, isList: false)]
    private var objects = 0
    /// The names that objects such as `{"path":"/password","value":…}` say, and the values that are theirs.
    private var saidNames: [Int: [UInt8]] = [:]
    private var namedValues: [Int] = []

    private struct Frame {
        let object: Int
        var container: Container
        let isList: Bool
        /// Whether it is the list of the values that its object names.
        var isOfName = false
        /// The number of its elements so far.
        var count = 0
        /// The name that a pair begins with, as in `["password","…"]`, and the value that follows it.
        var pairName: [UInt8]?
        var pairValue: Int?
    }

    /// - Parameters:
    ///   - text: Valid for as long as the scan is used.
    ///   - meaning: What the name of a member says.
    init(_ text: UnsafeBufferPointer<UInt8>, meaning: @escaping ([UInt8]) -> SecretNames.Meaning) {
        (self.text, self.meaning) = (text, meaning)
        var place = 0
        while place < text.count {
            switch text[place] {
            case 0x7B, 0x5B:
                open(text[place], .plain)
                place += 1
            case 0x7D, 0x5D:
                close()
                place += 1
            case 0x22: place = readString(place)
            case 0x2D, 0x30...0x39:
                let end = end(ofWord: place)
                addElement(place..<end, isString: false)
                place = max(end, place + 1)
            default: place += 1
            }
        }
        for index in namedValues { values[index].name = values[index].name ?? saidNames[values[index].object] }
    }

    /// What the members beside a value say.
    func company(of value: Value) -> Company { companies[value.object] ?? [] }

    /// Reads an element, or a member with its value; returns the place after it, as far as it is read.
    private mutating func readString(_ place: Int) -> Int {
        guard let end = end(ofString: place) else { return place + 1 }
        let (string, colon) = (place + 1..<end - 1, skippingSpace(end))
        if colon < text.count, text[colon] == 0x3A { return readMember(string, skippingSpace(colon + 1)) }
        addElement(string, isString: true)
        return end
    }

    /// Reads the value of a member; returns the place after it, or within it if it has members itself.
    private mutating func readMember(_ string: Range<Int>, _ place: Int) -> Int {
        guard place < text.count else { return place }
        let name = unescaped(string)
        let own = meaning(name)
        let object = stack[stack.count - 1].object
        if !own.company.isEmpty { companies[object, default: []].formUnion(own.company) }
        let isOfName = own.part == .value
        switch text[place] {
        case 0x7B, 0x5B:
            let isSecret = own.isSecret || isOfName && saidNames[object].map { meaning($0).isSecret } == true
            open(text[place], isSecret ? text[place] == 0x7B ? .secretObject : .secretList : .plain, isOfName: isOfName)
            return place + 1
        case 0x22:
            guard let end = end(ofString: place) else { return place + 1 }
            let range = place + 1..<end - 1
            if own.part == .name, let said = Self.lastName(in: unescaped(range)), meaning(said).matters {
                saidNames[object] = said
            }
            add(range, isString: true, name: own.matters ? name : nil, isOfName: isOfName)
            return end
        default:
            let end = end(ofWord: place)
            let isNumber = end > place && (FieldSyntax.isDigit(text[place]) || text[place] == 0x2D)
            if isNumber { add(place..<end, isString: false, name: own.matters ? name : nil, isOfName: isOfName) }
            return end
        }
    }

    /// The last name in a path such as `/user/password` or `user.tokens.0`; nil if there is none.
    private static func lastName(in path: [UInt8]) -> [UInt8]? {
        guard path.count <= 256 else { return nil }
        let names = path.split { $0 == 0x2F || $0 == 0x2E }
        return names.last { !$0.allSatisfy(FieldSyntax.isDigit) && !$0.elementsEqual([0x2D]) }.map { Array($0) }
    }

    private mutating func open(_ byte: UInt8, _ container: Container, isOfName: Bool = false) {
        // What is within a secret is secret.
        let (frame, isList) = (stack[stack.count - 1], byte == 0x5B)
        let inner = container == .plain ? frame.container : container
        stack[stack.count - 1].count += 1
        if !isList { objects += 1 }
        // Deeper levels are all one.
        guard stack.count < 512 else { return }
        var next = Frame(object: isList ? frame.object : objects, container: inner, isList: isList)
        if inner == .secretList, !isList { next.container = .secretObject }
        next.isOfName = isList && (isOfName || frame.isOfName)
        stack.append(next)
    }

    private mutating func close() {
        guard stack.count > 1 else { return }
        let frame = stack.removeLast()
        // A longer list beginning with such a name is a list of names.
        if let value = frame.pairValue, frame.count != 2 { values[value].name = nil }
    }

    private mutating func addElement(_ range: Range<Int>, isString: Bool) {
        let frame = stack[stack.count - 1]
        stack[stack.count - 1].count += 1
        let isInPair = frame.isList && stack.count > 1 && stack[stack.count - 2].isList
        if isInPair, isString, frame.count == 0 {
            let name = unescaped(range)
            if meaning(name).matters { stack[stack.count - 1].pairName = name }
        }
        let name = frame.count == 1 ? frame.pairName : nil
        add(range, isString: isString, name: name, isOfName: frame.isOfName)
        if name != nil, values.last?.range == range { stack[stack.count - 1].pairValue = values.count - 1 }
    }

    private mutating func add(_ range: Range<Int>, isString: Bool, name: [UInt8]?, isOfName: Bool) {
        let frame = stack[stack.count - 1]
        let isNeeded = isString && TextForm.mayContainSecrets(text[range])
        guard !range.isEmpty, name != nil || isOfName || isNeeded || frame.container != .plain else { return }
        if isOfName { namedValues.append(values.count) }
        let (object, container) = (frame.object, frame.container)
        values.append(Value(name: name, range: range, isString: isString, object: object, container: container))
    }

    /// The place after the quote that ends a string; nil if the line ends first, so that it is no string.
    private func end(ofString start: Int) -> Int? {
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

    private func end(ofWord start: Int) -> Int {
        var place = start
        while place < text.count,
            FieldSyntax.isLetter(text[place]) || FieldSyntax.isDigit(text[place])
                || [0x2B, 0x2D, 0x2E].contains(text[place])
        { place += 1 }
        return place
    }

    private func skippingSpace(_ start: Int) -> Int {
        var place = start
        while place < text.count, [0x20, 0x09, 0x0A, 0x0D].contains(text[place]) {
            place += 1
            // An event may have its data in several lines.
            let isLine = text[place - 1] == 0x0A || text[place - 1] == 0x0D
            if isLine, text[place...].starts(with: "data:".utf8) { place += 5 }
        }
        return place
    }

    func unescaped(_ range: Range<Int>) -> [UInt8] {
        let part = UnsafeBufferPointer(rebasing: text[range])
        return UnescapedText(unescaping: part, .backslash)?.bytes ?? Array(part)
    }
}
