/// Mistakes in properties, their conversions and checks.
extension MappingMistakesTests {
    static let ofProperties = [
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
            2:62: models.A.properties.a.as: "yyyy-MM-ddTHH:mm" is not a date pattern: "T" is not a field; write fields such as yyyy-MM-dd HH:mm:ss or MMMM d, yyyy, and other letters between single quotes, as in yyyy-MM-dd'T'HH:mm
            2:124: models.A.properties.b.as: "yyyy 'the" is not a date pattern: a quote in it is not closed
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
            "a list for a source",
            #"""
            models: { User: { identity: nothing, properties: { a: [] } } }
            """#,
            #"""
            2:55: models.User.properties.a: an empty list was found here; write the member it is read from, or { from: …, as: …, model: … }
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
            2:47: model User, property a: "x..y" is not a key path; write member names separated by dots, \. for a dot within a name
            2:68: model User, property b: "x[" is not a key path; a list's elements are not told apart by their place; "x[]" takes each of them, and \[ is a bracket within a name
            2:77: model User, property c: "[]" is not a key path; write member names separated by dots, \. for a dot within a name
            """#
        ),
        Mistaken(
            "an enum without a way back",
            #"""
            models: { User: { identity: id, properties: { a: { from: a, as: { enum: { open: o, shut: o } } } } } }
            """#,
            #"""
            2:65: models.User.properties.a.as: "open" and "shut" are both mapped to "o", so that there is no way back; give each its own, use "default" for one of them, or write { one_way: … } around the map
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
            2:103: models.User.properties.a.pattern: "[a-z" is not a regular expression
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
            "an unknown context value",
            #"""
            models: { User: { identity: "@url.login", properties: { o: "@header.etag", p: "@paren.id", q: "@url" } } }
            routes:
              - { path: "users/{login}", model: User }
            """#,
            #"""
            2:76: model User, property p: there is no "@paren.id"; write @url, @url.NAME, @query.NAME, @header.NAME, @parent.PATH, @root.PATH, @index, @key or @self
            """#
        ),
        Mistaken(
            "a capture of no route",
            #"""
            models: { User: { identity: ["@url.owner", id], properties: { login: "@url.login", o: "@url.nobody" } } }
            routes:
              - { path: "users/{login}", model: User }
            """#,
            #"""
            2:29: no path of a route captures {owner}, so "@url.owner" has no value; write {owner} in the path
            2:84: no path of a route captures {nobody}, so "@url.nobody" has no value; write {nobody} in the path
            """#
        ),
        Mistaken(
            "a query parameter without a value",
            #"""
            models: { User: { identity: id, properties: { t: "@query.access_token", u: "@query.utm_source", p: "@query.page" } } }
            routes:
              - { path: users, model: User, key: { ignore: ["utm_*"] } }
            """#,
            #"""
            2:47: the parameter access_token is a credential by "principal", so "@query.access_token" has no value; use another source, or add "-?access_token" to "principal"
            2:73: every route ignores the parameter utm_source, so "@query.utm_source" has no value; remove it from "ignore" of "key"
            """#
        ),
        Mistaken(
            "a list of conversions",
            #"""
            models: { User: { identity: id, properties: { a: { from: a, as: [] }, b: { from: b, as: [date, nope] }, c: { from: c, as: { one_way: { enum: { x: z, y: z } } } }, d: { from: d, model: User, unique: true } } } }
            """#,
            #"""
            2:65: models.User.properties.a.as: a list of conversions has none in it
            2:96: models.User.properties.b.as: there is no conversion "nope"; write base64, boolean, date, decimal, integer, string, url, uuid, a form with enum, values, date, number, list_of, dictionary_of, chain, one_way, or a list of conversions, of which the first that fits counts
            2:164: model User, property d: "unique" is only for lists; remove it, or declare one
            """#
        ),
        Mistaken(
            "write paths to nowhere",
            #"""
            models: { User: { identity: id, properties: { location: { from: loc, model: Location }, location.latitude: lat, location.lng: x, place.x: y } }, Location: { properties: { latitude: latitude } } }
            """#,
            #"""
            2:113: model User: "location.lng" must name a relation to one object, then a property of that object's model
            2:130: model User: "place.x" must name a relation to one object, then a property of that object's model
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
            2:67: models.User.properties.a.type: "text" is not one of string, number, integer, boolean, object, array, null; did you mean "string"?
            2:99: models.User.properties.b.required: "maybe" is neither true nor false
            2:128: models.User.properties.c.null: "yes" is neither true nor false; write true
            2:157: models.User.properties.d.coerce: "1" is neither true nor false; write true
            """#
        ),
        Mistaken(
            "nested conversions",
            #"""
            models: { User: { identity: id, properties: { a: { from: a, as: { chain: [ date, nope ] } }, b: { from: b, as: { list_of: x } }, c: { from: c, as: { one_way: date, back: never } }, d: { from: d, as: { values: {} } } } } }
            """#,
            #"""
            2:82: models.User.properties.a.as.chain: there is no conversion "nope"; write base64, boolean, date, decimal, integer, string, url, uuid, a form with enum, values, date, number, list_of, dictionary_of, chain, one_way, or a list of conversions, of which the first that fits counts
            2:123: models.User.properties.b.as.list_of: there is no conversion "x"; write base64, boolean, date, decimal, integer, string, url, uuid, a form with enum, values, date, number, list_of, dictionary_of, chain, one_way, or a list of conversions, of which the first that fits counts
            2:171: models.User.properties.c.as.one_way: "never" is not one of drop, raw, fail
            2:210: models.User.properties.d.as.values: a mapping was found here; write the upstream's values, each with another, such as { 1: one, 2: two }
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
            2:85: models.User.properties.a.as: "back" has no effect with "date"; remove it
            """#
        ),
        Mistaken(
            "conversions that are none",
            #"""
            models: { User: { identity: id, properties: { a: { from: a, as: {} }, b: { from: b, as: [date] }, c: { from: c, as: } } } }
            """#,
            #"""
            2:65: models.User.properties.a.as: exactly one conversion belongs here; write a conversion: base64, boolean, date, decimal, integer, string, url, uuid, a form with enum, values, date, number, list_of, dictionary_of, chain, one_way, or a list of conversions, of which the first that fits counts
            2:117: models.User.properties.c.as: nothing was found here; write a conversion: base64, boolean, date, decimal, integer, string, url, uuid, a form with enum, values, date, number, list_of, dictionary_of, chain, one_way, or a list of conversions, of which the first that fits counts
            """#
        ),
        Mistaken(
            "ranges that are none",
            #"""
            models: { User: { identity: id, properties: { a: { from: a, range: 5 }, b: { from: b, range: [a, b] } } } }
            """#,
            #"""
            2:68: models.User.properties.a.range: "5" was found here; write the smallest and the largest, such as [0, 100]; ~ for no bound
            2:95: models.User.properties.b.range: "a" was found here; write a number, or ~ for no bound
            """#
        ),
        Mistaken(
            "a model in the place of a member",
            #"""
            models: { User: { identity: id }, Order: { identity: id, properties: { customer: User } },
              Cart: { identity: id, properties: { User: User } },
              Sale: { identity: id, properties: { buyer: { from: User, model: User } } } }
            """#,
            #"""
            2:72: "User" is read as the name of a member; for an object of the model write customer: { model: User }
            """#
        ),
    ]
}
