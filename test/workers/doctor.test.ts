import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { computeClockOffset, type DatabaseFacts } from '../../sql/server/doctor.ts'
import { SecretKeys } from '../../tasks/platform/keys.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { judgeFacts } from '../../workers/doctor/database.ts'
import { judgeSpace } from '../../workers/doctor/folders.ts'
import { checkKeys } from '../../workers/doctor/keys.ts'
import {
  checkIssuer,
  checkMail,
  checkModels,
  checkPayments,
  checkTelephony,
} from '../../workers/doctor/providers.ts'
import { createTestDatabase } from '../database.ts'
import { startEdge } from '../edge/harness.ts'
import { KEY_MATERIAL } from '../keys.ts'
import { runScript } from '../service.ts'
import { startOidcIssuer } from '../standins/oidc.ts'
import { createSettings, startTestWorker } from './parts.ts'
import { startSmtpServer } from './smtp.ts'

/** Tests `npm run doctor`. */

const { url, query } = await createTestDatabase()
const folder = mkdtempSync(join(tmpdir(), 'millrace-doctor-'))
after(() => rmSync(folder, { recursive: true, force: true }))

async function runDoctor(env: Readonly<Record<string, string>>, ...args: string[]) {
  const given = { NODE_ENV: 'development', DATABASE_URL: url, DATA_DIR: folder, ...env }
  const { status, stdout, stderr } = await runScript('workers/doctor/main.ts', given, args)
  return { status, lines: `${stdout}${stderr}`.trim().split('\n') }
}

test('next to a running service, it finds no problems beyond those of the test', async () => {
  const edge = await startEdge(url)
  // The lease is long, so that the worker still counts as alive if the doctor runs late.
  const settings = createSettings(url, { LEASE_SECONDS: '60' })
  const { worker } = await startTestWorker(url, '', { settings })
  const { status, lines } = await runDoctor({ PORT: String(edge.port), SECRET_KEY: KEY_MATERIAL.secrets[0]! })
  const problems = lines.filter((line) => line.startsWith('PROBLEM'))
  assert.equal(problems.length, 1, lines.join('\n'))
  assert.match(problems[0]!, /set fsync = on$/)
  assert.equal(status, 1)
  for (const what of [
    /^ok +settings +valid, for development/,
    /^ok +port +an edge listens on /,
    /^ok +DATA_DIR /,
    /^(ok|note) +TMPDIR /,
    /^ok +database +PostgreSQL \d+\.\d+ at /,
    /^ok +migrations +all are applied$/,
    /^ok +clock /,
    /^ok +connections +WEB_CONCURRENCY=1/,
    /^ok +workers +1 running; they serve all waiting jobs$/,
    /^ok +keys +sealed texts under SECRET_KEY: 1$/,
    /^ok +files +postgres stores and deletes files$/,
    /^note +payments +disabled: PROVIDER_SECRET_KEY not set$/,
    /^1 problem, \d+ notes$/,
  ])
    assert.ok(
      lines.some((line) => what.test(line)),
      `${what}\n${lines.join('\n')}`,
    )
  assert.deepEqual(await query('select count(*)::int as n from blob'), [{ n: 0 }])
  await worker.stop()
})

test('a disk with little space is a note, and a full one a problem', () => {
  const judge = (mebibytes: number) => judgeSpace('DATA_DIR', 'here', mebibytes * 1024 ** 2)
  assert.deepEqual(
    [0, 63, 64, 1023, 1024].map((mebibytes) => judge(mebibytes).level),
    ['problem', 'problem', 'note', 'note', 'ok'],
  )
  assert.equal(judge(63).text, 'here, but its disk has only 63 MiB free')
})

test('functions of another version and a folder without write access are separate problems', async () => {
  const [{ digest }] = (await query("select digest from migration_functions where area = 'jobs'")) as [
    { digest: string },
  ]
  await query("update migration_functions set digest = 'another' where area = 'jobs'")
  const file = join(folder, 'no-folder')
  writeFileSync(file, '')
  const { status, lines } = await runDoctor({ BLOB_STORE: `file:${file}` })
  await query(`update migration_functions set digest = '${digest}' where area = 'jobs'`)
  assert.equal(status, 1)
  for (const what of [
    /^note +migrations +the SQL functions of jobs have another version: /,
    /^PROBLEM files +BLOB_STORE=file\S* fails: \S/,
  ])
    assert.ok(
      lines.some((line) => what.test(line)),
      `${what}\n${lines.join('\n')}`,
    )
})

test('it continues after problems, lists them, and exits with status 1', async () => {
  const taken = createTcpServer((socket) => socket.destroy())
  await once(taken.listen(0, '127.0.0.1'), 'listening')
  const { port } = taken.address() as AddressInfo
  const wrong = url.replace(/:[^:@/]*@/, ':wrong@')
  const { status, lines } = await runDoctor({
    PORT: String(port),
    DATABASE_URL: wrong,
    DATA_DIR: '/proc/none',
  })
  taken.close()
  assert.equal(status, 1)
  for (const what of [
    /^PROBLEM port .* is in use/,
    /^PROBLEM DATA_DIR /,
    /^PROBLEM database +can't use DATABASE_URL: /,
  ])
    assert.ok(
      lines.some((line) => what.test(line)),
      `${what}\n${lines.join('\n')}`,
    )
})

test('with invalid settings, it runs the other checks and names the skipped ones', async () => {
  const { status, lines } = await runDoctor({
    PORT: 'abc',
    S3_REGION: 'EU 1',
    TELEPHONY_PHONE_NUMBER: 'Mill',
    RAG_ROOT: join(folder, 'no-such-folder'),
  })
  assert.equal(status, 1)
  for (const what of [
    /^PROBLEM settings +PORT: must be a whole number$/,
    /^PROBLEM settings +S3_REGION: /,
    /^note +port +not checked: PORT is invalid$/,
    /^note +files +not checked: S3_REGION is invalid$/,
    /^note +telephony +not checked: TELEPHONY_PHONE_NUMBER is invalid$/,
    /^PROBLEM RAG_ROOT .*no-such-folder/,
    /^ok +DATA_DIR /,
    /^ok +migrations /,
    /^note +email /,
  ])
    assert.ok(
      lines.some((line) => what.test(line)),
      `${what}\n${lines.join('\n')}`,
    )
})

test('without a database, it checks the data folder', async () => {
  const file = join(folder, 'not-a-folder')
  writeFileSync(file, '')
  const production = { NODE_ENV: 'production', DATABASE_URL: '', PUBLIC_BASE_URL: 'http://mill.internal' }
  for (const [store, expected] of [
    [`file:${folder}/blobs/here`, /^ok +files +file:\S+ is writable$/],
    [`file:${file}`, /^PROBLEM files +\S+ is not a folder$/],
    ['postgres', /^note +files +not checked: it needs a working, migrated database$/],
  ] as const) {
    const { lines } = await runDoctor({ ...production, BLOB_STORE: store })
    for (const what of [
      expected,
      /^PROBLEM settings +DATABASE_URL: required/,
      /^PROBLEM settings +SECRET_KEY: required/,
      /^note +settings +PUBLIC_BASE_URL is http/,
      /^note +database +not checked: DATABASE_URL is invalid$/,
    ])
      assert.ok(
        lines.some((line) => what.test(line)),
        `${what}\n${lines.join('\n')}`,
      )
  }
})

test('invalid arguments exit with status 2', async () => {
  assert.deepEqual(await runDoctor({}, '--fast'), { status: 2, lines: ['Usage: npm run doctor'] })
})

const GOOD_FACTS: DatabaseFacts = {
  version: 180_004,
  address: 'db:5432',
  readOnly: false,
  isSuperuser: false,
  clockOffsetMs: 3,
  connections: { max: 97, ofOthers: 0 },
  fsync: true,
  autovacuum: true,
  vector: '0.8.1',
  isVectorInstalled: true,
  pendingMigrations: [],
  changedFunctions: [],
  workers: 2,
  unservedQueues: [],
}

describe('checks of a database', () => {
  const settings = parseSettings({ NODE_ENV: 'test', DATABASE_URL: url })
  const findProblems = (change: Partial<DatabaseFacts>, of = settings) =>
    judgeFacts(of, { ...GOOD_FACTS, ...change }).filter(({ level }) => level !== 'ok')

  test('a healthy one has no findings', () => assert.deepEqual(findProblems({}), []))

  for (const [change, level, text] of [
    [{ version: 140_012 }, 'problem', /^PostgreSQL 14\.12 at db:5432: version 15 or newer is required$/],
    [{ readOnly: true }, 'problem', /use the URL of the primary/],
    [{ isSuperuser: true }, 'note', /^the role is a superuser/],
    [{ fsync: false }, 'problem', /set fsync = on$/],
    [{ autovacuum: false }, 'problem', /set autovacuum = on$/],
    [{ pendingMigrations: ['000001-x'] }, 'problem', /^000001-x not applied: run npm run migrate$/],
    [
      { changedFunctions: ['jobs'] },
      'note',
      /^the SQL functions of jobs have another version: run npm run migrate, unless/,
    ],
    [{ vector: null }, 'note', /a superuser runs: create extension vector$/],
    [{ vector: null, isVectorInstalled: false }, 'note', /^not installed: every edge keeps/],
    [{ clockOffsetMs: -61_000 }, 'problem', /^the database is 61 s behind this machine/],
    [{ clockOffsetMs: 1_600 }, 'problem', /^the database is 2 s ahead of this machine/],
    [
      { connections: { max: 97, ofOthers: 40 } },
      'problem',
      /use up to 76 of 97, others use 40: lower WORKER_THREADS/,
    ],
    [{ unservedQueues: ['ai', 'rag'] }, 'problem', /^jobs wait in queues without a worker: ai, rag$/],
    [{ workers: 0 }, 'note', /^none runs$/],
  ] as const)
    test(`${JSON.stringify(change)} is a ${level}`, () => {
      const found = findProblems(change as Partial<DatabaseFacts>)
      assert.deepEqual([found.length, found[0]!.level], [1, level])
      assert.match(found[0]!.text, text)
    })

  test('the answer time is not counted as clock offset', () => {
    const offsets = [-2000, 0, 1, 2999, 3000, 4500].map((told) => computeClockOffset(told, 0, 3000))
    assert.deepEqual(offsets, [-2000, 0, 0, 0, 0, 1500])
  })

  test('an embedded one is migrated by the start', () => {
    const [found] = findProblems({ pendingMigrations: ['000001-x'] }, parseSettings({ NODE_ENV: 'test' }))
    assert.deepEqual([found!.level, found!.text], ['note', 'npm start applies them'])
  })
})

describe('checks of keys', () => {
  const [OLD, NEW] = ['the-old-key-of-thirty-two-letters', 'the-new-key-of-thirty-two-letters']
  const check = async (env: Record<string, string>) => {
    const found = await checkKeys(parseSettings({ NODE_ENV: 'test', ...env }), url)
    return found.map(({ level, text }) => `${level} ${text}`)
  }
  const seal = async (secret: string): Promise<void> => {
    const [id, keys] = [randomUUID(), new SecretKeys({ secrets: [secret], stored: [] })]
    await query('truncate stored_key')
    await query('insert into stored_key values ($1, $2)', [id, keys.seal(`stored_key:${id}`, 'x')])
  }

  test('say whether previous keys are needed, and that a key is lost', async () => {
    await seal(OLD)
    assert.deepEqual(await check({ SECRET_KEY: OLD }), ['ok sealed texts under SECRET_KEY: 1'])
    assert.deepEqual(await check({ SECRET_KEY: NEW, SECRET_KEYS_PREVIOUS: OLD }), [
      'ok sealed texts under SECRET_KEY: 0',
      'note sealed texts under SECRET_KEYS_PREVIOUS: 1; npm run admin -- reseal',
    ])
    const lost = 'problem sealed texts that no key opens: 1; see "Lost key" in deploy/operating.md'
    assert.deepEqual(await check({ SECRET_KEY: NEW }), ['ok sealed texts under SECRET_KEY: 0', lost])
    await seal(NEW)
    assert.deepEqual(await check({ SECRET_KEY: NEW, SECRET_KEYS_PREVIOUS: OLD }), [
      'ok sealed texts under SECRET_KEY: 1',
      'note no sealed text needs SECRET_KEYS_PREVIOUS; remove it after a day',
    ])
  })

  test('generate no key', async () => {
    const DATA_DIR = mkdtempSync(join(tmpdir(), 'millrace-doctor-'))
    assert.equal((await check({ DATA_DIR })).length, 2)
    assert.deepEqual(readdirSync(DATA_DIR), [])
    rmSync(DATA_DIR, { recursive: true })
  })
})

describe('checks of providers', () => {
  const KEY = 'the-key'
  const asked: string[] = []
  const provider = createServer((request, response) => {
    const { authorization = '', 'x-api-key': apiKey = '' } = request.headers
    asked.push(`${request.method} ${request.url}`)
    const given = `${authorization} ${apiKey} ${Buffer.from(authorization.slice(6), 'base64')}`
    const unasked = request.url === '/cohere/models' ? 404 : request.url!.startsWith('/down/') ? 503 : null
    const isForbidden = given.includes('restricted') && /^\/v1\/(balance|refunds|events)\b/.test(request.url!)
    response.statusCode = isForbidden ? 403 : (unasked ?? (given.includes(KEY) ? 200 : 401))
    response.end('{}')
  })
  before(() => once(provider.listen(0, '127.0.0.1'), 'listening'))
  const base = (): string => `http://127.0.0.1:${(provider.address() as AddressInfo).port}`
  const check = async (env: Record<string, string>) => {
    const all = {
      NODE_ENV: 'test',
      EMAIL_PROVIDER_API_BASE_URL: base(),
      EMAIL_SMTP_URL: 'outbox:',
      TELEPHONY_API_BASE_URL: base(),
      PROVIDER_API_BASE_URL: base(),
      OPENAI_BASE_URL: `${base()}/openai`,
      ANTHROPIC_BASE_URL: `${base()}/anthropic`,
      COHERE_BASE_URL: `${base()}/cohere`,
    }
    const settings = parseSettings({ ...all, ...env })
    const checks = [checkMail, checkTelephony, checkPayments, checkModels]
    return (await Promise.all(checks.map((one) => one(settings)))).flat()
  }
  after(() => provider.close())
  const TELEPHONY = { TELEPHONY_ACCOUNT_SID: `AC${'0'.repeat(32)}`, TELEPHONY_PHONE_NUMBER: '+14155552671' }

  test('keys are tried without changing anything', async () => {
    const { port } = await startSmtpServer()
    const found = await check({
      EMAIL_SMTP_URL: `smtp://127.0.0.1:${port}`,
      EMAIL_PROVIDER_FROM_EMAIL: 'mill@example.com',
      EMAIL_PROVIDER_API_KEY: KEY,
      ...TELEPHONY,
      TELEPHONY_AUTH_TOKEN: KEY,
      PROVIDER_SECRET_KEY: KEY,
      PROVIDER_WEBHOOK_SECRET: 'whsec_x',
      OPENAI_API_KEY: KEY,
      ANTHROPIC_API_KEY: KEY,
      COHERE_API_KEY: KEY,
    })
    assert.deepEqual(
      found.map(({ name: what, level }) => `${what} ${level}`),
      [
        'email ok',
        'email domains ok',
        'telephony ok',
        'payments ok',
        'openai ok',
        'anthropic ok',
        'cohere note',
      ],
    )
    assert.ok(asked.length >= 6 && asked.every((line) => line.startsWith('GET ')))
  })

  test('the rights that a restricted key of the payment provider lacks are named', async () => {
    const found = await check({
      PROVIDER_SECRET_KEY: `restricted-${KEY}`,
      PROVIDER_WEBHOOK_SECRET: 'whsec_x',
    })
    assert.deepEqual(
      found.filter(({ name }) => name === 'payments').map(({ level, text }) => [level, text.split(': ')[1]]),
      [
        ['ok', undefined],
        ['problem', 'Charges and Refunds, Events'],
      ],
    )
  })

  test('a rejected key is named by its setting, and never shown', async () => {
    const found = await check({
      EMAIL_PROVIDER_API_KEY: 'bad-one',
      ...TELEPHONY,
      TELEPHONY_AUTH_TOKEN: 'bad-one',
      PROVIDER_SECRET_KEY: 'bad-one',
      OPENAI_API_KEY: 'bad-one',
    })
    const problems = found.filter(({ level }) => level === 'problem').map(({ text }) => text)
    for (const name of [
      'EMAIL_PROVIDER_API_KEY',
      'TELEPHONY_AUTH_TOKEN',
      'PROVIDER_SECRET_KEY',
      'OPENAI_API_KEY',
    ])
      assert.ok(
        problems.some((text) => text.includes(`refuses ${name} (status 401): replace it`)),
        name,
      )
    assert.ok(problems.some((text) => text.endsWith('PROVIDER_WEBHOOK_SECRET not set')))
    assert.ok(!JSON.stringify(found).includes('bad-one'))
  })

  test('unreachable providers are problems, and missing settings notes', async () => {
    const gone = 'http://127.0.0.1:9'
    const found = await check({
      OPENAI_API_KEY: KEY,
      OPENAI_BASE_URL: gone,
      ANTHROPIC_API_KEY: KEY,
      ANTHROPIC_BASE_URL: `${base()}/down`,
      EMAIL_SMTP_URL: 'smtp://127.0.0.1:9',
      EMAIL_PROVIDER_FROM_EMAIL: 'mill@example.com',
    })
    assert.deepEqual(
      found.map(({ name: what, level }) => `${what} ${level}`),
      ['email problem', 'telephony note', 'payments note', 'openai problem', 'anthropic problem'],
    )
    assert.match(found[0]!.text, /^127\.0\.0\.1:9 does not accept mail: /)
    assert.equal(
      found[4]!.text,
      `${base()} responds with status 503: try again later, or see its status page`,
    )
  })

  test('an issuer must answer under its own address', async () => {
    const issuer = await startOidcIssuer()
    after(() => issuer.stop())
    const judge = async (url: string) => {
      const env = { NODE_ENV: 'test', OIDC_ISSUER: url, OIDC_CLIENT_ID: 'mill', OIDC_CLIENT_SECRET: KEY }
      return (await checkIssuer(parseSettings(env))).map(({ level, text }) => `${level} ${text}`)
    }
    assert.deepEqual(await judge(issuer.issuer), [`ok ${issuer.issuer} answers`])
    const down = `${base()}/down/here`
    assert.deepEqual(await judge(down), [
      `problem ${down} responds with status 503: sign-ins through it fail`,
    ])
    assert.match((await judge('http://127.0.0.1:9'))[0]!, /^problem can't reach http:/)
    assert.deepEqual(await checkIssuer(parseSettings({ NODE_ENV: 'test' })), [])
  })

  test('incomplete settings for sending are a problem, and missing ones a note', async () => {
    const production = {
      ...{
        NODE_ENV: 'production',
        DATABASE_URL: url,
        SECRET_KEY: 'a secret for tests, long enough to be one',
      },
      EMAIL_SMTP_URL: '',
    }
    const lines = async (env: Record<string, string>) =>
      (await check({ ...production, ...env })).map(
        ({ level, name: what, text }) => `${level} ${what} ${text}`,
      )
    const none = await lines({})
    assert.ok(
      none.includes('note email disabled: EMAIL_PROVIDER_API_KEY and EMAIL_PROVIDER_FROM_EMAIL not set'),
      none.join('\n'),
    )
    for (const [env, expected] of [
      [{ EMAIL_SMTP_URL: 'smtp://mail.x' }, 'problem email disabled: EMAIL_PROVIDER_FROM_EMAIL not set'],
      [
        { EMAIL_PROVIDER_FROM_EMAIL: 'a@b.example' },
        'problem email disabled: EMAIL_PROVIDER_API_KEY not set',
      ],
      [
        { TELEPHONY_AUTH_TOKEN: KEY },
        'problem telephony disabled: TELEPHONY_ACCOUNT_SID and TELEPHONY_PHONE_NUMBER not set',
      ],
      [TELEPHONY, 'problem telephony disabled: TELEPHONY_AUTH_TOKEN not set'],
    ] as const) {
      const found = await lines(env)
      assert.ok(found.includes(expected), found.join('\n'))
    }
    const { port } = await startSmtpServer()
    const sender = await check({ EMAIL_SMTP_URL: `smtp://127.0.0.1:${port}` })
    assert.deepEqual(
      sender.slice(0, 2).map(({ level, text }) => [level, text]),
      [
        ['ok', `127.0.0.1:${port} accepts the login`],
        ['problem', 'the sender is millrace@localhost: set EMAIL_PROVIDER_FROM_EMAIL'],
      ],
    )
  })
})
