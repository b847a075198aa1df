@testable import Mapping

extension ObjectState {
    /// The newest value of a member, given as a property's name or a key path; nil when none is known.
    func newest(_ member: String, model: String, models: Models) -> [UInt8]? {
        guard let index = models.index(of: model),
            let value = newestPayload(model: model, models: models).flatMap({ JSONSlice($0) })
        else { return nil }
        let from = models.declarations[index].properties.first { $0.name == member }?.from ?? member
        let path = MemberPath(from.split(separator: ".").map(String.init))
        let observed = ObservedMembers(value, model: index, models: models)
        return observed.sound[path].map { Array($0.value.bytes) }
            ?? observed.gathered[path].map { Array($0.value.bytes) }
    }
}
