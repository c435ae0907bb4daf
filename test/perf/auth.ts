import { type Child, startChild } from './children.ts'
import { formatRequest, type LoadOrder, type LoadResult, ORDER_DEFAULTS } from './load/load.ts'
import type { Login, LoginOrder, LoginResult } from './load/logins.ts'
import type { Finding, Measured } from './report.ts'
import { hashPassword, PASSWORD, queryRows, type Stack, signUp } from './stack.ts'
import { areaUnderCurve, median, percentile } from './stats.ts'
import { measureUndisturbed, waitUntilQuiet } from './usage.ts'

const SAMPLES = Number(process.env.BENCH_SAMPLES ?? 600)
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 9)
const ADDRESSES = 60
const WARM_UP_LOGINS = 20
const LOGINS_PER_SECOND = 30
const CHUNK_SIZE = 60

/** Measures whether the duration of logins leaks information, and how logins slow down other requests. */
export async function measureAuth(stack: Stack): Promise<Measured> {
  const url = await stack.createDatabase()
  // Rate limits are off, and only the measurement of locked accounts locks any.
  const env = { RATE_LIMIT_LOGIN: '0', RATE_LIMIT_REGISTER: '0' }
  const patient = await stack.edge(url, { ...env, LOGIN_MAX_FAILURES: '1000' })
  const account = await signUp(patient.port)
  await insertAccounts(url)
  const client = await startChild(new URL('./load/logins.ts', import.meta.url))

  const addresses = await compareLogins(client, patient.port, 401, {
    ours: (i) => ({ username: `known${i}@example.com`, password: `not it ${i}` }),
    other: (i) => ({ username: `nobody${i}@example.com`, password: `not it ${i}` }),
  })
  const strict = await stack.edge(url, { ...env, LOGIN_MAX_FAILURES: '1', LOGIN_LOCK_SECONDS: '86400' })
  for (let i = 0; i < ADDRESSES; i++)
    await measureLogins(client, strict.port, 401, [
      { username: `locked${i}@example.com`, password: 'not it' },
    ])
  const locked = await compareLogins(client, strict.port, 403, {
    ours: (i) => ({ username: `locked${i}@example.com`, password: PASSWORD }),
    other: (i) => ({ username: `locked${i}@example.com`, password: `not it, either` }),
  })
  await strict.stop()
  const busy = await measureDuringLogins(stack, client, patient, account.token)
  await client.stop()
  return {
    rounds: ROUNDS,
    findings: [
      ...createLeakFindings('login, address known', 'address unknown', addresses),
      ...createLeakFindings('locked, password right', 'password wrong', locked),
      ...busy.findings,
    ],
    notes: [
      `${SAMPLES} logins of each kind, one at a time, in random order within each pair; ${ADDRESSES} addresses of each.`,
      busy.note,
    ],
    details: { addresses, locked, beside: busy.details },
  }
}

interface Samples {
  readonly ours: readonly number[]
  readonly other: readonly number[]
}

/**
 * Compares the durations of two kinds of logins by the area under the ROC curve. 0.5 means that they are
 * indistinguishable.
 */
function createLeakFindings(name: string, reference: string, { ours, other }: Samples): Finding[] {
  return [
    {
      name,
      unit: 'ms',
      values: [median(ours)],
      reference: { name: reference, values: [median(other)] },
    },
    {
      name: `${name}: area under the ROC curve`,
      unit: '',
      values: [areaUnderCurve(ours, other)],
      target: { of: 'value', atLeast: 0.45, atMost: 0.55 },
    },
  ]
}

type LoginMaker = (address: number) => Login

async function compareLogins(
  client: Child,
  port: number,
  status: number,
  kinds: { readonly ours: LoginMaker; readonly other: LoginMaker },
): Promise<Samples> {
  const ours: number[] = []
  const other: number[] = []
  for (let done = -WARM_UP_LOGINS; done < SAMPLES; done += CHUNK_SIZE) {
    await waitUntilQuiet()
    const pairs = Array.from({ length: done < 0 ? WARM_UP_LOGINS : CHUNK_SIZE }, () => Math.random() < 0.5)
    const logins = pairs.flatMap((oursFirst, i) => {
      const pair = [kinds.ours(i % ADDRESSES), kinds.other(i % ADDRESSES)]
      return oursFirst ? pair : pair.reverse()
    })
    const ms = await measureLogins(client, port, status, logins)
    if (done < 0) done = -CHUNK_SIZE
    else
      for (const [i, oursFirst] of pairs.entries()) {
        const [first, second] = [ms[2 * i]!, ms[2 * i + 1]!]
        ours.push(oursFirst ? first : second)
        other.push(oursFirst ? second : first)
      }
  }
  return { ours, other }
}

interface Round {
  readonly idle: LoadResult
  readonly busy: LoadResult
  readonly logins: LoginResult
  readonly foreignCores: number
}

/** Measures GET /auth/me at a moderate rate, with and without concurrent logins. */
async function measureDuringLogins(
  stack: Stack,
  client: Child,
  edge: Child & { readonly port: number },
  token: string,
): Promise<{ findings: Finding[]; note: string; details: unknown }> {
  const generator = await startChild(new URL('./load/generator.ts', import.meta.url))
  const order: LoadOrder = {
    ...ORDER_DEFAULTS,
    port: edge.port,
    connections: 4,
    pauseMs: 5,
    warmMs: 500,
    measureMs: 2 * ORDER_DEFAULTS.measureMs,
    head: formatRequest('GET', '/api/v1/auth/me', token),
    serverPids: [edge.pid, client.pid],
    postmaster: stack.postmaster,
  }
  const run = async (): Promise<LoadResult> => {
    const { result, error } = await generator.ask<{ result?: LoadResult; error?: string }>(order)
    if (result === undefined) throw new Error(`The load generator failed: ${error}`)
    return result
  }
  const logins = Array.from({ length: ADDRESSES }, (_, i) => ({
    username: `known${i}@example.com`,
    password: PASSWORD,
  }))
  const pair = async (idleFirst: boolean): Promise<Round> => {
    const before = idleFirst ? await run() : null
    await sendOrder(client, { kind: 'start', port: edge.port, perSecond: LOGINS_PER_SECOND, logins })
    const busy = await run()
    const result = await sendOrder(client, { kind: 'stop' })
    const idle = before ?? (await run())
    return { idle, busy, logins: result, foreignCores: Math.max(idle.foreignCores, busy.foreignCores) }
  }
  const rounds: Round[] = []
  for (let round = 0; round < ROUNDS; round++)
    rounds.push(await measureUndisturbed(() => pair(round % 2 === 0)))
  await generator.stop()
  const p99 = {
    name: `GET /auth/me during ${LOGINS_PER_SECOND} logins/s, p99`,
    unit: 'ms',
    values: rounds.map(({ busy }) => busy.p99),
    reference: { name: 'without logins', values: rounds.map(({ idle }) => idle.p99) },
    target: { of: 'ratio' as const, atMost: 5 },
  }
  const p50 = {
    name: `GET /auth/me during ${LOGINS_PER_SECOND} logins/s, p50`,
    unit: 'ms',
    values: rounds.map(({ busy }) => busy.p50),
    reference: { name: 'without logins', values: rounds.map(({ idle }) => idle.p50) },
  }
  const took = rounds.flatMap(({ logins }) => logins.ms)
  const rate = median(rounds.map(({ logins }) => logins.perSecond))
  const note = `${Math.round(median(rounds.map(({ busy }) => busy.perSecond)))} GET /auth/me per second; ${rate.toFixed(1)} logins/s were answered, p50 ${median(took).toFixed(1)} ms, p99 ${percentile(took, 0.99).toFixed(1)} ms; other processes used ${median(rounds.map(({ foreignCores }) => foreignCores)).toFixed(2)} cores.`
  return { findings: [p99, p50], note, details: rounds.map(({ logins: _, ...round }) => round) }
}

async function sendOrder(client: Child, order: LoginOrder): Promise<LoginResult> {
  const { result, error } = await client.ask<{ result?: LoginResult; error?: string }>(order)
  if (result === undefined) throw new Error(`The login client failed: ${error}`)
  return result
}

async function measureLogins(
  client: Child,
  port: number,
  status: number,
  logins: readonly Login[],
): Promise<readonly number[]> {
  return (await sendOrder(client, { kind: 'measure', port, status, logins })).ms
}

/** Inserts accounts of two kinds, which all have the same password. */
async function insertAccounts(url: string): Promise<void> {
  await queryRows(
    url,
    `insert into account (email, password_hash) select kind || n || '@example.com', $2
    from generate_series(0, $1::int - 1) n, unnest(array['known', 'locked']) kind`,
    [ADDRESSES, await hashPassword()],
  )
  await queryRows(url, 'vacuum analyze')
}
