/// Mistakes in models and clusters.
extension MappingMistakesTests {
    static let ofModels = [
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
            "several of one model",
            #"""
            models: { A: { identity: id, secret: [id], keys: ["x..y"], properties: { a: { from: a, merge: sum, type: string }, b: { from: b, merge: union, type: [object] }, c: { from: c, type: [] }, d: { from: d, pattern: "a)|(b" } } } }
            """#,
            #"""
            2:11: model A: "id" is secret, but objects are stored by it; remove it from "secret" or from the identity
            2:50: model A, keys: "x..y" is not a key path; write member names separated by dots, \. for a dot within a name
            2:74: model A, property a: "sum" adds numbers, which its "type" rules out
            2:116: model A, property b: "union" joins lists, which its "type" rules out
            2:182: models.A.properties.c.type: no type is allowed; name at least one
            2:211: models.A.properties.d.pattern: "a)|(b" is not a regular expression
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
            "an unknown model",
            #"""
            models: { User: { identity: id, properties: { team: { from: team, model: Teem } } }, Team: { identity: id } }
            """#,
            #"""
            2:74: there is no model "Teem"; did you mean "Team"?
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
            2:41: models.P.cluster: without "if" it matches every object, and what follows is never tried; put it last
            """#
        ),
        Mistaken(
            "a condition that is none",
            #"""
            models: { P: { identity: id, cluster: [ { model: A, if: { is: x } } ] }, A: { base: P } }
            """#,
            #"""
            2:57: models.P.cluster.if: this is not a condition. A condition is { has: MEMBER }, { member: MEMBER, is: VALUE } or a list of values there, { all: [...] }, { any: [...] } or { not: ... }.
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
            2:135: models.User.migrations.c: there is no conversion "daat"; write base64, boolean, date, decimal, integer, string, url, uuid, a form with enum, values, date, number, list_of, dictionary_of, chain, one_way, or a list of conversions, of which the first that fits counts
            """#
        ),
        Mistaken(
            "deletion and sharing",
            #"""
            models: { User: { identity: id, deleted_when: { member: state }, local: score, secret: token, share: everything } }
            """#,
            #"""
            2:47: models.User.deleted_when: this is not a condition. A condition is { has: MEMBER }, { member: MEMBER, is: VALUE } or a list of values there, { all: [...] }, { any: [...] } or { not: ... }.
            2:102: models.User.share: "everything" is not one of declared, all
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
            2:9: models: a list was found here; write names of models, each with its keys
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
            2:35: "User" occurs twice among the same keys, first in line 2; keep one of them
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
            7:15: models.User.modified: a list was found here; write the name of a member
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
            "empty lists",
            #"""
            models: { User: { identity: id, deleted_when: { all: [] } , cluster: [] } }
            """#,
            #"""
            2:54: models.User.deleted_when: an empty list was found here; write a list of conditions such as [{ has: bot }, { has: bot_id }]
            2:70: models.User.cluster: an empty list was found here; write a list such as [{ model: Organization, if: { has: members_url } }]
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
