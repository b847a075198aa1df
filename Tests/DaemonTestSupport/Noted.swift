package import Synchronization

/// A value that any thread may change.
package final class Noted<Value: Sendable>: Sendable {
    package let value: Mutex<Value>
    package init(_ value: Value) { self.value = Mutex(value) }
}
