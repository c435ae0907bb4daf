import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { connect } from '../../sql/connections/driver.ts'
import { migrate } from '../../sql/server/migrate.ts'
import { StartError } from '../../sql/server/start-error.ts'
import { backUp } from '../../tasks/backup/backup.ts'
import { restore } from '../../tasks/backup/restore.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { scheduleEntries } from '../../tasks/schedules/entries.ts'
import { createEmptyDatabase } from '../database.ts'
import { buildTextPdf } from '../pdfs.ts'
import { Client, SECRET, startProcess } from '../service.ts'
import { stopAfterFile } from '../services.ts'
import { startModelServer } from '../standins/models.ts'
import { until } from '../until.ts'

/** The service runs as a role that cannot change the schema, in a database whose owner is not a superuser. */

type Rows = Record<string, unknown>[]

const replaceRole = (url: string, role: string): string => url.replace(/\/\/[^@]*@/, `//${role}:p@`)

async function queryRows(url: string, text: string, values: unknown[] = []): Promise<Rows> {
  const client = await connect({ url, applicationName: 'test' })
  try {
    return (await client.query<Record<string, unknown>>(text, values)).rows
  } finally {
    await client.end()
  }
}

const [owner, app] = ['owner', 'app'].map((kind) => `test_${kind}_${randomBytes(6).toString('hex')}`) as [
  string,
  string,
]
const serverUrl = process.env.TEST_DATABASE_URL!
// Roles belong to the cluster, so dropping the database does not remove them.
for (const role of [owner, app]) {
  await queryRows(serverUrl, `create role ${role} login password 'p'`)
  stopAfterFile(() => queryRows(serverUrl, `drop role ${role}`))
}

async function createOwnedDatabase(): Promise<{ ownerUrl: string; appUrl: string }> {
  const url = await createEmptyDatabase()
  await queryRows(
    serverUrl,
    `alter database ${new URL(url.replace(/@[^/]*/, '@x')).pathname.slice(1)} owner to ${owner}`,
  )
  return { ownerUrl: replaceRole(url, owner), appUrl: replaceRole(url, app) }
}

const folder = mkdtempSync(join(tmpdir(), 'millrace-role-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const { ownerUrl, appUrl } = await createOwnedDatabase()
await migrate(ownerUrl, { appRole: app })
const query = (text: string, values: unknown[] = []): Promise<Rows> => queryRows(ownerUrl, text, values)

test('edges and workers work fully without owning any object', async () => {
  const models = await startModelServer()
  after(() => models.stop())
  models.script = () => ({ pieces: ['An ', 'answer.'] })
  mkdirSync(join(folder, 'files'))
  writeFileSync(join(folder, 'files/mill.md'), '# Mills\n\nWater turns the wheel.')
  const env = {
    ...{
      RAG_EMBEDDINGS: 'lexical',
      RAG_ROOT: join(folder, 'files'),
      AUDIT_KEEP_DAYS: '60',
      DATA_DIR: join(folder, 'data'),
    },
    ...{ OPENAI_API_KEY: 'k', OPENAI_BASE_URL: models.url },
  }
  const [edge] = await Promise.all([startProcess('edge', appUrl, env), startProcess('worker', appUrl, env)])
  const client = new Client(edge.ready.port!)
  assert.equal((await client.register('ann@example.com')).role, 'admin')
  const parseOk = async (answer: Response): Promise<Record<string, unknown>> => {
    const text = await answer.text()
    assert.ok(answer.ok, `${answer.status} ${text}`)
    return JSON.parse(text) as Record<string, unknown>
  }

  const { id } = await parseOk(
    await client.upload(await buildTextPdf(2, { line: () => 'by the river' }), 'a.pdf'),
  )
  assert.deepEqual(await parseOk(await client.post(`/api/v1/documents/${id}/extract`)), {
    ...{ read: 2, unread: 0, skipped: 0 },
  })
  const found = await parseOk(await client.fetch('/api/v1/documents?search=river'))
  assert.equal(found.total, 1)
  await parseOk(await client.post('/rag/index', { collection_name: 'mills', path: '.' }))
  await parseOk(await client.post('/rag/search', { collection_name: 'mills', query: 'wheel' }))
  await parseOk(await client.post('/api/v1/ai/chat', { message: 'Hello' }))

  await query(`insert into audit_event (kind, at) values ('account.updated', now() - interval '5 months'),
    ('account.updated', now() - interval '1 month')`)
  for (const { identifier } of scheduleEntries) {
    const { job_id } = await parseOk(await client.post(`/api/v1/schedules/${identifier}/run`))
    await until(`${identifier} has run`, async () => {
      const [job] = await query('select status, error_detail from job where id = $1', [job_id])
      assert.ok(!['failed', 'cancelled'].includes(String(job!.status)), `${identifier}: ${job!.error_detail}`)
      return job!.status === 'done'
    })
  }
  const [{ months }] = (await query(
    `select count(*)::int as months from pg_inherits where inhparent = 'audit_event'::regclass`,
  )) as [{ months: number }]
  assert.ok(months >= 4, `the default, the last month and the next ones: ${months}`)
  assert.deepEqual(await query('select relname from pg_class where relowner = $1::regrole', [app]), [])
})

test('the application role makes a backup, and the owner restores it', async () => {
  const settings = parseSettings({ NODE_ENV: 'test', SECRET_KEY: SECRET, DATABASE_APP_ROLE: app })
  const report = await backUp(settings, { url: appUrl, directUrl: appUrl }, join(folder, 'backup'))
  assert.ok(report.tables > 20)
  const to = await createOwnedDatabase()
  const restored = await restore(
    settings,
    { url: to.ownerUrl, directUrl: to.ownerUrl },
    join(folder, 'backup'),
  )
  assert.equal(restored.rows, report.rows)
  assert.deepEqual(await queryRows(to.appUrl, 'select email from account'), [{ email: 'ann@example.com' }])
})

test('the role can read and write every table except migration records', async () => {
  const rows = await query(
    `select oid::regclass::text as name,
      has_table_privilege($1, oid, 'select') and has_table_privilege($1, oid, 'insert')
        and has_table_privilege($1, oid, 'update') and has_table_privilege($1, oid, 'delete') as writable
    from pg_class where relnamespace in ('public'::regnamespace, 'partitions'::regnamespace, 'graphile_worker'::regnamespace)
      and relkind in ('r', 'p', 'v') and relowner = '${owner}'::regrole order by 1`,
    [app],
  )
  assert.ok(rows.length > 50)
  assert.deepEqual(
    rows.filter(({ writable }) => !writable).map(({ name }) => name),
    ['graphile_worker.migrations', 'migration', 'migration_functions'],
  )
})

test('the role cannot change the schema, run programs or read server files', async () => {
  for (const text of [
    'create table mine (id integer)',
    'create table partitions.mine (id integer)',
    'create schema mine',
    'drop table account',
    'alter table account add column mine integer',
    'truncate audit_event',
    'alter table audit_event disable trigger user',
    'create index on account (id)',
    'create function mine() returns integer language sql return 1',
    'create or replace function iso(at timestamptz) returns text language sql return 1',
    'alter function iso(timestamptz) owner to current_user',
    'create extension hstore',
    'create role mine',
    `drop policy ${app} on graphile_worker._private_jobs`,
    `set role ${owner}`,
    `copy account to program 'true'`,
    `copy account from program 'true'`,
    `copy account to '/tmp/account'`,
    `select pg_read_file('/etc/passwd')`,
    `select lo_import('/etc/passwd')`,
    'alter system set fsync = off',
    "insert into migration (name) values ('999999-mine')",
    "update migration_functions set digest = ''",
    'delete from graphile_worker.migrations',
  ])
    await assert.rejects(queryRows(appUrl, text), /permission denied|must be owner/, text)
})

test('functions with owner rights have a fixed search path, and only the role may call them', async () => {
  const called = await query(
    `select proname, proconfig[1] as path,
      has_function_privilege($1, oid, 'execute') as app,
      exists (select from aclexplode(coalesce(proacl, acldefault('f', proowner))) where grantee = 0) as everybody
    from pg_proc where pronamespace = 'public'::regnamespace and prosecdef order by 1`,
    [app],
  )
  const expected = { path: 'search_path=public, pg_temp', app: true, everybody: false }
  assert.deepEqual(called, [
    { proname: 'partitions_maintain', ...expected },
    { proname: 'rag_neighbours_prepare', ...expected },
  ])
})

test('the role can use tables of later releases, and a release without changes keeps grants', async () => {
  const readGrants = () =>
    query(
      `select relname, relacl::text, relrowsecurity from pg_class where relowner = '${owner}'::regrole order by oid`,
    )
  const before = await readGrants()
  assert.deepEqual(await migrate(ownerUrl, { appRole: app }), [])
  assert.deepEqual(await readGrants(), before)
  await query('create table later (id integer generated always as identity)')
  await queryRows(appUrl, 'insert into later default values')
  assert.deepEqual(await queryRows(appUrl, 'select id from later'), [{ id: 1 }])
})

test('rejects a missing role, the owner and superusers before it applies migrations', async () => {
  const { ownerUrl: url } = await createOwnedDatabase()
  const superuser = new URL(serverUrl.replace(/@[^/]*/, '@x')).username
  for (const [role, reason] of [
    ['nobody_at_all', /the role nobody_at_all does not exist: create role nobody_at_all login/],
    [owner, /is a superuser or has the rights of the schema owner/],
    [superuser, /is a superuser or has the rights of the schema owner/],
  ] as const)
    await assert.rejects(
      migrate(url, { appRole: role }),
      (error) => error instanceof StartError && reason.test(error.message),
    )
  const [{ tables }] = (await queryRows(
    url,
    `select count(*)::int as tables from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'
       and relname not like 'migration%'`,
  )) as [{ tables: number }]
  assert.equal(tables, 0)
})
