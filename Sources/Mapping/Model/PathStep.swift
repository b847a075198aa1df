/// One step of a key path: into a member, or to every element of an array.
enum PathStep: Hashable, Sendable {
    /// Into the member with this unescaped name.
    case name(String)
    /// To each element of the array (`tags[]`).
    case elements

    // Byte for byte: Swift's strings are equal when canonically equivalent, JSON's names are not.

    static func == (left: PathStep, right: PathStep) -> Bool {
        switch (left, right) {
        case (.name(let mine), .name(let theirs)): mine.utf8.elementsEqual(theirs.utf8)
        case (.elements, .elements): true
        default: false
        }
    }

    func hash(into hasher: inout Hasher) {
        guard case .name(var name) = self else { return hasher.combine(0 as UInt8) }
        name.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(0xFF as UInt8)
    }
}

extension [PathStep] {
    /// The member names; nil if the path crosses an array.
    var names: [String]? {
        var names: [String] = []
        for step in self {
            guard case .name(let name) = step else { return nil }
            names.append(name)
        }
        return names
    }
}

extension KeyPathSyntax {
    /// The steps of a path, `name[]` being two; nil for what is no key path.
    ///
    /// `\[` is a bracket within a name.
    static func steps(of path: String) -> [PathStep]? {
        guard foreign(path) == nil, let components = components(of: path) else { return nil }
        var steps: [PathStep] = []
        for component in components {
            var name = component[...]
            var arrays = 0
            while name.utf8.count >= 2, name.hasSuffix("[]"), !name.hasSuffix("\\[]"), arrays <= maximumLength {
                name = name.dropLast(2)
                arrays += 1
            }
            guard !name.isEmpty, steps.count + arrays < maximumLength else { return nil }
            steps.append(.name(String(name.replacing("\\[", with: "["))))
            steps += Array(repeating: .elements, count: arrays)
        }
        return steps
    }

    /// The path to the list whose elements a path ends at; nil if it ends elsewhere.
    static func list(ofElements path: String) -> String? {
        guard case .elements? = steps(of: path)?.last else { return nil }
        return String(path.dropLast(2))
    }
}
