/// A weak way back to an object that lives on a loop, for closures that pass through other threads.
///
/// The object may only be reached on its loop, which is checked; the reference itself may be copied and dropped anywhere.
// Unchecked: the one access proves that it happens on the object's own thread.
package struct LoopReference<Object: AnyObject>: @unchecked Sendable {
    private weak let object: Object?
    private let loop: EventLoop

    package init(_ object: Object, on loop: EventLoop) {
        self.object = object
        self.loop = loop
    }

    /// The object, if it is still there; on the loop's thread only.
    package var onLoop: Object? {
        loop.proveOwnership()
        return object
    }

    /// Has the loop do something with the object, if it is still there then.
    ///
    /// Any thread.
    package func enqueue(_ work: @escaping @Sendable (Object) -> Void) {
        loop.enqueue { [self] in
            if let object = onLoop { work(object) }
        }
    }
}
