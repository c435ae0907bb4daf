import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import type { Area } from '../../edge/pipeline/route.ts'
import { createLog } from '../../tasks/platform/log.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { startWorker } from '../../workers/worker.ts'
import { createEmptyDatabase, createTestDatabase } from '../database.ts'
import { SECRET, startEdge } from '../edge/harness.ts'
import { parseBlocks, readGuides, readOperatorPages, readReadme } from '../readme.ts'
import { Client, SHORT_LIVED_FLAGS, startProcess } from '../service.ts'
import { startModelServer } from '../standins/models.ts'
import { until } from '../until.ts'
import { findMissing, startProgram } from './programs.ts'

/** Runs every command in the README. */

const execFileAsync = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const readme = readReadme()
const blocks = parseBlocks(readOperatorPages())
const shellBlocks = blocks
  .filter(({ language, text }) => language === 'sh' && !text.startsWith('#'))
  .map(({ text }) => text)
const scripts = (
  JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> }
).scripts

const folder = mkdtempSync(join(tmpdir(), 'millrace-readme-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const { url } = await createTestDatabase()
const env = {
  ...process.env,
  NODE_ENV: 'test',
  SECRET_KEY: SECRET,
  DATABASE_URL: url,
  DATA_DIR: folder,
  LOG_LEVEL: 'error',
}
const models = await startModelServer()
after(() => models.stop())
const service = { DATA_DIR: folder, OPENAI_API_KEY: 'sk-test', OPENAI_BASE_URL: models.url }
const edge = await startEdge(url, { env: service })
await startProcess('worker', url, { ...service, WORKER_THREADS: '1' })
const base = new Client(edge.port).base

/**
 * Runs text in a shell. Replaces `npm run` and `npx` with the script itself, because npm starts more slowly than most.
 */
async function runShell(text: string, more: Record<string, string> = {}): Promise<string> {
  const node = [`'${process.execPath}'`, ...SHORT_LIVED_FLAGS].join(' ')
  const direct = text
    .replaceAll('npx millrace', `${node} edge/cli/millrace.mjs`)
    .replace(/npm run (\S+)( --)?/g, (_, name: string) => {
      assert.ok(scripts[name] !== undefined, `npm run ${name}`)
      return scripts[name].replaceAll('node ', `${node} `)
    })
  const options = { cwd: ROOT, env: { ...env, ...more }, maxBuffer: 2 ** 25 }
  const { stdout } = await execFileAsync('bash', ['-euo', 'pipefail', '-c', direct], options)
  return stdout
}

// Commands to install, start and test, in the README's order. The test run itself covers them.
const SKIPPED_BLOCKS = ['npm ci && npm start\n', 'npm ci && npm test\n']

test('every npm command exists, and the skipped ones are the first', () => {
  assert.deepEqual(shellBlocks.slice(0, 2), SKIPPED_BLOCKS)
  for (const [, name] of readme.matchAll(/npm run ([a-z:-]+)/g)) assert.ok(scripts[name!] !== undefined, name)
  for (const [, name] of readme.matchAll(/npm (start|test)\b/g)) assert.ok(scripts[name!] !== undefined, name)
})

/** Runs blocks in one shell, as if pasted. An HTTP error makes the run fail. */
const runBlocks = (texts: readonly string[]): Promise<string> =>
  runShell(
    texts
      .join('')
      .replace('http://127.0.0.1:8000', base)
      .replace('-o page.png', `-o ${join(folder, 'page.png')}`)
      .replaceAll('curl -s', 'curl --fail-with-body -s'),
  )

const tour = shellBlocks.filter((text) => text.includes('curl') || text.includes('post /'))

test('the tour works as pasted', async () => {
  assert.ok(tour.length >= 2)
  const output = await runBlocks(tour)
  for (const part of [
    /"role" ?: ?"admin"/,
    /"status" ?: ?"done"/,
    /"read" ?: ?4/,
    /"page_number" ?: ?1/,
    /"text" ?: ?"/,
  ])
    assert.match(output, part)
  assert.equal(readFileSync(join(folder, 'page.png')).subarray(1, 4).toString(), 'PNG')

  const examples = [...readGuides()]
    .map(([path, text]) => ({ path, shell: parseBlocks(text).filter(({ language }) => language === 'sh') }))
    .filter(({ shell }) => shell.length > 0)
    .map(({ path, shell }) => ({ path, text: shell.map(({ text }) => text).join('') }))
  // The guides continue the tour with its URL and AUTH. The first block of the tour registers the account, which must
  // not happen again.
  const signIn = tour[0]!.replace(/^curl[^\n]*\n[^\n]*\n/m, '')
  const expected: Readonly<Record<string, RegExp>> = {
    'edge/guides/accounts.md': /"key" ?: ?"mill_live_/,
    'edge/guides/ai.md': /"object" ?: ?"chat.completion"/,
    'edge/guides/command-line.md': /"done":2,"total":2/,
    'edge/guides/comms.md': /"message"/,
    'edge/guides/jobs.md': /"status" ?: ?"done"/,
    'edge/guides/schedules.md': /"next_runs"/,
    'edge/guides/tasks.md': /"jobs\.bulk"/,
    'edge/guides/webhooks.md': /"secret" ?: ?"whsec_/,
    'edge/guides/worker-queues.md': /"args" ?: ?\{"url"/,
  }
  assert.deepEqual(examples.map(({ path }) => path).sort(), Object.keys(expected))
  for (const { path, text } of examples) assert.match(await runBlocks([signIn, text]), expected[path]!, path)
})

const python = blocks.find(({ language }) => language === 'python')!.text

test('the worker in Python runs as printed', { skip: findMissing('python3') }, async () => {
  const signIn = tour[0]!.replace(/^curl[^\n]*\n[^\n]*\n/m, '')
  const client = new Client(edge.port)
  client.token = (await runBlocks([signIn, 'echo; echo "$TOKEN"\n'])).trim().split('\n').at(-1)!
  const args = { text: 'this has four words' }
  const added = await client.post('/api/v1/tasks/enqueue', { queue_type: 'words', task_name: 'count', args })
  const { task_id: id } = (await added.json()) as { task_id: string }
  const program = join(folder, 'words.py')
  writeFileSync(program, python.replace('http://127.0.0.1:8000', base).replace(/mill_live_…/, client.token))
  const worker = startProgram('python3', [program], { PYTHONPATH: join(ROOT, 'deploy/workers/python') })
  const job = await until('the job is done', async () => {
    const answer = await client.fetch(`/api/v1/jobs/${id}`)
    const found = (await answer.json()) as Readonly<Record<string, unknown>>
    return found.finished_at !== null && found
  })
  assert.deepEqual([job.status, job.result, job.label], ['done', 4, 'Counting'])
  assert.equal(await worker.stop(), 0, worker.log.join('\n'))
})

test('the demo runs next to a service', async () => {
  const demo = shellBlocks.find((text) => text.startsWith('npm run demo'))!
  const output = await runShell(demo, { PUBLIC_BASE_URL: base })
  assert.match(output, /Read 4, unread 0/)
})

test('the operator commands work, and a backup is restored', async () => {
  const operate = shellBlocks.find((text) => text.includes('npm run backup'))!
  const restore = shellBlocks.find((text) => text.includes('npm run restore'))!
  const file = join(folder, 'mill.backup')
  const archive = join(folder, 'reader.zip')
  const output = await runShell(operate.replace('mill.backup', file).replace('reader.zip', archive))
  assert.match(output, /Nothing to migrate/)
  assert.match(output, /ops@example.com is a new admin\nPassword: \S+/)
  assert.match(output, /Sessions of ops@example.com revoked: 0/)
  assert.match(output, /Exported reader@example.com to \S+reader.zip: \d+ bytes/)
  assert.match(output, /Failed jobs retried: 0/)
  assert.match(output, /Wrote .*mill.backup: \d+ tables/)
  const text = restore
    .replace('mill.backup', file)
    .replace('DATA_DIR=restored', `DATA_DIR=${join(folder, 'restored')}`)
  assert.match(
    await runShell(text, { DATABASE_URL: await createEmptyDatabase() }),
    /Restored the state of .*: \d+ tables/,
  )
})

test('the settings in the examples exist', () => {
  const examples = blocks.filter(({ language }) => language === 'ini')
  assert.ok(examples.length >= 3)
  for (const { text } of examples) {
    const lines = text.trim().split('\n')
    // A command in the README generates this key.
    parseSettings({ SECRET_KEY: SECRET, ...Object.fromEntries(lines.map((line) => line.split(/=(.*)/))) })
  }
})

test('the route and the task of the examples work', async () => {
  // Copies the rooms and adds the route and task where the README says.
  for (const room of ['sql', 'tasks', 'edge'])
    cpSync(join(ROOT, room), join(folder, 'copy', room), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'copy/node_modules'))
  writeFileSync(join(folder, 'copy/package.json'), '{"type":"module"}')
  const snippets = blocks.filter(({ language }) => language === 'ts')
  assert.equal(snippets.length, 3)
  for (const { text } of snippets) {
    const file = join(folder, 'copy', /^\/\/ (\S+)$/m.exec(text)![1]!)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  const tasks = join(folder, 'copy/tasks/mill/index.ts')
  writeFileSync(tasks, `import { grind } from './grind.task.ts'\nexport const tasks = [grind]\n`)
  const { mill } = (await import(pathToFileURL(join(folder, 'copy/edge/routes/mill.ts')).href)) as {
    mill: Area
  }
  const api = await startEdge(url, { areas: [mill] })
  const worker = await startWorker({
    settings: parseSettings({ NODE_ENV: 'test', SECRET_KEY: SECRET, WORKER_QUEUES: 'mill' }),
    databaseUrl: url,
    directUrl: url,
    log: await createLog('silent', 'worker'),
    taskModules: [pathToFileURL(tasks).href],
  })
  after(() => worker.stop())
  const { TOKEN } = await registerToken('miller@example.com')
  const answer = await api.post('/api/v1/mill/grind', { token: TOKEN, json: { sacks: 3 } })
  assert.deepEqual([answer.status, answer.json], [200, { flour: 240 }])
  assert.equal((await api.post('/api/v1/mill/grind', { token: TOKEN, json: { sacks: 0 } })).status, 422)
})

async function registerToken(email: string): Promise<{ TOKEN: string }> {
  const client = new Client(edge.port)
  await client.register(email)
  return { TOKEN: client.token }
}

test('every link in the documents has a target, including headings', () => {
  const slug = (heading: string): string =>
    heading
      .toLowerCase()
      .replace(/[^a-z0-9 -]/g, '')
      .replaceAll(' ', '-')
  for (const name of globSync(
    '{*,edge/*,tasks/*,sql/*,workers/*,workers/*/*,test/*,test/perf/*,edge/pages/*,deploy/*}.md',
    { cwd: ROOT },
  )) {
    const text = readFileSync(join(ROOT, name), 'utf8')
    for (const [, target, heading] of text.matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)) {
      const file = target === '' ? join(ROOT, name) : join(ROOT, dirname(name), target!)
      assert.ok(existsSync(file), `${target} in ${name}`)
      if (heading === undefined) continue
      const headings = [...readFileSync(file, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
        slug(title!),
      )
      assert.ok(headings.includes(heading), `#${heading} in ${target}`)
    }
  }
})

test('every link and image of the README exists, and no image is large', () => {
  for (const [, target] of readme.matchAll(/(?:\]\(|src="|srcset=")([^)"#]+)[)"]/g)) {
    if (/^https?:/.test(target!)) continue
    assert.ok(existsSync(join(ROOT, target!)), target)
    if (target!.endsWith('.png')) assert.ok(statSync(join(ROOT, target!)).size < 200_000, target)
  }
})
