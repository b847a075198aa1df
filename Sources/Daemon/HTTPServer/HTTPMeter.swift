/// Who counts what passes through one worker's sockets; called on the worker's thread, and quick.
package protocol HTTPMeter: AnyObject, Sendable {
    func connectionOpened()
    func connectionClosed()
    func received(bytes: Int)
    func sent(bytes: Int)
}
