/// Mistakes in routes, errors and envelopes.
extension MappingMistakesTests {
    static let ofRoutes = [
        Mistaken(
            "FJ-04: one model under a key and its plural",
            #"""
            models: { A: { identity: id } }
            routes:
              - { path: a, model: [A], root: posts, also: [{ model: A, root: post }] }
              - { path: b, model: [A], root: posts, also: [{ model: A, root: first_post }] }
            """#,
            #"""
            4:57: "A" is declared twice for this body, alone and as a list; if a body has both, both are used
            """#
        ),
        Mistaken(
            "a write with captures that names no object",
            #"""
            models: { A: { identity: id } }
            routes:
              - { path: "a/{id}", model: A, object: { id: id } }
              - { path: "a/{id}", method: PUT, invalidates: b }
              - { path: "a/{id}/cancel", method: POST, invalidates: b }
              - { path: "a/{id}/b/{n}/cancel", method: POST, invalidates: "a/{id}" }
              - { path: "refunds/{order}", method: POST }
              - { path: "refunds", method: POST }
              - { path: "b/{id}", method: POST, model: A }
              - { path: "c/{id}", method: GET }
              - { path: "d/{id}", invalidates: b }
              - { path: "e/{id}/f/g", method: POST, invalidates: "d/{id}" }
            """#,
            #"""
            7:13: this write names no object, so objects that it changes are shown as they were; say which one it changes, with "model" and "object", such as { id: n }
            8:13: this write names no object, so objects that it changes are shown as they were; say which one it changes, with "model" and "object", such as { id: order }
            """#
        ),
        Mistaken(
            "roots",
            #"""
            models: { User: { identity: id } }
            routes:
              - { path: "a", model: User, root: "a..b" }
              - { path: "b", model: [User], root: a, also: [{ model: User, root: ".c" }] }
              - { path: "c/{id}", model: User, root: "items[]", object: { id: id } }
              - { path: "d", model: User, root: 'a\.b' }
            """#,
            #"""
            4:37: routes.1.root: "a..b" is not a key path; write member names separated by dots, \. for a dot within a name
            5:70: routes.2.also: ".c" is not a key path; write member names separated by dots, as in "c", \. for a dot within a name
            6:61: "object" is for one object, but the body is a list; write "model: User" or remove "object"
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
            6:13: "users/{login}" has the same pattern, method and status as the rule in line 4, so it is unclear which of the two applies; remove one, or give one a method, status or query of its own
            7:13: "users/*" has the same pattern, method and status as the rule in line 4, so it is unclear which of the two applies; remove one, or give one a method, status or query of its own
            7:31: routes.4.model: write one model, in brackets if the body is a list of its objects
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
            4:53: "login" is not an identity, key or property of model "User"; known are id
            5:41: there is no model "Page"; declare it under "models"
            5:55: routes.2.also: "model" and "root" are wanted; write { model: [User], root: users }
            6:37: routes.3.root: "a..b" is not a key path; write member names separated by dots, \. for a dot within a name
            6:53: routes.3.status: "2x" is not a status; write one such as 201, a class such as 2xx, or any
            6:65: routes.3.method: "GE T" is not a method; methods are in capitals, such as "GET"
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
            5:43: "errors" is for responses that are not 2xx; move this rule to "routes"
            6:34: errors.3: unknown key "fresh" here; it belongs under "routes"
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
            6:13: "users" has the same pattern, method and status as the rule in line 5, so it is unclear which of the two applies; remove one, or give one a method, status or query of its own
            6:27: routes.3.query: "state" was found here; write names of query parameters, each with a value
            7:13: path "us*rs": "us*rs" has "*" after other text; a component has one wildcard or capture, at its beginning
            """#
        ),
        Mistaken(
            "a mapping for rules",
            #"""
            models: { User: { identity: id } }
            routes: { path: users, model: User }
            """#,
            #"""
            3:9: routes: a mapping was found here; write a list of rules, each beginning with "- "
            """#
        ),
    ]
}
