// Runs the suite of github.com/http-tests/cache-tests against Larder, and compares what does not pass with docs/http-reference.md.
//
//   node run.mjs LARDER SUITE REFERENCE [TEST]
//
// With the name of a test, it shows that test's requests and responses instead.
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [larder, suite, reference, single = ''] = process.argv.slice(2)
/** How many tests of each kind pass at least. */
const floors = { required: 159, optimal: 96 }

const folder = mkdtempSync(join(tmpdir(), 'larder-conformance-'))
const children = []
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

/** Starts a program and returns the port that it says in a line of the given form. */
function start(program, args, options, stream, form) {
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  children.push(child)
  let text = ''
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', (code) => reject(new Error(`${program} ended with ${code}:\n${text}`)))
    for (const [name, output] of [['stdout', child.stdout], ['stderr', child.stderr]]) {
      output.on('data', (data) => {
        text += data
        if (single && name === 'stdout') process.stdout.write(data)
        const port = name === stream && form.exec(text)?.[1]
        if (port) resolve(port)
      })
    }
  })
}

/** Runs a program to its end and returns what it printed. */
function run(program, args, options) {
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  let text = ''
  child.stdout.on('data', (data) => { text += data })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', (code) => code === 0 ? resolve(text) : reject(new Error(`${program} ${args} ended with ${code}:\n${text}`)))
  })
}

const environment = { ...process.env, no_proxy: '*', npm_config_id: single, npm_package_config_id: single }
const origin = await start(process.execPath, ['test-engine/server/server.mjs'], {
  cwd: suite,
  env: { ...environment, npm_config_protocol: 'http', npm_config_port: '0', npm_config_pidfile: join(folder, 'pid') }
}, 'stdout', /Listening on http:.*:(\d+)\/\n/)

const config = join(folder, 'larder.yaml')
writeFileSync(config, `upstreams:
  suite:
    url: http://127.0.0.1:${origin}
    shared: true
    cookies: replay
    targets: [Larder-Cache-Control, CDN-Cache-Control]
`)
const port = await start(larder, [
  // Each test is an upstream of its own. In the mode auto, those that break connections would have requests of others held back.
  'serve', '--config', config, '--mode', 'online', '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0', '--store', join(folder, 'larder.db')
], {}, 'stderr', /listening on http:\/\/127\.0\.0\.1:(\d+)\n/)

const printed = await run(process.execPath, ['--no-warnings', 'test-engine/cli.mjs'], {
  cwd: suite, env: { ...environment, npm_config_base: `http://127.0.0.1:${port}` }
})
if (single) {
  console.log(printed)
  process.exit(0)
}

const results = JSON.parse(printed)
const { default: suites } = await import(pathToFileURL(join(suite, 'tests/index.mjs')))
const { determineTestResult, resultTypes } = await import(pathToFileURL(join(suite, 'test-engine/lib/results.mjs')))
const kinds = {}
for (const { tests } of suites) for (const test of tests) kinds[test.id] = test.kind ?? 'required'

// The rows of the table: `| test | reason |`.
const section = readFileSync(reference, 'utf8').split('\n## ').find((text) => text.startsWith('Independent tests')) ?? ''
const listed = new Set([...section.matchAll(/^\| `([^`]+)` \| \S.* \|$/gm)].map((match) => match[1]))

let isGood = true
const fault = (text) => { isGood = false; console.log(`conformance: ${text}`) }
const passed = { required: 0, optimal: 0 }
const counts = { required: 0, optimal: 0 }
for (const [id, result] of Object.entries(results)) {
  const kind = kinds[id]
  if (!(kind in floors)) continue // a check asks which of two allowed behaviours a cache has
  counts[kind] += 1
  const isPassed = determineTestResult(suites, id, results) === resultTypes.pass
  if (isPassed) {
    passed[kind] += 1
    if (listed.has(id)) fault(`${id} passes; remove it from the list in ${reference}`)
  } else if (!listed.has(id)) {
    const reason = result === true ? 'a test that it depends on does not pass' : result.join(': ')
    fault(`${id} (${kind}) does not pass and is not listed in ${reference}: ${reason}`)
  }
}
for (const id of listed) if (!(id in results)) fault(`${id} is listed in ${reference}, but there is no such test`)
for (const [kind, floor] of Object.entries(floors)) {
  if (passed[kind] < floor) fault(`only ${passed[kind]} ${kind} tests pass; ${floor} must`)
}
console.log(`conformance: of ${Object.keys(results).length} tests run, ` +
  Object.keys(floors).map((kind) => `${passed[kind]} of ${counts[kind]} ${kind} ones pass`).join(', '))
process.exit(isGood ? 0 : 1)
