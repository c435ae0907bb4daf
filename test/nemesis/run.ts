import { setTimeout as delay } from 'node:timers/promises'
import { createChance } from '../chance.ts'
import { until } from '../until.ts'
import type { Area, MakeArea } from './area.ts'
import { accounts } from './areas/accounts.ts'
import { batches } from './areas/batches.ts'
import { blog } from './areas/blog.ts'
import { chats } from './areas/chats.ts'
import { documents } from './areas/documents.ts'
import { messages } from './areas/messages.ts'
import { organizations } from './areas/organizations.ts'
import { payments } from './areas/payments.ts'
import { reads } from './areas/reads.ts'
import { retrieval } from './areas/retrieval.ts'
import { schedules } from './areas/schedules.ts'
import { tasks } from './areas/tasks.ts'
import { voices } from './areas/voices.ts'
import { workers } from './areas/workers.ts'
import { Caller, CallHistory } from './caller.ts'
import { diagnose } from './diagnostics.ts'
import { DEATHS, Nemesis } from './faults.ts'
import { judge } from './judge.ts'
import { type Mode, startWorld, type World } from './world.ts'

/** The areas, each with its number of simulated users. */
const AREAS: Readonly<Record<string, readonly [make: MakeArea, users: number]>> = {
  accounts: [accounts, 1],
  organizations: [organizations, 1],
  blog: [blog, 1],
  documents: [documents, 2],
  messages: [messages, 2],
  payments: [payments, 2],
  chats: [chats, 2],
  tasks: [tasks, 2],
  batches: [batches, 2],
  schedules: [schedules, 1],
  retrieval: [retrieval, 1],
  voices: [voices, 1],
  workers: [workers, 3],
  reads: [reads, 2],
}

const ACTION_PAUSE_MS = [50, 600] as const
const JOBS_TIMEOUT_MS = 300_000
const MAX_REPORTED_VIOLATIONS = 50

export interface NemesisOptions {
  readonly mode: Mode
  readonly seconds: number
  readonly seed: number
  /** Receives progress messages. */
  readonly say: (line: string) => void
}

/** Runs simulated users in all areas under faults, and returns the violations. */
export async function runNemesis({ mode, seconds, seed, say }: NemesisOptions): Promise<string[]> {
  const world = await startWorld(mode)
  try {
    const history = new CallHistory()
    const chance = createChance(seed)
    const tokens = await signUp(world)
    const areas: Area[] = []
    let stopped = false
    const loop = async ({ act }: Area, caller: Caller): Promise<void> => {
      while (!stopped) {
        const before = history.violations.length
        await act().catch((error: Error) => {
          if (history.violations.length === before)
            caller.recordViolation(`failed unexpectedly: ${error.stack}`)
        })
        await delay(caller.chance.between(...ACTION_PAUSE_MS))
      }
    }
    const loops = Object.entries(AREAS).flatMap(([name, [make, users]]) => {
      const caller = new Caller(name, world, history, createChance(chance.between(1, 2 ** 31)))
      const area = make(caller.withToken(tokens.admin), caller.withToken(tokens.user))
      areas.push(area)
      return Array.from({ length: users }, () => loop(area, caller))
    })
    const nemesis = new Nemesis(world, createChance(seed))
    await delay(seconds * 1000)
    await nemesis.stop()
    const quietAt = performance.now()
    stopped = true
    await Promise.all(loops)
    const settled = await until('every job ends', () => haveJobsEnded(world), JOBS_TIMEOUT_MS).catch(
      () => false,
    )
    say(
      `${settled ? 'all jobs ended' : 'some jobs had not ended'} ${Math.round((performance.now() - quietAt) / 1000)} s after the last fault`,
    )
    if (!settled) for (const line of await diagnose(world)) say(line)
    const found = [
      ...nemesis.failures,
      ...history.violations,
      ...(await judge(world, history, nemesis.count(DEATHS))),
    ]
    for (const area of areas) found.push(...(await area.judge()))
    await report(world, history, nemesis, say)
    for (const one of found.slice(0, MAX_REPORTED_VIOLATIONS))
      say(`violation: ${one}${findLogLines(world, one)}`)
    if (found.length > 0)
      for (const { at, fault, over } of nemesis.history) say(`${at} ms: ${fault}${over ? ' over' : ''}`)
    return found
  } finally {
    await world.stop()
  }
}

/**
 * Registers an administrator, which must be the first account, and another account. Retries, because a stall of this
 * process stalls all links.
 */
async function signUp(world: World): Promise<{ admin: string; user: string }> {
  const anonymous = new Caller('sign-up', world, new CallHistory(), createChance(1))
  const password = 'correct horse'
  const tokenOf = async (email: string): Promise<string> => {
    await anonymous.post('/api/v1/auth/register', { json: { email, password } })
    const text = new URLSearchParams({ username: email, password }).toString()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const { json } = await anonymous.ask('/api/v1/auth/token', { method: 'POST', text, headers })
    return json.access_token
  }
  return { admin: await tokenOf('admin@example.com'), user: await tokenOf('user@example.com') }
}

async function haveJobsEnded({ query }: World): Promise<boolean> {
  const open = await query(
    `select from job where status in ('waiting', 'scheduled', 'available', 'running') and run_at < now() + interval '10 s' and queue <> 'schedules' limit 1`,
  ).catch(() => [null])
  return open.length === 0
}

/** Returns the log lines about the request or job that a violation names. */
function findLogLines({ members }: World, violation: string): string {
  const [, id] = /\((?:request|job) ([\w-]+)\)/.exec(violation) ?? []
  if (id === undefined) return ''
  const lines = members.flatMap(({ log }) => log.filter((line) => line.includes(id)))
  return lines.map((line) => `\n    ${line}`).join('')
}

async function report(
  world: World,
  history: CallHistory,
  nemesis: Nemesis,
  say: (line: string) => void,
): Promise<void> {
  const sum = (of: ReadonlyMap<string, number>): number => [...of.values()].reduce((a, b) => a + b, 0)
  const list = (of: ReadonlyMap<string, number>): string =>
    [...of].map(([name, n]) => `${name} ${n}`).join(', ')
  const { requests, acknowledged, refused, reported, followed } = history
  say(`${sum(requests)} requests, ${sum(acknowledged)} acknowledged: ${list(acknowledged)}`)
  say(`temporarily rejected: ${list(refused)}; ${followed.length} streams read to the end`)
  say(`ends reported by HTTP workers: ${list(reported)}`)
  say(`${sum(nemesis.counts)} faults: ${list(nemesis.counts)}`)
  const processes = [...world.members, ...world.httpWorkers]
  say(`starts: ${processes.map(({ name, starts }) => `${name} ${starts}`).join(', ')}`)
  const [jobs] = await world.query(
    `select count(*)::int as jobs, count(*) filter (where attempt > 1)::int as again, max(attempt)::int as attempts,
      max(interruptions)::int as interruptions from job`,
  )
  const sends = await world.query('select status, count(*)::int as n from comms_send group by 1 order by 1')
  say(`${JSON.stringify(jobs)}; sends: ${sends.map(({ status, n }) => `${status} ${n}`).join(', ')}`)
}
