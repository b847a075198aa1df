import Synchronization
import Testing

@testable import Proxy
@testable import Settings

@Suite struct ModeSwitchTests {
    @Test func `a change of the mode is reported once, and only if the mode differs`() {
        let modes = ModeSwitch(.online)
        let changes = ModeChanges()
        modes.onChange { changes.add($0) }
        #expect(!modes.set(.online))
        #expect(modes.set(.offline))
        #expect(!modes.set(.offline))
        #expect(modes.current == .offline)
        #expect(modes.set(.online))
        #expect(changes.modes == [.offline, .online])
    }

    @Test(arguments: Mode.allCases)
    func `a switch starts in the mode it is given`(mode: Mode) {
        #expect(ModeSwitch(mode).current == mode)
    }
}

private final class ModeChanges: Sendable {
    private let list = Mutex<[Mode]>([])

    func add(_ mode: Mode) {
        list.withLock { $0.append(mode) }
    }

    var modes: [Mode] { list.withLock { $0 } }
}
