import GRDB
import Mapping

/// Objects that one answer shows several times, and not alike.
extension WriteSession {
    /// More pairs of places are counted, but not told of one by one.
    private static let disagreementLimit = 20

    /// Says on which members versions that one answer shows of an object disagree, and where each of them stands.
    ///
    /// Called only for an object that the answer shows differently.
    func warn(
        of versions: [Contribution],
        showing record: ObjectRecord,
        in decomposed: DecomposedBody,
        models: Models,
        _ intake: inout Intake
    ) throws {
        func place(of version: Int64, _ member: String) -> String {
            let pin = Pin(object: record.id, version: version)
            return intake.pins.firstIndex(of: pin).flatMap(decomposed.pointer(toOccurrence:)).map { $0 + "/" + member }
                ?? ""
        }
        let model = try names.collection(record.collection, in: database).model
        let found = ObjectState.disagreements(among: versions.map(\.payload), model: model, models: models)
        for (member, one, other) in found {
            let known = intake.warnings.firstIndex {
                $0.kind == .disagreement && $0.model == model && $0.property == member
            }
            if let known {
                intake.warnings[known].count += 1
                continue
            }
            guard intake.warnings.count < Self.disagreementLimit else { return }
            let (here, there) = (place(of: versions[one].version, member), place(of: versions[other].version, member))
            intake.warnings.append(
                MappingWarning(
                    .disagreement,
                    "\(model) \(record.identity.text) has two values of \(member) in one response, at \(here) and at \(there). That response shows each where it came; all others show what was known before.",
                    pointer: here,
                    model: model,
                    property: member
                )
            )
        }
    }
}
