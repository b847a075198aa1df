/// Maps bodies and objects to the form of their models, and back to the upstream's JSON.
///
/// It is pure. Mapping never fails: parts that do not fit give warnings. A rule without an envelope model and further
/// objects is shown as its content alone. Otherwise the mapped view is an object with the envelope's properties and
/// each content. A content has the last name of its `root`, or the whole `root` if two end in the same name.
public struct DocumentMapper: Sendable {
    private let models: Models

    /// A mapper by these models.
    public init(models: Models) { self.models = models }

    /// Maps one body of the upstream by a route's rule.
    ///
    /// - Parameters:
    ///   - members: the requested properties of the content's objects, such as `user.login` for one of a related
    ///     object. Nil requests all. The identity is always shown.
    ///   - known: the JSON of objects that the body names by their identities or keys. They are inserted in place of
    ///     these and count as synthetic. Bare identities within them stay.
    public func map(
        _ body: [UInt8],
        as rule: BodyRule,
        in context: MappingContext = .none,
        members: [String]? = nil,
        known: [BoundObject: [UInt8]] = [:]
    ) -> MappedBody {
        do throws(MappingWarning) {
            var run = MapRun(models, body: try Self.index(body), context: context, known: known)
            let fits = run.body(try BodyPlan(rule, models), mask: MemberMask(members))
            return fits ? MappedBody(run) : MappedBody(unmapped: body, run.warnings)
        } catch {
            return MappedBody(unmapped: body, [error])
        }
    }

    /// Maps one object of a model, or of a cluster by its base.
    ///
    /// - Parameters:
    ///   - payload: the object's JSON. References in it are shown as bare identities; only key paths follow them.
    ///   - identity: its identity, which it does not contain if it is identified by its name (`@key`).
    ///   - members: the requested properties. Nil requests all.
    ///   - resolve: returns the payload of an object by its name.
    public func mapObject(
        _ payload: [UInt8],
        model: String,
        identity: String? = nil,
        members: [String]? = nil,
        resolve: (ObjectName) -> [UInt8]? = { _ in nil }
    ) -> MappedBody {
        do throws(MappingWarning) {
            let index = try Self.index(payload)
            guard let model = models.index(of: model) else { throw .unknownModel(model) }
            guard index.kind(0) == .object else {
                throw MappingWarning(.notAnObject, pointer: "", model: models.declarations[model].name)
            }
            return withoutActuallyEscaping(resolve) { resolve in
                var run = MapRun(models, body: index)
                run.resolve = resolve
                let key = models.compiled[model].isIdentifiedByKey ? identity : nil
                let standing = Standing(key: key.flatMap { MappedValue(JSONString.literal($0), of: nil) })
                run.object(run.body, as: model, standing: standing, mask: MemberMask(members))
                return MappedBody(run)
            }
        } catch {
            return MappedBody(unmapped: payload, [error])
        }
    }

    private static func index(_ body: [UInt8]) throws(MappingWarning) -> JSONIndex {
        guard body.isUTF8 else { throw .notUTF8 }
        do throws(JSONIndex.Failure) {
            return try JSONIndex(body)
        } catch .tooDeep {
            throw MappingWarning(.tooDeep)
        } catch {
            let cause = body.starts(with: [0xEF, 0xBB, 0xBF]) ? ": it begins with a byte order mark" : ""
            throw MappingWarning(.notJSON, "The body is not JSON\(cause).")
        }
    }

    /// The requested members that no object of the models shows, such as a misspelled `user.login`.
    public func unknownMembers(among members: [String], of models: [String]) -> [String] {
        let indexes = models.compactMap(self.models.index)
        return members.filter { !isKnown($0.split(separator: ".", omittingEmptySubsequences: false)[...], in: indexes) }
    }

    private func isKnown(_ path: ArraySlice<Substring>, in indexes: [Int]) -> Bool {
        guard let name = path.first else { return true }
        // The models and all concrete models of their clusters.
        let family = reachable(from: indexes) { models.compiled[$0].reading.choices.map(\.shown) }
        return family.lazy.flatMap { models.compiled[$0].properties }.contains { property in
            guard property.completes.isEmpty, property.name.utf8.elementsEqual(name.utf8) else { return false }
            return path.count == 1 || property.relation.map { isKnown(path.dropFirst(), in: [$0.model]) } ?? false
        }
    }

    /// Writes a mapped body back as the upstream's JSON.
    ///
    /// A value that its conversion does not accept is written as it is, with a warning. Null is written only where the
    /// mapped body has it. Synthetic values are written only if they were changed or are named in `members`. Inserted
    /// objects become bare identities again. Members that are not properties are left out with a warning.
    ///
    /// - Parameters:
    ///   - body: the mapped view of a body, as returned by `map` for the same rule.
    ///   - context: the surroundings of the body, which its values must not contradict; nil if they are unknown.
    ///   - members: the properties of the content's objects to write. Nil writes all.
    ///   - synthetic: the pointers returned by `map`. If nil, every value equal to its default counts as synthetic,
    ///     with a warning.
    ///   - unconverted: the pointers returned by `map`; the values there are written as they are.
    /// - Returns: the upstream's JSON, and warnings about values without a way back, with pointers into `body`.
    public func unmap(
        _ body: [UInt8],
        as rule: BodyRule,
        in context: MappingContext? = nil,
        members: [String]? = nil,
        synthetic: [String]? = nil,
        unconverted: [String] = []
    ) throws(UnmapError) -> (body: [UInt8], warnings: [MappingWarning]) {
        var run: UnmapRun
        do throws(MappingWarning) {
            let (plan, index) = (try BodyPlan(rule, models), try Self.index(body))
            run = UnmapRun(models, mapped: index, context: context, synthetic: synthetic, unconverted: unconverted)
            run.body(plan, mask: MemberMask(members))
        } catch {
            throw UnmapError(reason: error.message, model: error.model)
        }
        if let refusal = run.refusal { throw refusal }
        return (run.builder.json(), run.warnings)
    }
}

/// A body after the mapping, with its objects and warnings.
public struct MappedBody: Sendable, Equatable {
    /// The mapped JSON, or the original body.
    public var body: [UInt8]
    /// False if the body does not match its rule.
    public var isMapped: Bool
    /// The parts that did not fit; the pointers refer to the original body.
    public var warnings: [MappingWarning]
    /// Pointers into the mapped JSON, to values that come from the models' defaults and to objects inserted in place of
    /// bare identities.
    public var synthetic: [String] = []
    /// Pointers into the mapped JSON, to values that stay as they are because their conversions do not accept them.
    public var unconverted: [String] = []
    /// The objects that the body names by their identities or keys, up to a limit.
    public var named: Set<BoundObject> = []

    init(unmapped body: [UInt8], _ warnings: [MappingWarning]) {
        // An empty body is normal (204, HEAD).
        (self.body, self.warnings, isMapped) = (body, body.contains { $0 > 0x20 } ? warnings : [], false)
    }

    init(_ run: MapRun) {
        (body, warnings, named, isMapped) = (run.output, run.warnings, run.named, true)
        synthetic = run.notes.filter { $0.kind == .synthetic }.map(\.pointer)
        unconverted = run.notes.filter { $0.kind == .unconverted }.map(\.pointer)
    }
}

extension MappingWarning: Error {
    static func unknownModel(_ name: String) -> MappingWarning {
        MappingWarning(.unknownModel, "The route names a model that is not declared.", model: name)
    }

    /// JSON is UTF-8 (RFC 8259 §8.1), whatever charset the response names.
    static var notUTF8: MappingWarning {
        MappingWarning(.notJSON, "The body is not UTF-8, as JSON must be. It is passed on as it is.")
    }
}

/// Why a mapped body cannot be written back.
public struct UnmapError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What was expected; it never quotes the value.
    var reason: String
    /// The JSON pointer to the value in the mapped body.
    public var pointer: String?
    public var property: String?
    public var model: String?
    /// The mapped value without a way back, as JSON; it is not part of the description.
    var value: [UInt8]?

    public var description: String {
        let place = pointer.map { $0.isEmpty ? "the whole" : $0 }
        let parts = [place, property.map { "property \($0)" }, model.map { "model \($0)" }, reason]
        return parts.compactMap(\.self).joined(separator: ": ")
    }
}
