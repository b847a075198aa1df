import TestSupport
import Testing

@testable import Settings

/// Whatever is wrong with a config's models and routes is told at its place when the config is read; nothing is left
/// for the compiler to stumble over.
struct WrongConfigTests {
    @Test(arguments: 0..<6 as Range<UInt64>)
    func `in randomly changed configs every mistake has a place, and a config without mistakes compiles`(seed: UInt64) {
        var random = SeededGenerator(seed: seed &+ 31)
        var (sound, wrong) = (0, 0)
        for _ in 0..<150 {
            let yaml = Self.changed(&random)
            let file = ConfigFile.parse(yaml, file: "larder.yaml", environment: [:])
            let mistakes = file.diagnostics.filter { $0.severity == .error }
            for mistake in mistakes where mistake.place == nil {
                Issue.record("seed \(seed): no place: \(mistake) of\n\(yaml)")
            }
            guard mistakes.isEmpty else {
                wrong += 1
                continue
            }
            sound += 1
            for upstream in file.settings.upstreams {
                do {
                    _ = try CompiledUpstream(upstream)
                } catch {
                    Issue.record("seed \(seed): only the compiler finds: \(error) in\n\(yaml)")
                }
            }
        }
        #expect(sound > 0 && wrong > 0, "seed \(seed)")
    }

    /// The config with some of its words exchanged for others, and some of its lines lost or doubled.
    private static func changed(_ random: inout SeededGenerator) -> String {
        var lines = config.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        for _ in 0..<Int.random(in: 1...6, using: &random) {
            let line = Int.random(in: 1..<lines.count, using: &random)
            switch Int.random(in: 0..<10, using: &random) {
            case 0: lines.remove(at: line)
            case 1: lines.insert(lines[Int.random(in: 1..<lines.count, using: &random)], at: line)
            case 2: lines[line] = String(lines[line].dropLast())
            default:
                var words = lines[line].split(separator: " ", omittingEmptySubsequences: false).map(String.init)
                let places = words.indices.filter { words[$0].contains { $0.isLetter || $0 == "@" || $0 == "*" } }
                guard let place = places.randomElement(using: &random) else { continue }
                let (before, after) = (
                    words[place].prefix { !$0.isLetter }, words[place].reversed().prefix { ",:}]".contains($0) }
                )
                words[place] = before + Self.words.randomElement(using: &random)! + String(after.reversed())
                lines[line] = words.joined(separator: " ")
            }
        }
        return lines.joined(separator: "\n")
    }

    private static let words = [
        "id", "login", "title", "team", "team.id", "teams", "User", "Staff", "Bot", "Nobody", "p1", "span", "a..b",
        "\"@parent.id\"", "\"@nowhere\"", "\"@self\"", "\"@key\"", "\"tags[].id\"", "\"[]\"", "date", "from", "to",
        "model", "models", "keyed", "parts", "merge", "union", "sum", "former", "delete", "local", "secret", "default",
        "none", "~", "5", "-1", "[]", "{}", "true", "base", "identity", "cluster", "properties", "\"a/**/b\"",
        "\"{id}\"",
        "\"users/*\"", "root", "envelope", "object", "\"m.x\"", "\"\\u0000\"", "é", "\"(\"", "share", "all",
        "User.login",
    ]

    private static let config = #"""
        upstreams: { api: { url: "https://api.example" } }
        models:
          User:
            identity: id
            keys: [ login, email.address ]
            local: [ score ]
            secret: [ token ]
            modified: updated_at
            deleted_when: { any: [ { has: gone }, { member: state, is: [ deleted, 5 ] } ] }
            on_delete: remove
            naming: snake_case
            version: 2
            migrations:
              - { to: 1, rename: { name: full_name }, remove: [ old ] }
              - { to: 2, convert: { created: { date: unix } } }
            cluster:
              - { model: Staff, if: { member: type, is: staff } }
              - { model: Bot, if: { not: { has: email } } }
            properties:
              login: login
              title: { from: title, type: string, length: [ 1, 20 ] }
              slug: { from: title, to: none }
              team: { from: team, model: Team }
              team.name: team_name
              teamName: { from: team.name, to: none }
              span: { parts: { start: loc, length: len, o: "@url.login" } }
              tags: { from: tags, merge: union }
              count: { from: count, type: integer, merge: sum, range: [ 0, ~ ] }
              state: { from: state, as: { enum: { open: opened, closed: done } } }
              links: { from: links, as: { list_of: url } }
              at: { from: created, as: date, default: "2020-01-01T00:00:00Z" }
              fullName: {}
          Staff:
            base: User
            properties:
              p1: desk
              boss: { from: boss, model: User, merge: replace }
          Bot:
            base: User
            local: [ rank ]
            properties:
              p1: bot_id
              owner: { from: owner.login, pattern: "[a-z]+", required: true }
          Team:
            identity: [ "@root.id", id ]
            share: all
            properties:
              members: { from: members, models: User, former: delete }
              files: { from: files, keyed: File }
              name: name
              names: "members[].login"
              place: { from: "@self", model: File }
          File: { identity: [], properties: { name: "@key", size: size, of: "@parent.id" } }
          Problem: { identity: [], properties: { message: message } }
        routes:
          - { path: "users/{login}", model: User, object: { login: login } }
          - { path: users, model: [ User ], root: items, envelope: Problem, also: [ { model: Team, root: team } ] }
          - { path: "teams/{id:#}", model: Team, status: 2xx, fallthrough: true }
          - { path: "teams/**", model: { keyed: Team }, method: GET }
        errors:
          - { path: "**", model: Problem }
        """#
}
