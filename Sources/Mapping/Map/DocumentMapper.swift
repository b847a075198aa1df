/// Shows bodies and objects as their models have them, and writes what is so shown as the upstream's JSON again.
///
/// Pure and without failure on the way in: what does not fit is told in warnings. A rule without an envelope's model and
/// without further objects is shown as its content alone, what the envelope's `root` leads to; else as an object of the
/// envelope's properties and of each content under the last name of its `root`, or under all of it where two end in one.
public struct DocumentMapper: Sendable {
    let plan: MappingPlan
    private let strictModels: Set<String>

    /// A mapper for the models of one upstream.
    public init(models: Models) {
        plan = models.plan
        strictModels = Set(models.declarations.lazy.filter(\.distinguishesTypes).map { models.objectName(of: $0.name) })
    }

    /// The mapped view of one body.
    ///
    /// - Parameters:
    ///   - body: as the upstream has it.
    ///   - rule: what the route says of it.
    ///   - context: what surrounds the body.
    ///   - members: the properties of the content's objects that are asked for, `user.login` for one of a related object;
    ///     nil: all. The identity is always shown.
    ///   - known: what is known of objects that the body names by their bare identities: they are shown in the place of
    ///     these, which are synthetic then. Bare identities within them stay.
    public func map(
        _ body: [UInt8],
        as rule: BodyRule,
        in context: MappingContext = .none,
        members: [String]? = nil,
        known: [ObjectName: [UInt8]] = [:]
    ) -> MappedBody {
        let index: JSONIndex
        do throws(JSONIndex.Failure) {
            index = try JSONIndex(body)
        } catch {
            return MappedBody(unmapped: body, [Self.warning(error, body)].compactMap(\.self))
        }
        let shape: BodyShape
        do throws(MappingWarning) {
            shape = try BodyShape(rule, plan)
        } catch {
            return MappedBody(unmapped: body, [error])
        }
        var run = MapRun(plan, body: index, context: context, known: known)
        guard run.body(shape, mask: MemberMask(members)) else { return MappedBody(unmapped: body, run.warnings) }
        return MappedBody(run)
    }

    /// The mapped view of one object.
    ///
    /// - Parameters:
    ///   - payload: the object's JSON; references in it are shown as bare identities, or as objects where `resolve` knows
    ///     their payloads. An object within itself is cut to its identity.
    ///   - model: the name of its model, or of its cluster's base.
    ///   - context: what surrounded it.
    ///   - members: the properties that are asked for; nil: all.
    ///   - expandsRelations: whether related objects are shown whole where `resolve` knows them; else by their bare
    ///     identities, and only key paths lead through references.
    ///   - resolve: the payload of an object by its name.
    public func mapObject(
        _ payload: [UInt8],
        model: String,
        in context: MappingContext = .none,
        members: [String]? = nil,
        expandsRelations: Bool = true,
        resolve: (ObjectName) -> [UInt8]? = { _ in nil }
    ) -> MappedBody {
        let index: JSONIndex
        do throws(JSONIndex.Failure) {
            index = try JSONIndex(payload)
        } catch {
            return MappedBody(unmapped: payload, [Self.warning(error, payload)].compactMap(\.self))
        }
        guard let model = plan.index(of: model) else {
            return MappedBody(unmapped: payload, [.unknownModel(model)])
        }
        guard index.kind(0) == .object else {
            return MappedBody(unmapped: payload, [.noObject(plan.models[model].name)])
        }
        return withoutActuallyEscaping(resolve) { resolve in
            var run = MapRun(
                plan,
                body: index,
                context: context,
                resolve: resolve,
                expandsRelations: expandsRelations,
                strictModels: strictModels
            )
            run.object(MapRun.Value(document: 0, node: 0), as: model, mask: MemberMask(members))
            return MappedBody(run)
        }
    }

    private static func warning(_ failure: JSONIndex.Failure, _ body: [UInt8]) -> MappingWarning? {
        switch failure {
        case .tooDeep:
            return MappingWarning(.tooDeep, "The body is nested deeper than \(JSONScanner.maximumDepth) levels.")
        case .malformed:
            // An empty body is regular: 204, HEAD.
            guard body.contains(where: { $0 > 0x20 }) else { return nil }
            let hasMark = body.starts(with: [0xEF, 0xBB, 0xBF])
            return MappingWarning(
                .notJSON,
                hasMark ? "The body is not JSON: it begins with a byte order mark." : "The body is not JSON."
            )
        }
    }
}

/// The mapped view of a body or an object.
public struct MappedBody: Sendable, Equatable {
    /// The mapped JSON, or the body as it came.
    public var body: [UInt8]
    /// Whether the body is mapped; false: it is nothing that the rule speaks of.
    public var isMapped: Bool
    /// What did not fit; their pointers lead into the body as it came.
    public var warnings: [MappingWarning]
    /// Pointers into the mapped JSON: values that the upstream did not give but the models do, and objects in the place of
    /// their bare identities.
    public var synthetic: [String]
    /// The objects that the body names by their bare identities; of very many not all.
    public var named: Set<ObjectName> = []

    init(unmapped body: [UInt8], _ warnings: [MappingWarning]) {
        (self.body, self.warnings, synthetic) = (body, warnings, [])
        isMapped = false
    }

    init(_ run: MapRun) {
        (body, warnings, synthetic) = (run.output, run.warnings, run.synthetic)
        named = run.named
        isMapped = true
    }
}

extension MappingWarning: Error {
    static func unknownModel(_ name: String) -> MappingWarning {
        MappingWarning(.unknownModel, "The route speaks of a model that is not declared.", model: name)
    }

    static func noObject(_ model: String) -> MappingWarning {
        MappingWarning(.notAnObject, "The body is not an object.", pointer: "", model: model)
    }
}
