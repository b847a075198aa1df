/// The project's own folder, for tests of what lies in it.
package enum Repository {
    package static let root = #filePath.split(separator: "/").dropLast(3).reduce("") { "\($0)/\($1)" }
}
