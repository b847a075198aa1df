import Glibc
import Mapping

/// What was read of a file before its parts are held against each other: values and where each stands.
struct ConfigDraft {
    var settings = Configuration()
    var places: [String: Place] = [:]
    var upstreams: [UpstreamDraft] = []
    var models: [ModelDraft] = []
    var routes: [RouteDraft] = []
    var errors: [RouteDraft] = []
}

/// One upstream as read.
package struct UpstreamDraft {
    var settings = Configuration.Upstream()
    var place: Place?
    var places: [String: Place] = [:]
    /// Whether the prefix can be held against others.
    var hasValidPrefix = true
    var models: [ModelDraft] = []
    var routes: [RouteDraft] = []
    var errors: [RouteDraft] = []
}

/// A credential as read.
struct CredentialDraft {
    var settings = Configuration.Credential()
    var content: [UInt8] = []

    /// Reads the file that holds the credential and checks who else may.
    mutating func read(at place: Place?, _ reader: inout ConfigReader) {
        let path = settings.from
        do {
            let file = try ConfigBytes.read(path, limit: 64 << 10)
            if file.mode & 0o007 != 0 {
                reader.errorHere(place, "every user of this machine may read \"\(path)\"; run: chmod o= \"\(path)\"")
            }
            content = file.bytes
            while let last = content.last, last == 0x0A || last == 0x0D || last == 0x20 { content.removeLast() }
            if content.isEmpty {
                reader.errorHere(place, "\"\(path)\" is empty; put the credential on its first line")
            } else if content.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) {
                reader.errorHere(
                    place,
                    "\"\(path)\" holds more than one line, or control characters; one line is wanted"
                )
            }
        } catch {
            reader.errorHere(place, "the credential cannot be read: \(error)")
        }
    }

    /// The settings with the value that is sent.
    var finished: Configuration.Credential {
        var settings = settings
        settings.value = Secret(bytes: settings.scheme.map { Array("\($0) ".utf8) + content } ?? content)
        return settings
    }
}

/// A model as read.
struct ModelDraft {
    var declaration = ModelDeclaration(name: "")
    var place: Place?
    var places: [String: Place] = [:]
    var properties: [PropertyDraft] = []
    /// Where the models of the cluster are named.
    var choicePlaces: [(model: String, place: Place?)] = []
}

/// A property as read.
struct PropertyDraft {
    var declaration = PropertyDeclaration(name: "", from: "")
    var place: Place?
    /// Where the model it relates to is named.
    var modelPlace: Place?
    /// Whether it says where its value comes from; else its own name does.
    var isNamed = false
}

/// A route, or an error rule, as read.
struct RouteDraft {
    var route = Configuration.Route()
    /// nil where the key is absent.
    var status: StatusPattern?
    var place: Place?
    var places: [String: Place] = [:]
    /// nil where the key is absent, or what stands there is no text.
    var path: String?
    /// A model that a body holds, how often, and where it is named.
    typealias Model = (name: String, shape: BodyRule.Shape, place: Place?)
    var model: Model?
    var root: String?
    var envelope: (name: String, place: Place?)?
    var also: [(model: Model, root: String)] = []
    var objectPlaces: [Place?] = []
    var invalidates: [(text: String, place: Place?)] = []
}
