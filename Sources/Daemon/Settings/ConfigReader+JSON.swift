import HTTPSemantics
import Mapping
import Yams

extension ConfigReader {
    /// A value written in YAML as JSON: what is plain and reads like a number, true, false or null is that, all else text.
    mutating func json(_ node: Node) -> [UInt8]? {
        switch node {
        case .scalar(let scalar):
            if node.isNothing { return Array("null".utf8) }
            let isPlain = scalar.style == .plain || scalar.style == .any
            if isPlain, scalar.string == "true" || scalar.string == "false" || JSONBody.isNumber(scalar.string) {
                return Array(scalar.string.utf8)
            }
            return text(node, wanted: "a value").map { JSONText.string($0).bytes }
        case .sequence(let sequence):
            var parts: [[UInt8]] = []
            for element in sequence {
                guard let part = json(element) else { return nil }
                parts.append(part)
            }
            return Array("[".utf8) + parts.joined(separator: Array(",".utf8)) + Array("]".utf8)
        case .mapping:
            guard let pairs = pairs(node, wanted: "members") else { return nil }
            var parts: [[UInt8]] = []
            for (name, _, value) in pairs {
                guard let part = json(value) else { return nil }
                parts.append(JSONText.string(name).bytes + Array(":".utf8) + part)
            }
            return Array("{".utf8) + parts.joined(separator: Array(",".utf8)) + Array("}".utf8)
        case .alias:
            misfit(node, wanted: "a value")
            return nil
        }
    }

    /// Several values as JSON; a single one counts as a list of one.
    mutating func jsonList(_ node: Node) -> [[UInt8]]? {
        list(node, wanted: "a list of values")?.compactMap { json($0) }
    }

    /// The keys of a mapping that may have only these; nil, and an error, where it is none or has others.
    mutating func mapping(_ node: Node, keys: [String], wanted: String) -> [String: Node]? {
        guard let pairs = pairs(node, wanted: wanted) else { return nil }
        var values: [String: Node] = [:]
        for (name, place, value) in pairs {
            guard keys.contains(name) else {
                unknown(name, at: place, among: keys)
                continue
            }
            values[name] = value
        }
        return values
    }
}
