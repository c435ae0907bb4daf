import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { createServer } from '../../edge/http/server.ts'
import { createTestDatabase } from '../database.ts'
import { findFreePort } from '../free-port.ts'
import { launchProcess, runScript, SECRET } from '../service.ts'

/** An error that the operator has to fix ends the start with one sentence, status 2 and no stack trace. */

const { url } = await createTestDatabase()
const folder = mkdtempSync(join(tmpdir(), 'millrace-refused-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const portHolder = net.createServer()
portHolder.listen(0, '127.0.0.1')
await once(portHolder, 'listening')
after(() => portHolder.close())
const PORT = String((portHolder.address() as AddressInfo).port)

const envWithUrl = (
  change: (url: string) => string,
): { DATABASE_URL: string; DATABASE_URL_UNPOOLED: string } => ({
  DATABASE_URL: change(url),
  DATABASE_URL_UNPOOLED: change(url),
})
const WRONG_PASSWORD = envWithUrl((text) => text.replace(/:[^:@/]*@/, ':wrong@'))
const NO_DATABASE = envWithUrl((text) => text.replace(/[^/]+$/, 'nowhere'))
const FILE_PATH = join(folder, 'file')
writeFileSync(FILE_PATH, '')

describe('a single process does not start', () => {
  const testRefusal = (
    kind: 'edge' | 'worker',
    what: string,
    env: Readonly<Record<string, string>>,
    sentence: string | RegExp,
  ) =>
    test(`${kind}: ${what}`, async () => {
      const log: string[] = []
      await assert.rejects(
        launchProcess(kind, url, env, [], log),
        new RegExp(`^Error: The ${kind} ended with 2:`),
      )
      const { level, msg, err } = JSON.parse(log.at(-1)!) as { level: number; msg: string; err?: unknown }
      assert.deepEqual({ level, err }, { level: 60, err: undefined })
      assert.ok(typeof sentence === 'string' ? msg === sentence : sentence.test(msg), msg)
      assert.ok(!/^\s+at /m.test(log.join('\n')), 'no stack')
    })

  testRefusal(
    'worker',
    'one of its queues is none',
    { WORKER_QUEUES: 'ai,loadtest' },
    /^WORKER_QUEUES: unknown queue loadtest; the queues are accounts, ai, .*, voice, webhooks$/,
  )
  testRefusal(
    'edge',
    'the database is missing',
    NO_DATABASE,
    /^DATABASE_URL can't be used: .*"nowhere" does not/,
  )
  testRefusal(
    'edge',
    'there is no database',
    envWithUrl(() => ''),
    /^DATABASE_URL is not set: /,
  )
  testRefusal(
    'edge',
    'its folder is a file',
    { SECRET_KEY: '', DATA_DIR: FILE_PATH },
    `DATA_DIR can't be ${FILE_PATH}: a part of its path is a file. Set a folder to which this user may write.`,
  )
})

// Suppresses the warnings about slow statements on a busy machine.
const QUIET_ENV = { LOG_LEVEL: 'warn', SLOW_QUERY_MS: '0', SECRET_KEY: SECRET }

/** Runs the start of the whole service and returns its output and exit status. */
async function startAll(
  env: Readonly<Record<string, string>>,
  args: readonly string[] = [],
): Promise<{ status: number; lines: string[] }> {
  const given = { ...QUIET_ENV, DATABASE_URL: url, DATA_DIR: folder, PORT: '0', ...env }
  const { status, stdout, stderr } = await runScript('workers/start.ts', given, args)
  return { status, lines: `${stdout}${stderr}`.trim().split('\n') }
}

describe('the whole service does not start', () => {
  const testEnd = (what: string, env: Readonly<Record<string, string>>, ...sentences: readonly RegExp[]) =>
    test(what, async () => {
      const { status, lines } = await startAll(env)
      assert.equal(status, 2, lines.join('\n'))
      assert.equal(lines.length, sentences.length, lines.join('\n'))
      for (const [i, sentence] of sentences.entries()) assert.match(lines[i]!, sentence)
    })

  testEnd(
    'when its edge finds its port in use',
    { PORT },
    /is in use: stop/,
    /"edge-1 can't start; see its error above"/,
  )
  testEnd(
    'when its folder is a file',
    { DATABASE_URL: '', DATA_DIR: FILE_PATH },
    /DATA_DIR can't be .*: a part of/,
  )
  testEnd(
    'when a setting is wrong',
    { PORT: 'abc' },
    /^Invalid settings:$/,
    /^ {2}PORT: must be a whole number$/,
  )
  testEnd('when the password is wrong', WRONG_PASSWORD, /DATABASE_URL can't be used: password auth/)
})

test('shows its usage even if other arguments are wrong', async () => {
  const help = await startAll({ PORT: 'abc' }, ['--help'])
  assert.deepEqual([help.status, help.lines[0]], [0, 'Usage: npm start'])
  const unknown = await startAll({}, ['--port', '80'])
  assert.deepEqual([unknown.status, unknown.lines[0]], [2, 'Usage: npm start'])
})

test('edges do not share a port with those of another start by accident', async () => {
  const port = await findFreePort()
  // Listens on a shared port, like an edge of another start.
  const shared = createServer(() => {}, { onError: () => {} })
  after(() => shared.close())
  await shared.listen({ host: '127.0.0.1', port, exclusive: false })
  const { status, lines } = await startAll({ PORT: String(port), WEB_CONCURRENCY: '2' })
  assert.equal(status, 2)
  assert.match(lines.join('\n'), /is in use: stop/)
})
