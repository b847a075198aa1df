// What the suite needs of undici, its one dependency: an agent that lets an interceptor see interim responses. Node's own fetch
// is an older undici; the suite's handlers speak the newer interface. This puts one on top of the other.

/** Node's own dispatcher, which exists from the first use of fetch on. */
const builtIn = () => globalThis[Symbol.for('undici.globalDispatcher.1')]

/** Shows a handler of fetch, which has the older interface, as one with the newer. */
class Newer {
  constructor(older) { this.older = older }
  onRequestStart(controller) { this.older.onConnect?.((reason) => controller.abort(reason)) }
  onResponseStart(controller, status, fields, text) {
    return this.older.onHeaders?.(status, controller.rawHeaders, controller.resume, text)
  }
  onResponseData(_, data) { return this.older.onData?.(data) }
  onResponseEnd(controller) { this.older.onComplete?.(controller.rawTrailers) }
  onResponseError(_, error) { this.older.onError?.(error) }
}

/** Shows a handler with the newer interface as one that Node's dispatcher calls. */
function older(newer) {
  const controller = {}
  return {
    onConnect(abort) { controller.abort = abort; newer.onRequestStart(controller) },
    onHeaders(status, rawHeaders, resume, text) {
      Object.assign(controller, { rawHeaders, resume })
      newer.onResponseStart(controller, status, byName(rawHeaders), text)
      return true
    },
    onData(data) { newer.onResponseData(controller, data); return true },
    onComplete(rawTrailers) { controller.rawTrailers = rawTrailers; newer.onResponseEnd(controller, byName(rawTrailers)) },
    onError(error) { newer.onResponseError(controller, error) }
  }
}

/** Fields as an object, of names and values that alternate. */
function byName(raw) {
  const fields = {}
  for (let i = 0; i + 1 < (raw ?? []).length; i += 2) fields[String(raw[i]).toLowerCase()] = String(raw[i + 1])
  return fields
}

export class Agent {
  compose(interceptor) {
    const dispatch = interceptor((options, newer) => builtIn().dispatch(options, older(newer)))
    return { dispatch: (options, handler) => dispatch(options, new Newer(handler)) }
  }
}
