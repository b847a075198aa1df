import HTTPSemantics
import Mapping

/// A difference between two configs: what a reload changes.
///
/// Each key says how its values are compared (`ConfigKey.compare`). The comparison gets the former section and the new one. If
/// only a restart changes a value, the new section keeps the former one, which is in force until then.
package struct ConfigChange: Sendable, Equatable {
    package enum Kind: String, Sendable {
        case added, removed, changed
    }

    /// The key, such as `upstreams.github.url`; a route is named by its path, a model by its name.
    package var key: String
    package var kind = Kind.changed
    /// The values as they would be written; nil where there is none, where it is secret, and where it is more than one value.
    package var former: String?
    package var new: String?
    /// Whether it takes effect at the next restart only.
    package var needsRestart = false

    func under(_ name: String) -> ConfigChange {
        var change = self
        change.key = key.isEmpty ? name : "\(name).\(key)"
        return change
    }

    /// Compares single values.
    static func comparison<Section, Value: Equatable & SendableMetatype>(
        of path: any WritableKeyPath<Section, Value> & Sendable,
        _ kind: ConfigKind
    ) -> ConfigComparison<Section> {
        { former, new in
            let (old, value) = (former[keyPath: path], new[keyPath: path])
            return old == value ? [] : [ConfigChange(key: "", former: text(old, kind), new: text(value, kind))]
        }
    }

    /// Compares values that are not shown.
    static func comparison<Section, Value: Equatable & SendableMetatype>(
        ofHidden path: any WritableKeyPath<Section, Value> & Sendable
    ) -> ConfigComparison<Section> {
        { former, new in former[keyPath: path] == new[keyPath: path] ? [] : [ConfigChange(key: "")] }
    }

    /// Compares sections key by key.
    static func comparison<Section, Inner: SendableMetatype>(
        of path: any WritableKeyPath<Section, Inner> & Sendable,
        by keys: [ConfigKey<Inner>]
    ) -> ConfigComparison<Section> { { changes(of: keys, $0[keyPath: path], &$1[keyPath: path]) } }

    /// Compares lists whose elements have names.
    static func comparison<Section, Element: Equatable & SendableMetatype>(
        of path: any KeyPath<Section, [Element]> & Sendable,
        named name: @escaping @Sendable (Element) -> String
    ) -> ConfigComparison<Section> {
        { former, new in
            let old = Dictionary(grouping: former[keyPath: path], by: name)
            let now = Dictionary(grouping: new[keyPath: path], by: name)
            return Set(old.keys).union(now.keys).sorted().compactMap { name in
                guard old[name] != now[name] else { return nil }
                return ConfigChange(key: name, kind: old[name] == nil ? .added : now[name] == nil ? .removed : .changed)
            }
        }
    }

    static func changes<Section>(of keys: [ConfigKey<Section>], _ former: Section, _ new: inout Section) -> [Self] {
        keys.flatMap { key in key.compare(former, &new).map { $0.under(key.facts.name) } }
    }

    /// A value as it would be written.
    private static func text(_ value: some Any, _ kind: ConfigKind) -> String? {
        switch (value as Any, kind) {
        case (let value as Bool, .choice(let words)): words[value ? 1 : 0]
        case (let value as Int, .size): Units.text(size: value)
        case (let value as Duration, _): Units.text(value)
        case (let value as String, _): value.isEmpty ? nil : ConfigText.scalar(value)
        case (let value as [String], _): ConfigText.list(value)
        case (let value as [Address], _): ConfigText.list(value.map(\.description))
        case (let value as any RawRepresentable<String>, _): value.rawValue
        case (let value as any CustomStringConvertible, _): value.description
        default: nil
        }
    }
}

/// Compares two sections of a config in one key.
typealias ConfigComparison<Section> = @Sendable (_ former: Section, _ new: inout Section) -> [ConfigChange]

extension ConfigKey {
    /// The same key, whose value is read when Larder starts.
    func readAtStart<Value: SendableMetatype>(_ path: Path<Value>) -> ConfigKey {
        var key = self
        key.facts.needsRestart = true
        let compare = compare
        key.compare = { former, new in
            var changes = compare(former, &new)
            new[keyPath: path] = former[keyPath: path]
            for index in changes.indices { changes[index].needsRestart = true }
            return changes
        }
        return key
    }
}

extension Configuration {
    /// What differs from a former configuration, in the order of the keys.
    ///
    /// - Returns: the changes, and the configuration that a reload puts in force.
    package func changes(since former: Configuration) -> (changes: [ConfigChange], inForce: Configuration) {
        var draft = ConfigDraft(settings: self)
        var changes = ConfigChange.changes(of: ConfigDraft.keys, ConfigDraft(settings: former), &draft)
        // Nothing but their order differs.
        if changes.isEmpty, draft.settings != former { changes = [ConfigChange(key: "upstreams")] }
        return (changes, draft.settings)
    }
}

extension [Configuration.Upstream] {
    /// Compares the upstreams of two configs, which are known by their names.
    static func changes(_ former: Self, _ new: inout Self) -> [ConfigChange] {
        let known = Dictionary(former.map { ($0.name, $0) }) { first, _ in first }
        let names = Set(new.map(\.name))
        var changes = former.filter { !names.contains($0.name) }.map { ConfigChange(key: $0.name, kind: .removed) }
        for index in new.indices {
            let name = new[index].name
            guard let old = known[name] else {
                changes.append(ConfigChange(key: name, kind: .added))
                continue
            }
            guard old != new[index] else { continue }
            var draft = UpstreamDraft(settings: new[index])
            let found = ConfigChange.changes(of: UpstreamDraft.keys, UpstreamDraft(settings: old), &draft)
            changes += (found.isEmpty ? [ConfigChange(key: "")] : found).map { $0.under(name) }
        }
        return changes
    }
}

extension Configuration.Route {
    /// What it is for, such as `POST orders/{id}` or `search?q 404`.
    var label: String {
        let rule = declaration
        let query = rule.query.sorted { $0.key < $1.key }
            .map { name, value in value.map { "\(name)=\($0)" } ?? name }.joined(separator: "&")
        let path = query.isEmpty ? rule.path : "\(rule.path)?\(query)"
        let status: String? =
            switch rule.status {
            case .class(2): nil
            case .class(let digit): "\(digit)xx"
            case .exact(let status): "\(status)"
            case .any: "any status"
            }
        return [rule.method, path, status, rule.contentType].compactMap(\.self).joined(separator: " ")
    }
}
