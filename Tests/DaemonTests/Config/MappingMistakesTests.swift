import Testing

@testable import Daemon

/// What `larder check` says of mistakes in the mapping language: all of a config's at once, each at its place, with what is
/// wrong and what would be right.
struct MappingMistakesTests {
    struct Mistaken: CustomTestStringConvertible, Sendable {
        let testDescription: String
        /// What follows the line of the upstream.
        let yaml: String
        /// `line:column: message`, one a line.
        let complaints: String

        init(_ description: String, _ yaml: String, _ complaints: String) {
            (testDescription, self.yaml, self.complaints) = (description, yaml, complaints)
        }
    }

    @Test(arguments: all) func `every mistake is told at its place`(_ mistaken: Mistaken) {
        let yaml = "upstreams: { api: { url: \"https://api.example\" } }\n" + mistaken.yaml
        let found = ConfigFile.parse(yaml, file: "larder.yaml", environment: [:]).diagnostics.map { diagnostic in
            "\(diagnostic.place?.line ?? 0):\(diagnostic.place?.column ?? 0): \(diagnostic.message)"
        }
        #expect(found.joined(separator: "\n") == mistaken.complaints)
    }

    private static let all = [
        Mistaken(
            "a base of its own",
            #"""
            models: { A: { identity: id, base: A }, B: { identity: id, base: C }, C: { base: B } }
            """#,
            #"""
            2:11: model A is its own base or its own choice; name another, or none
            2:41: models B, C are each other's base; one of them must have none
            """#
        ),
        Mistaken(
            "a place within another one's",
            #"""
            models: { A: { identity: id, properties: { a: { from: a, to: b.c }, b: b } } }
            """#,
            #"""
            2:44: model A writes a back to "b.c", which lies within "b", where b is written; say "to: none" of one of them
            """#
        ),
        Mistaken(
            "defaults that do not pass",
            #"""
            models: { A: { identity: id, properties: { a: { from: a, default: 5, type: string }, b: { from: b, default: ~, null: false }, c: { from: c, model: A, default: 5 }, d: { from: d, default: ok, pattern: "[a-z]+" } } } }
            """#,
            #"""
            2:44: model A, property a: its own default does not pass: of type string is expected
            2:86: model A, property b: its own default does not pass: null is not allowed
            2:127: model A, property c: its own default does not pass: an object is expected
            """#
        ),
        Mistaken(
            "date patterns",
            #"""
            models: { A: { identity: id, properties: { a: { from: a, as: { date: { format: "yyyy-MM-ddTHH:mm" } } }, b: { from: b, as: { date: { format: "yyyy 'the" } } }, c: { from: c, as: { date: { format: "yyyy-MM-dd'T'HH:mm" } } } } } }
            """#,
            #"""
            2:62: models.A.properties.a.as: "yyyy-MM-ddTHH:mm" is no date pattern: "T" is no field; write fields such as yyyy-MM-dd HH:mm:ss or MMMM d, yyyy, and other letters between single quotes, as in yyyy-MM-dd'T'HH:mm
            2:124: models.A.properties.b.as: "yyyy 'the" is no date pattern: a quote in it is not closed
            """#
        ),
        Mistaken(
            "several of one model",
            #"""
            models: { A: { identity: id, secret: [id], keys: ["x..y"], properties: { a: { from: a, merge: sum, type: string }, b: { from: b, merge: union, type: [object] }, c: { from: c, type: [] }, d: { from: d, pattern: "a)|(b" } } } }
            """#,
            #"""
            2:11: model A: "id" is secret and belongs to its identity, by which objects are stored; take it out of one of them
            2:50: model A, keys: "x..y" is no key path; write member names separated by dots, \. for a dot within a name
            2:74: model A, property a: "sum" adds numbers, which its "type" rules out
            2:116: model A, property b: "union" joins lists, which its "type" rules out
            2:182: models.A.properties.c.type: no type is allowed; name at least one
            2:211: models.A.properties.d.pattern: "a)|(b" is no regular expression
            """#
        ),
        Mistaken(
            "versions within a cluster, and merge keys",
            #"""
            models:
              A: { identity: id, version: 1 }
              B: { base: A, version: 2 }
              C: { <<: { identity: id } }
            """#,
            #"""
            4:3: model B: its objects are A's and have A's version; declare "version" and "migrations" there
            5:6: models.C: "identity" is missing; add it, for example `identity: id`
            5:8: models.C: merge keys are not read; write the keys out, use "base" for models, or "include"
            """#
        ),
        Mistaken(
            "FJ-04: one model under a key and its plural",
            #"""
            models: { A: { identity: id } }
            routes:
              - { path: a, model: [A], root: posts, also: [{ model: A, root: post }] }
              - { path: b, model: [A], root: posts, also: [{ model: A, root: first_post }] }
            """#,
            #"""
            4:57: "A" is the answer's own content already, in another shape; of a body that has both, both are taken
            """#
        ),
        Mistaken(
            "an unknown conversion",
            #"""
            models: { User: { identity: id, properties: { login: { from: login, as: dat } } } }
            """#,
            #"""
            2:73: models.User.properties.login.as: there is no conversion "dat"; did you mean "date"?
            """#
        ),
        Mistaken(
            "an unknown key",
            #"""
            models: { User: { identity: id, properties: { login: { frm: login } } } }
            """#,
            #"""
            2:56: models.User.properties.login: unknown key "frm"; did you mean "from"?
            """#
        ),
        Mistaken(
            "an unknown model",
            #"""
            models: { User: { identity: id, properties: { team: { from: team, model: Teem } } }, Team: { identity: id } }
            """#,
            #"""
            2:74: there is no model "Teem"; did you mean "Team"?
            """#
        ),
        Mistaken(
            "a list for a source",
            #"""
            models: { User: { identity: nothing, properties: { a: [] } } }
            """#,
            #"""
            2:55: models.User.properties.a: an empty list stands here; write the member it is read from, or { from: …, as: …, model: … }
            """#
        ),
        Mistaken(
            "one source for two",
            #"""
            models: { User: { identity: id, properties: { a: x, b: x } } }
            """#,
            #"""
            2:53: model User reads "x" into a and b; one property is enough
            """#
        ),
        Mistaken(
            "key paths that are none",
            #"""
            models: { User: { identity: id, properties: { a: { from: "x..y" }, b: "x[", c: "[]" } } }
            """#,
            #"""
            2:47: model User, property a: "x..y" is no key path; write member names separated by dots, \. for a dot within a name
            2:77: model User, property c: "[]" is no key path; write member names separated by dots, \. for a dot within a name
            """#
        ),
        Mistaken(
            "an enum without a way back",
            #"""
            models: { User: { identity: id, properties: { a: { from: a, as: { enum: { open: o, shut: o } } } } } }
            """#,
            #"""
            2:65: models.User.properties.a.as: "open" and "shut" are both mapped to "o", so that there is no way back; give each its own, or use "default" for one of them
            """#
        ),
        Mistaken(
            "an unknown zone",
            #"""
            models: { User: { identity: id, properties: { a: { from: a, as: { date: { format: "QQQ", zone: Mars/X } } } } } }
            """#,
            #"""
            2:65: models.User.properties.a.as: there is no time zone "Mars/X"; write UTC or a name of the tz database such as America/Los_Angeles
            """#
        ),
        Mistaken(
            "checks that nothing passes",
            #"""
            models: { User: { identity: id, properties: { a: { from: a, range: [10, 1], length: [-1, 2], pattern: "[a-z", one_of: [] } } } }
            """#,
            #"""
            2:68: models.User.properties.a.range: the range ends before it begins
            2:85: models.User.properties.a.length: the lengths allowed end before they begin
            2:103: models.User.properties.a.pattern: "[a-z" is no regular expression
            2:119: models.User.properties.a.one_of: no value is allowed; name at least one
            """#
        ),
        Mistaken(
            "a merge that does not fit",
            #"""
            models: { User: { identity: id, properties: { a: { from: a, model: User, merge: union }, b: { from: b, merge: sun } } } }
            """#,
            #"""
            2:47: model User, property a: "union" joins lists, and this is one object
            2:111: models.User.properties.b.merge: "sun" is not one of latest, replace, keep, union, sum; did you mean "sum"?
            """#
        ),
        Mistaken(
            "an unknown base",
            #"""
            models: { User: { identity: id, base: Person } }
            """#,
            #"""
            2:39: there is no model "Person"; declare it under "models"
            """#
        ),
        Mistaken(
            "bases in a circle",
            #"""
            models: { A: { identity: id, base: B }, B: { identity: id, base: A } }
            """#,
            #"""
            2:11: models A, B are each other's base; one of them must have none
            """#
        ),
        Mistaken(
            "a choice that hides the rest",
            #"""
            models: { P: { identity: id, cluster: [ { model: A }, { model: B, if: { has: x } } ] }, A: { base: P }, B: { base: P } }
            """#,
            #"""
            2:41: models.P.cluster: without "if" it takes every object, and what follows is never tried; put it last
            """#
        ),
        Mistaken(
            "a condition that is none",
            #"""
            models: { P: { identity: id, cluster: [ { model: A, if: { is: x } } ] }, A: { base: P } }
            """#,
            #"""
            2:57: models.P.cluster.if: this is no condition. A condition is { has: MEMBER }, { member: MEMBER, is: VALUE } or a list of values there, { all: [...] }, { any: [...] } or { not: ... }.
            """#
        ),
        Mistaken(
            "naming and version",
            #"""
            models: { User: { identity: id, naming: snake, version: -1, migrations: [ { to: 3, rename: { a: b } } ] } }
            """#,
            #"""
            2:11: model User: a migration to version 3 does not belong between versions 0 and 0; migrations rise, and the model's version is that of the last
            2:41: models.User.naming: "snake" is not one of exact, snake_case
            2:57: models.User.version: "-1" is not a whole number from 0 to 1000000
            """#
        ),
        Mistaken(
            "migrations out of order",
            #"""
            models: { User: { identity: id, version: 2, migrations: [ { to: 1, rename: { a: b } }, { to: 1, remove: [x] }, { to: 2, convert: { c: daat } } ] } }
            """#,
            #"""
            2:11: model User: a migration to version 1 does not belong between versions 0 and 2; migrations rise, and the model's version is that of the last
            2:135: models.User.migrations.c: there is no conversion "daat"; write base64, boolean, date, decimal, integer, string, url, uuid, or a form with enum, values, date, number, list_of, dictionary_of, chain, one_way
            """#
        ),
        Mistaken(
            "an unknown context value",
            #"""
            models: { User: { identity: "@url.owner", properties: { o: "@header.etag", p: "@paren.id", q: "@url" } } }
            routes:
              - { path: "users/{login}", model: User }
            """#,
            #"""
            2:76: model User, property p: there is no "@paren.id"; write @url, @url.NAME, @header.NAME, @parent.PATH, @root.PATH, @index, @key or @self
            """#
        ),
        Mistaken(
            "routes",
            #"""
            models: { User: { identity: id } }
            routes:
              - { path: "users/{login}", model: Usr }
              - { path: "a/**/b", model: User }
              - { path: "users/{login}", model: User }
              - { path: "users/*", model: [User, User] }
            """#,
            #"""
            4:37: there is no model "Usr"; did you mean "User"?
            5:13: path "a/**/b": "**" must be the last component; nothing after it would be looked at
            6:13: "users/{login}" has the same pattern, method and status as the rule in line 4, and nothing tells which of the two is meant; remove one, or demand more of one
            7:13: "users/*" has the same pattern, method and status as the rule in line 4, and nothing tells which of the two is meant; remove one, or demand more of one
            7:31: routes.4.model: one model stands here, in brackets if the body is a list of its objects
            """#
        ),
        Mistaken(
            "bindings and envelopes",
            #"""
            models: { User: { identity: id } }
            routes:
              - { path: "users/{login}", model: User, object: { login: logn } }
              - { path: "u", model: User, envelope: Page, also: [ { model: [User] } ] }
              - { path: "v", model: User, root: "a..b", status: 2x, method: "GE T" }
            """#,
            #"""
            4:53: "users/{login}" has no capture "logn"; it has login
            4:53: "login" is no identity, key or property of model "User"; known are id
            5:41: there is no model "Page"; declare it under "models"
            5:55: routes.2.also: "model" and "root" are wanted; write { model: [User], root: users }
            6:53: routes.3.status: "2x" is no status; write one such as 201, a class such as 2xx, or any
            6:65: routes.3.method: "GE T" is no method; methods are in capitals, such as "GET"
            """#
        ),
        Mistaken(
            "write paths to nowhere",
            #"""
            models: { User: { identity: id, properties: { location: { from: loc, model: Location }, location.latitude: lat, location.lng: x, place.x: y } }, Location: { properties: { latitude: latitude } } }
            """#,
            #"""
            2:113: model User: "location.lng" completes nothing; its beginning names a relation to one object, its end a property of that object's model
            2:130: model User: "place.x" completes nothing; its beginning names a relation to one object, its end a property of that object's model
            2:156: models.Location: "identity" is missing; add it, for example `identity: id`
            """#
        ),
        Mistaken(
            "parts",
            #"""
            models: { User: { identity: id, properties: { a: { parts: { x: "y", z: "z" }, from: a } , b: { parts: {} } } } }
            """#,
            #"""
            2:59: models.User.properties.a: "parts" says where the value comes from; remove "from"
            2:103: models.User.properties.b.parts: it names no member; write { start: location }
            """#
        ),
        Mistaken(
            "flags and types",
            #"""
            models: { User: { identity: id, properties: { a: { from: a, type: text }, b: { from: b, required: maybe }, c: { from: c, null: yes }, d: { from: d, coerce: 1 } } } }
            """#,
            #"""
            2:67: models.User.properties.a.type: "text" is not one of string, number, integer, boolean, object, array, null
            2:99: models.User.properties.b.required: "maybe" is neither true nor false
            2:128: models.User.properties.c.null: "yes" is neither true nor false
            2:157: models.User.properties.d.coerce: "1" is neither true nor false
            """#
        ),
        Mistaken(
            "deletion and sharing",
            #"""
            models: { User: { identity: id, deleted_when: { member: state }, local: score, secret: token, share: everything } }
            """#,
            #"""
            2:47: models.User.deleted_when: this is no condition. A condition is { has: MEMBER }, { member: MEMBER, is: VALUE } or a list of values there, { all: [...] }, { any: [...] } or { not: ... }.
            2:102: models.User.share: "everything" is not one of declared, all
            """#
        ),
        Mistaken(
            "nested conversions",
            #"""
            models: { User: { identity: id, properties: { a: { from: a, as: { chain: [ date, nope ] } }, b: { from: b, as: { list_of: x } }, c: { from: c, as: { one_way: date, back: never } }, d: { from: d, as: { values: {} } } } } }
            """#,
            #"""
            2:82: models.User.properties.a.as.chain: there is no conversion "nope"; write base64, boolean, date, decimal, integer, string, url, uuid, or a form with enum, values, date, number, list_of, dictionary_of, chain, one_way
            2:123: models.User.properties.b.as.list_of: there is no conversion "x"; write base64, boolean, date, decimal, integer, string, url, uuid, or a form with enum, values, date, number, list_of, dictionary_of, chain, one_way
            2:171: models.User.properties.c.as.one_way: "never" is not one of drop, raw, fail
            2:210: models.User.properties.d.as.values: a mapping stands here; write the upstream's values, each with another, such as { 1: one, 2: two }
            """#
        ),
        Mistaken(
            "a circle without identity",
            #"""
            models: { A: { properties: { b: { from: b, model: B } } }, B: { properties: { a: { from: a, model: A } } } }
            """#,
            #"""
            2:11: models A, B refer to each other in a circle by relations to one object each, and none of them has an identity
            2:14: models.A: "identity" is missing; add it, for example `identity: id`
            2:63: models.B: "identity" is missing; add it, for example `identity: id`
            """#
        ),
        Mistaken(
            "a list for models",
            #"""
            models: [User]
            """#,
            #"""
            2:9: models: a list stands here; write names of models, each with its keys
            """#
        ),
        Mistaken(
            "relations with more",
            #"""
            models: { User: { identity: id, properties: { a: { from: a, model: User, as: date }, b: { from: b, model: User, models: User } } } }
            """#,
            #"""
            2:47: model User, property a: a related object has no "as"; declare the conversion in its model
            2:121: models.User.properties.b: "model" (one object), "models" (a list of them) and "keyed" (an object of them) exclude each other
            """#
        ),
        Mistaken(
            "names of models",
            #"""
            models: { "Us er": { identity: id }, "": { identity: id } }
            """#,
            #"""
            2:11: model name "Us er" is not a letter followed by letters, digits and _
            2:38: model name "" is not a letter followed by letters, digits and _
            """#
        ),
        Mistaken(
            "a model twice",
            #"""
            models: { User: { identity: id }, User: { identity: login } }
            """#,
            #"""
            2:11: "User" stands twice among the same keys; keep one of them
            """#
        ),
        Mistaken(
            "identity types",
            #"""
            models:
              User:
                identity: id
                identity_types: lose
                keys: login
                modified: [a]
                properties:
                  "a": { from: a, to: "x[].y" }
                  c: { from: "d[].e", to: none }
                  e: { from: c, to: a }
            """#,
            #"""
            5:21: models.User.identity_types: "lose" is not one of any, strict
            7:15: models.User.modified: a list stands here; write the name of a member
            """#
        ),
        Mistaken(
            "errors",
            #"""
            models: { Problem: {} }
            errors:
              - { path: "**", model: Problm }
              - { path: "**", model: Problem, status: 200 }
              - { path: "x", model: Problem, fresh: 5m }
            """#,
            #"""
            2:20: models.Problem: "identity" is missing; add it, for example `identity: id`
            4:26: there is no model "Problm"; did you mean "Problem"?
            5:43: errors speak of answers that are not 2xx; move this rule to "routes"
            6:34: errors.3: unknown key "fresh" here; it belongs under "routes"
            """#
        ),
        Mistaken(
            "an identity twice",
            #"""
            models: { User: { identity: [id, id], keys: [login, login] } }
            """#,
            #"""
            2:29: model User, identity: "id" is named twice
            2:45: model User, keys: "login" is named twice
            """#
        ),
        Mistaken(
            "an identity that is a list",
            #"""
            models: { User: { identity: team, properties: { team: { from: team, models: Team } } }, Team: { identity: id } }
            """#,
            #"""
            2:29: model User: identity "team" is a list of objects; an identity is one string or number
            """#
        ),
        Mistaken(
            "a local member of another model",
            #"""
            models: { User: { identity: id, local: [team.name], properties: { team: { from: team, model: Team } } }, Team: { identity: id } }
            """#,
            #"""
            2:40: model User, local: "team.name" lies within team, whose bytes belong to model Team; declare it there
            """#
        ),
        Mistaken(
            "names that differ in capitals",
            #"""
            models: { User: { identity: id, properties: { name: name, Name: full_name } } }
            """#,
            #"""
            2:59: model User declares property Name twice (names that differ only in case, name, are the same name)
            """#
        ),
        Mistaken(
            "a companion out of place",
            #"""
            models: { User: { identity: id, properties: { a: { from: a, as: { date: unix, back: drop } } } } }
            """#,
            #"""
            2:85: models.User.properties.a.as: "back" says nothing beside "date"
            """#
        ),
        Mistaken(
            "conversions that are none",
            #"""
            models: { User: { identity: id, properties: { a: { from: a, as: {} }, b: { from: b, as: [date] }, c: { from: c, as: } } } }
            """#,
            #"""
            2:65: models.User.properties.a.as: exactly one conversion belongs here; write a conversion: base64, boolean, date, decimal, integer, string, url, uuid, or a form with enum, values, date, number, list_of, dictionary_of, chain, one_way
            2:89: models.User.properties.b.as: a list stands here; write a conversion: base64, boolean, date, decimal, integer, string, url, uuid, or a form with enum, values, date, number, list_of, dictionary_of, chain, one_way
            2:117: models.User.properties.c.as: nothing stands here; write a conversion: base64, boolean, date, decimal, integer, string, url, uuid, or a form with enum, values, date, number, list_of, dictionary_of, chain, one_way
            """#
        ),
        Mistaken(
            "ranges that are none",
            #"""
            models: { User: { identity: id, properties: { a: { from: a, range: 5 }, b: { from: b, range: [a, b] } } } }
            """#,
            #"""
            2:68: models.User.properties.a.range: "5" stands here; write the least and the greatest, such as [0, 100]; ~ for no bound
            2:95: models.User.properties.b.range: "a" stands here; write a number, or ~ for no bound
            """#
        ),
        Mistaken(
            "empty lists",
            #"""
            models: { User: { identity: id, deleted_when: { all: [] } , cluster: [] } }
            """#,
            #"""
            2:54: models.User.deleted_when: an empty list stands here; write a list of conditions such as [{ has: bot }, { has: bot_id }]
            2:70: models.User.cluster: an empty list stands here; write a list such as [{ model: Organization, if: { has: members_url } }]
            """#
        ),
        Mistaken(
            "a choice without model",
            #"""
            models: { User: { identity: id, cluster: [ { if: { has: x } } ] } }
            """#,
            #"""
            2:44: models.User.cluster: "model" is missing; write { model: NAME, if: CONDITION }
            """#
        ),
        Mistaken(
            "rules",
            #"""
            models: { User: { identity: id } }
            routes:
              - { model: User }
              - { path: users }
              - { path: users, query: state, model: User }
              - { path: us*rs, model: User }
            """#,
            #"""
            4:5: routes.1: "path" is missing; add it, for example `path: "users/{login}"`
            6:13: "users" has the same pattern, method and status as the rule in line 5, and nothing tells which of the two is meant; remove one, or demand more of one
            6:27: routes.3.query: "state" stands here; write names of query parameters, each with a value
            7:13: path "us*rs": "us*rs" mixes "*" with other text; a wildcard or capture stands alone between slashes
            """#
        ),
        Mistaken(
            "a mapping for rules",
            #"""
            models: { User: { identity: id } }
            routes: { path: users, model: User }
            """#,
            #"""
            3:9: routes: a mapping stands here; write a list of rules, each beginning with "- "
            """#
        ),
        Mistaken(
            "misspelt keys",
            #"""
            models: { User: { identity: id, propertys: { a: a }, identiti: x } }
            """#,
            #"""
            2:33: models.User: unknown key "propertys"; did you mean "properties"?
            2:54: models.User: unknown key "identiti"; did you mean "identity"?
            """#
        ),
    ]
}
