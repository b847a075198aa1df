import Foundation

/// The environment variables of this process.
enum Environment {
    static var variables: [String: String] { ProcessInfo.processInfo.environment }
}
