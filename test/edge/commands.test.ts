import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { openPromise } from 'yauzl'
import { runAdmin } from '../../edge/admin/commands.ts'
import { UsageError } from '../../tasks/platform/command.ts'
import { SecretKeys } from '../../tasks/platform/keys.ts'
import { createTestDatabase } from '../database.ts'
import { createAdminSettings } from '../job-settings.ts'
import { until } from '../until.ts'
import { PASSWORD, startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'
import { enableTotp } from './totp-help.ts'

const { api, ...database } = await startEdgeAndDatabase({ env: { LOGIN_MAX_FAILURES: '2' } })
const ledger = createLedger(database)
const run = (...args: string[]): Promise<string[]> => runAdmin(args, database.db, createAdminSettings())
const signIn = (username: string, password: string) =>
  api.post('/api/v1/auth/token', { form: { username, password } })
/** True if a path answers with the status. Tests poll it, because edges learn of changes through notifications. */
const hasStatus = async (path: string, token: string, status: number): Promise<boolean> =>
  (await api.get(path, { token })).status === status
const parsePassword = (lines: readonly string[]): string => /^Password: (\S+)$/.exec(lines[1]!)![1]!
const readAuditData = async (kind: string): Promise<unknown> =>
  (await database.query('select data from audit_event where kind = $1 order by id desc limit 1', [kind]))[0]
    ?.data

test('create-admin creates an account with a random password and prints it once', async () => {
  const lines = await run('create-admin', ' New@Example.com')
  assert.equal(lines[0], 'new@example.com is a new admin')
  const answer = await signIn('new@example.com', parsePassword(lines))
  assert.equal(answer.status, 200)
  const { role } = (await api.get('/api/v1/auth/me', { token: answer.json.access_token })).json
  assert.equal(role, 'admin')
  assert.deepEqual(await readAuditData('account.registered'), { by: 'command line', role: 'admin' })
})

test('create-admin promotes an existing account immediately and keeps its password by default', async () => {
  const ann = await api.register('ann@example.com')
  assert.equal((await api.get('/api/v1/auth/users', { token: ann.token })).status, 403)
  const kept = 'ann@example.com is now an admin; its password is unchanged (--new-password sets a new one)'
  assert.deepEqual(await run('create-admin', 'ann@example.com'), [kept, 'There are 2 active admins'])
  await until('the edge sees the promotion', () => hasStatus('/api/v1/auth/users', ann.token, 200))
  assert.equal((await signIn('ann@example.com', PASSWORD)).status, 200)
  const lines = await run('create-admin', 'ann@example.com', '--new-password')
  assert.equal(lines[0], 'ann@example.com is already an admin')
  await until('earlier sessions have ended', () => hasStatus('/api/v1/auth/me', ann.token, 401))
  assert.equal((await signIn('ann@example.com', PASSWORD)).status, 401)
  assert.equal((await signIn('ann@example.com', parsePassword(lines))).status, 200)
})

test('create-user creates an account that is never an admin, and rejects a taken address', async () => {
  const lines = await run('create-user', ' Uma@Example.com')
  assert.equal(lines[0], 'uma@example.com is a new user')
  const answer = await signIn('uma@example.com', parsePassword(lines))
  const { role } = (await api.get('/api/v1/auth/me', { token: answer.json.access_token })).json
  assert.equal(role, 'user')
  await assert.rejects(run('create-user', 'uma@example.com'), /already exists/)
  const empty = await createTestDatabase()
  await runAdmin(['create-user', 'first@example.com'], empty.db, createAdminSettings())
  assert.deepEqual(await empty.query('select role from account'), [{ role: 'user' }])
})

test('unlock removes the lock of an address', async () => {
  await api.register('bob@example.com')
  for (let n = 0; n < 3; n++) await signIn('bob@example.com', 'wrong horse')
  assert.equal((await signIn('bob@example.com', PASSWORD)).status, 403)
  assert.deepEqual(await run('unlock', 'bob@example.com'), ['bob@example.com is unlocked'])
  assert.equal((await signIn('bob@example.com', PASSWORD)).status, 200)
  assert.deepEqual(await run('unlock', 'bob@example.com'), ['bob@example.com had no failed logins'])
})

test('disable-totp lets an account sign in without its device', async () => {
  const { id, email } = await enableTotp(api, await api.register('lost@example.com'))
  assert.equal((await signIn(email, PASSWORD)).status, 401)
  assert.deepEqual(await run('disable-totp', email), [`One-time codes of ${email} are disabled`])
  assert.equal((await signIn(email, PASSWORD)).status, 200)
  assert.deepEqual(await run('disable-totp', email), [`${email} has no one-time codes`])
  await assert.rejects(run('disable-totp', 'no@example.com'), /No account with the address no@example.com/)
  const events = await database.query(
    `select data from audit_event where kind = 'account.totp_disabled' and account_id = $1`,
    [id],
  )
  assert.deepEqual(events, [{ data: { by: 'command line' } }])
})

test('revoke-sessions ends all sessions and their access tokens', async () => {
  const cyd = await api.register('cyd@example.com')
  const second = (await signIn('cyd@example.com', PASSWORD)).json.access_token
  assert.deepEqual(await run('revoke-sessions', 'cyd@example.com'), [
    'Sessions of cyd@example.com revoked: 2',
  ])
  for (const token of [cyd.token, second])
    await until('the session has ended', () => hasStatus('/api/v1/auth/me', token, 401))
  assert.deepEqual(await run('revoke-sessions', 'cyd@example.com'), [
    'Sessions of cyd@example.com revoked: 0',
  ])
})

const addFailedJob = async (
  queue: string,
  more = {},
  code = 'internal',
  owner: number | null = null,
): Promise<string> => {
  const payload = { documentId: 1, force: true }
  const id = await ledger.add(owner, { queue, payload, ...more })
  await ledger.claim(id)
  await ledger.finish(id, 'failed', { code, detail: 'x' })
  return id
}

let documents = 1000
/** Returns job options with a new actor. */
const createActor = () => ({ payload: { documentId: ++documents, force: true } })

test('retry-failed retries each failed job once and skips those it cannot run', async () => {
  const [one, two] = [await addFailedJob('documents'), await addFailedJob('other')]
  await addFailedJob('documents', { name: 'gone.task' })
  const again = async (id: string) =>
    (await database.query('select status from job where retry_of = $1', [id])).map(({ status }) => status)
  assert.deepEqual(await run('retry-failed', 'other'), ['Failed jobs retried: 1'])
  // The retry of the first job will join this live retry of the second, which has the same actor.
  assert.deepEqual([await again(one), await again(two)], [[], ['available']])
  const [retried, skipped, expiry, ...more] = await run('retry-failed')
  assert.deepEqual([retried, skipped, more], ['Failed jobs retried: 1', 'Failed jobs skipped: 1', []])
  const expiresAt = Date.parse(/^The first of them can be retried until (\S+Z)$/.exec(expiry!)![1]!)
  const [{ ended } = {}] = await database.query(
    `select min(finished_at) as ended from job where status = 'failed' and id not in (select retry_of from job where retry_of is not null)`,
  )
  assert.equal(expiresAt, (ended as Date).getTime() + 604_800_000)
})

test('retry-failed filters jobs and can print their number and expiry only', async () => {
  const { token } = await api.register('dan@example.com')
  const { id: dan } = (await api.get('/api/v1/auth/me', { token })).json
  const began = new Date().toISOString()
  for (const code of ['a.b', 'a.b', 'c.d']) await addFailedJob('flock', createActor(), code)
  await addFailedJob('flock', createActor(), 'a.b', dan)
  const count = async (...args: string[]) =>
    Number(
      /^Failed jobs that would be retried: (\d+)$/.exec(
        (await run('retry-failed', ...args, '--dry-run'))[0]!,
      )![1],
    )
  const shown = [
    await count('flock'),
    await count('flock', '--code', 'a.b'),
    await count('flock', '--task', 'documents.draw'),
    await count('--task', 'documents.extract', '--limit', '2'),
    await count('flock', '--owner', `${dan}`),
    await count('flock', '--since', began),
    await count('flock', '--since', '2100-01-01T00:00Z'),
  ]
  assert.deepEqual(shown, [4, 3, 0, 2, 1, 4, 0])
  assert.match(
    (await run('retry-failed', 'flock', '--dry-run'))[1]!,
    /^The first of them can be retried until \S+Z$/,
  )
  assert.equal((await run('retry-failed', 'none', '--dry-run')).length, 1)
  assert.deepEqual(await run('retry-failed', 'flock', '--code', 'a.b', '--limit', '1'), [
    'Failed jobs retried: 1',
  ])
  assert.equal(await count('flock'), 3)
})

test('retry-failed ends even if the retried jobs fail again immediately', async () => {
  for (let n = 0; n < 3; n++) await addFailedJob('again', createActor())
  const { db } = database
  let failing = 0
  const failingAgain = {
    ...db,
    transaction: async (work: Parameters<typeof db.transaction>[0]) => {
      const done = await db.transaction(work)
      if (++failing < 20) await addFailedJob('again', createActor())
      return done
    },
  } as typeof db
  assert.deepEqual(await runAdmin(['retry-failed', 'again'], failingAgain, createAdminSettings()), [
    'Failed jobs retried: 3',
  ])
})

test('export writes an account and its files into a new file that only its owner reads', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-export-'))
  after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'xan.zip')
  const xan = await api.register('xan@example.com')
  const { id } = (await api.upload(xan.token, 'some words', { name: 'words.txt' })).json
  const [line] = await run('export', ' Xan@Example.com', file)
  assert.equal(line, `Exported xan@example.com to ${file}: ${statSync(file).size} bytes`)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const names: string[] = []
  const zip = await openPromise(file)
  for await (const { fileName } of zip.eachEntry()) names.push(fileName)
  assert.ok(names.includes('account.json') && names.includes(`documents/${id}/words.txt`), names.join(', '))
  assert.deepEqual(await database.query("select id from job where name = 'accounts.export'"), [])
  await assert.rejects(run('export', 'xan@example.com', file), /xan.zip exists already/)
  await assert.rejects(run('export', 'no@example.com', `${file}2`), /No account with the address/)
  await assert.rejects(run('export', 'xan@example.com', join(folder, 'none', 'a.zip')), /ENOENT/)
})

test('invalid arguments print the usage', async () => {
  for (const args of [
    [],
    ['create-admin'],
    ['create-user'],
    ['export', 'ann@example.com'],
    ['dance', 'ann@example.com'],
    ['unlock', 'a@example.com', 'b@example.com'],
    ['unlock', 'a@example.com', '--force'],
    ['retry-failed', 'one', 'two'],
    ['retry-failed', '--force'],
    ['retry-failed', '--dry-run=yes'],
  ])
    await assert.rejects(run(...args), /^Error: Usage: npm run admin/, args.join(' '))
  for (const [option, value] of [
    ['--limit', '0'],
    ['--owner', 'ann@example.com'],
    ['--since', 'yesterday'],
  ] as const)
    await assert.rejects(
      run('retry-failed', option, value),
      new RegExp(`^Error: ${option} must be .*, not ${value}$`),
    )
  await assert.rejects(run('unlock', 'nobody'), /Not an email address: nobody/)
  await assert.rejects(run('revoke-sessions', 'no@example.com'), /No account with the address no@example.com/)
})

test('reseal counts the sealed texts by their keys', async () => {
  const fresh = await createTestDatabase()
  const [OLD, NEW] = ['the-old-key-of-thirty-two-letters', 'the-new-key-of-thirty-two-letters']
  for (const secret of [OLD, NEW, 'x'.repeat(32)]) {
    const [id, keys] = [randomUUID(), new SecretKeys({ secrets: [secret], stored: [] })]
    await fresh.query('insert into stored_key values ($1, $2)', [id, keys.seal(`stored_key:${id}`, 'x')])
  }
  const progress: string[] = []
  const lines = await runAdmin(['reseal'], fresh.db, createAdminSettings([NEW, OLD]), (line) =>
    progress.push(line),
  )
  assert.deepEqual(lines, [
    'Texts sealed under SECRET_KEY: 2, of them now: 1',
    'Texts that still need SECRET_KEYS_PREVIOUS: 0',
    'Texts that no key opens: 1',
  ])
  assert.deepEqual(progress, ['1 sealed, at stored_key'])
  await assert.rejects(run('reseal', 'everything'), UsageError)
})
