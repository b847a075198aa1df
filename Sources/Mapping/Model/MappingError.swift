/// A mistake in a configuration; `description` says to its author what is wrong and what to write instead.
public enum MappingError: Error, Sendable, Hashable, CustomStringConvertible {
    /// `kind` is "model" or "property".
    case invalidName(kind: String, name: String, model: String?)
    case duplicateModel(String, other: String)
    case duplicateProperty(String, other: String, model: String)
    case sameKeyPath(String, properties: [String], model: String)
    case unknownModel(String, property: String, model: String)
    case invalidKeyPath(String, usedBy: String, model: String?)
    /// An identity, key, `local` or `modified` within the bytes of another model.
    case crossesRelation(String, usedBy: String, property: String, model: String, other: String)
    case identityIsList(String, model: String)
    case namedTwice(String, usedBy: String, model: String)
    case circularCluster([String])
    case invalidMigration(Int, model: String, version: Int)
    case invalidPattern(String, reason: String)
    case invalidConversion(String)
    case invalidCheck(String)
    case unknownContext(String, property: String, model: String)
    /// Malformed JSON; `use` is "default" or the part of the config with the condition.
    case notJSON(String, property: String?, model: String)
    case writesIntoNothing(String, model: String)
    case sameOutput(String, properties: [String], model: String)
    case outputWithin(String, outer: String, properties: [String], model: String)
    case secretIdentity(String, usedBy: String, model: String)
    case versionWithinCluster(model: String, base: String)
    /// Declarations of one property that exclude each other, such as a merge policy and a type that it does not fit.
    case contradiction(String, property: String, model: String)
    /// Models that refer to each other in an endless circle; `use` says by which declarations.
    case circle([String], use: String)
    /// Two routes with the same pattern, method and status, and nothing else to distinguish them.
    case duplicateRoute(String, first: Int, second: Int)
    case unreachableRoute(String, reason: String)

    public var description: String {
        switch self {
        case .invalidName(let kind, let name, let model):
            "\(kind) name \"\(name)\"\(model.map { " of model \($0)" } ?? "") is not a letter followed by letters, digits and _"
        case .duplicateModel(let name, let other): "model \(name) is declared twice" + Self.remark(on: other, name)
        case .duplicateProperty(let name, let other, let model):
            "model \(model) declares property \(name) twice" + Self.remark(on: other, name)
        case .sameKeyPath(let path, let properties, let model):
            "model \(model) reads \"\(path)\" into \(properties.joined(separator: " and ")); one property is enough"
        case .unknownModel(let name, let property, let model):
            "model \(model), property \(property): there is no model \(name)"
        case .invalidKeyPath(let path, let use, let model):
            "\(model.map { "model \($0), " } ?? "")\(use): \"\(Self.shortened(path))\" is not a key path; "
                + (KeyPathSyntax.complaint(about: path)
                    ?? "it must not lead through a list, and must not begin with @")
        case .crossesRelation(let path, let use, let property, let model, let other):
            "model \(model), \(use): \"\(path)\" lies within \(property), whose bytes belong to model \(other); declare it there"
        case .identityIsList(let path, let model):
            "model \(model): identity \"\(path)\" is a list of objects; an identity is one string or number"
        case .namedTwice(let path, let use, let model): "model \(model), \(use): \"\(path)\" is named twice"
        case .circularCluster(let models) where models.count == 1:
            "model \(models[0]) is its own base or its own choice; name another, or none"
        case .circularCluster(let models):
            "models \(models.joined(separator: ", ")) are each other's base; one of them must have none"
        case .invalidMigration(let to, let model, let version):
            "model \(model): a migration to version \(to) does not belong between versions 0 and \(version); "
                + "migrations rise, and the model's version is that of the last"
        case .invalidPattern(let pattern, let reason): "path \"\(pattern)\": \(reason)"
        case .unknownContext(let text, let property, let model):
            "model \(model), property \(property): there is no \"\(text)\"; write @url, @url.NAME, @query.NAME, @header.NAME, @parent.PATH, @root.PATH, @index, @key or @self"
        case .notJSON(let use, let property, let model):
            "model \(model)\(property.map { ", property \($0)" } ?? ""): \(use) is not JSON"
        case .writesIntoNothing(let path, let model):
            "model \(model): \"\(path)\" must name a relation to one object, then a property of that object's model"
        case .sameOutput(let path, let properties, let model):
            "model \(model) writes \(properties.joined(separator: " and ")) back to \"\(path)\"; say \"to: none\" of those that are only read"
        case .outputWithin(let path, let outer, let properties, let model):
            "model \(model) writes \(properties[0]) back to \"\(path)\", which lies within \"\(outer)\", where \(properties[1]) is written; say \"to: none\" of one of them"
        case .secretIdentity(let path, let use, let model):
            "model \(model): \"\(path)\" is secret, but objects are stored by it; remove it from \"secret\" or from the \(use)"
        case .versionWithinCluster(let model, let base):
            "model \(model): its objects are \(base)'s and have \(base)'s version; declare \"version\" and \"migrations\" there"
        case .contradiction(let reason, let property, let model): "model \(model), property \(property): \(reason)"
        case .circle(let models, let use):
            "models \(models.joined(separator: ", ")) refer to each other in a circle by \(use)"
        case .invalidConversion(let reason), .invalidCheck(let reason): reason
        case .duplicateRoute(let path, let first, let second):
            "routes \(first + 1) and \(second + 1) both match \"\(path)\" with the same method and status"
        case .unreachableRoute(let path, let reason): "no request falls under \"\(path)\": \(reason)"
        }
    }

    private static func remark(on other: String, _ name: String) -> String {
        name == other ? "" : " (names that differ only in case, \(other), are the same name)"
    }

    private static func shortened(_ path: String) -> String { path.utf8.count > 200 ? path.prefix(100) + "…" : path }
}
