import Testing

@testable import Store

@Suite struct MailboxTests {
    @Test func `elements count until they are taken, express ones first`() {
        let mailbox = Mailbox<Int>()
        #expect(mailbox.count == 0)
        #expect(mailbox.submit(1, urgent: false) && mailbox.submit(2, urgent: true, express: true))
        #expect(mailbox.count == 2 && mailbox.hasExpress)
        #expect(mailbox.take(delay: 0, idle: 0) == [2, 1])
        #expect(mailbox.count == 0 && !mailbox.hasExpress)
    }

    @Test func `a finished mailbox accepts nothing more, and delivers what it has`() {
        let mailbox = Mailbox<Int>()
        #expect(mailbox.submit(1, urgent: false))
        mailbox.finish()
        #expect(!mailbox.submit(2, urgent: true))
        #expect(mailbox.take(delay: 60_000_000, idle: 60_000_000) == [1])
        #expect(mailbox.take(delay: 0, idle: 0) == nil)
    }
}
