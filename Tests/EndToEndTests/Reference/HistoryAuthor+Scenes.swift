import TestSupport

/// Scenes that chance alone would seldom make up.
extension HistoryAuthor {
    /// Two lists show an object, which changes twice.
    ///
    /// The second time only one of them is in memory: of the other, readers see the commit before memory has it.
    mutating func heldCommit() -> [Step] {
        let scope = scope()
        let scenes: [(kind: Kind, member: String, lists: [Page])] = [
            (.user, "login", [.users, .issues(nil)]),
            (.label, "name", [.labels, .issues(nil)]),
            (.issue, "title", [.issues(nil), .search(0)]),
        ]
        let scene = random.pick(scenes)
        let ref = Ref(kind: scene.kind, id: 1 + random.below(3))
        let edit = Edit.change(ref, member: scene.member, number: 0)
        var first = ask(Page(of: ref), scope)
        first.isForced = true
        var second = ask(Page(of: ref), scope)
        (second.plan.isHeld, second.plan.isMadeLate, second.plan.tag) = (true, true, 0)
        let isWrite = random.once(in: 2)
        if isWrite { (second.method, second.edit) = ("PATCH", edit) } else { second.isForced = true }
        let lists = random.once(in: 2) ? scene.lists : scene.lists.reversed()
        let readers = [Page(of: ref), lists[1], lists[0], lists[1]].map { page in
            var reader = ask(page, scope)
            reader.isOnlyIfCached = true
            return reader
        }
        return lists.map { .ask(ask($0, scope)) } + [
            .settle, .change(scope.principal, edit), .ask(first), .settle, .ask(ask(lists[0], scope)), .settle,
        ] + (isWrite ? [] : [.change(scope.principal, edit)]) + [
            .ask(second), .settle, .finishDuring(second.number, readers, isCommitted: !random.once(in: 3)),
        ]
    }

    /// A list is polled whose objects nothing else shows: its next hit is no older than its last word, and in no doubt.
    mutating func secludedList() -> [Step] {
        let scope = Scope(principal: principal(), language: Scope.secluded)
        let (kind, list) = random.once(in: 2) ? (Kind.user, Page.users) : (.label, .labels)
        var steps: [Step] = []
        for _ in 0..<2 {
            var poll = ask(list, scope)
            (poll.isForced, poll.client) = (true, client())
            for id in 1...3 {
                let edit = Edit.change(Ref(kind: kind, id: id), member: kind == .user ? "karma" : "color", number: 0)
                steps.append(.change(scope.principal, edit))
            }
            steps += [.ask(poll), .settle, .ask(ask(list, scope)), .settle]
        }
        return steps
    }

    /// Of a list, one object is unknown after a write, and of another a newer value is known: the upstream fails.
    mutating func knownInPart() -> [Step] {
        let scope = scope()
        let member = random.pick(["login", "karma"])
        let (unknown, known) = random.pick([(1, 2), (2, 3), (3, 1)])
        let other = Ref(kind: .user, id: known)
        var list = ask(.users, scope)
        list.isForced = true
        var read = ask(Page(of: other), scope)
        read.isForced = true
        var broken = ask(.users, scope)
        broken.plan.ending = .error(isDone: false)
        return [
            .ask(list), .settle, .change(scope.principal, .change(other, member: member, number: 0)), .ask(read),
            .settle, .ask(ask(Page(of: other), scope)),
            .ask(silentWrite(to: Ref(kind: .user, id: unknown), member: "karma", scope)), .settle, .ask(broken),
        ]
    }

    /// Two lists show different names of a user, and the first has been asked for again: by the later name the user is
    /// written to.
    mutating func doubtfulName() -> [Step] {
        let scope = scope()
        let user = Ref(kind: .user, id: 1 + random.below(3))
        var (first, second, again) = (ask(.users, scope), ask(.issues(nil), scope), ask(.users, scope))
        (first.isForced, second.isForced, again.plan.behind) = (true, true, 1)
        if servesStale {
            (first.plan.isFresh, first.plan.isServedStale) = (false, true)
            (again.plan.isFresh, again.plan.isServedStale) = (false, true)
        }
        var third = ask(.issues(nil), scope)
        third.isForced = true
        let write = silentWrite(to: user, member: random.pick(["login", "karma"]), scope)
        return [
            .ask(first), .settle, .change(scope.principal, .change(user, member: "login", number: 0)), .ask(second),
            .settle, .ask(again), .settle, .ask(ask(.users, scope)), .ask(third), .settle, .ask(write),
            .ask(ask(.users, scope)),
        ]
    }

    /// A write by the user's name, whose response shows nothing: it leaves the lists where they are.
    private mutating func silentWrite(to user: Ref, member: String, _ scope: Scope) -> Ask {
        var write = ask(Page(of: user), scope)
        (write.method, write.isByName, write.plan.ending) = ("PATCH", true, .empty)
        write.edit = .change(user, member: member, number: 0)
        return write
    }

    private mutating func ask(_ page: Page, _ scope: Scope) -> Ask {
        Ask(number: nextNumber(), page: page, scope: scope)
    }
}
