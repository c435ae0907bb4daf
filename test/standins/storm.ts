import { setTimeout as delay } from 'node:timers/promises'
import { createChance } from '../chance.ts'
import type { Mode } from './http.ts'
import type { MailMode, MailStandIn } from './smtp.ts'
import type { TwilioStandIn } from './twilio.ts'

/**
 * Sends many messages while providers fail before and after accepting them, and workers are killed. Counts duplicates,
 * and sends with a wrong row.
 */

export interface StormOptions {
  readonly perChannel: number
  readonly kills: number
  /** Probability of each provider failure. */
  readonly faults: Readonly<Partial<Record<Fault, number>>>
  readonly seed: number
  readonly twilio: TwilioStandIn
  readonly mail: MailStandIn
  /** URL of the edge. */
  readonly url: string
  ask(text: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>
  /** Starts a worker; `kill` sends SIGKILL. */
  startWorker(): Promise<{ kill(): Promise<void> }>
  readonly workers: number
  /** True if a new worker replaces a killed one. */
  readonly replaced: boolean
  readonly deadlineMs: number
}

export type Fault =
  | 'hang before'
  | 'hang after'
  | 'cut before'
  | 'cut after'
  | 'error before'
  | 'error after'
  | 'busy'

export type Channel = 'email' | 'sms' | 'call'
const CHANNELS = ['email', 'sms', 'call'] as const

/** Outcomes of the sends of a channel. */
export interface Tally {
  readonly asked: number
  /** Sends that the provider accepted more than once. */
  doubled: number
  /** Sends without a row or with a wrong one: `sent` but not accepted, or `failed` but accepted. */
  untrue: number
  /** Sends with status `sent` and the provider's id of another message. */
  mistaken: number
  sent: number
  unknown: number
  /** Sends with status `unknown` that the provider accepted. */
  unknownTaken: number
  failed: number
  open: number
}

export interface StormResult {
  readonly tallies: Readonly<Record<Channel, Tally>>
  readonly kills: number
  readonly seconds: number
}

interface RequestedSend {
  readonly channel: Channel
  readonly n: number
  readonly jobId: string
}

const MAX_PACE_MS = 60

/** Sends messages, kills workers, waits until all jobs have finished, and counts outcomes. */
export async function runStorm(options: StormOptions): Promise<StormResult> {
  const random = createChance(options.seed).next
  const { twilio, mail } = options
  twilio.mode = () => toHttpMode(pickFault(options, random))
  mail.mode = () => toMailMode(pickFault(options, random))
  twilio.pace = () => random() * MAX_PACE_MS
  mail.pace = () => random() * MAX_PACE_MS
  const startedAt = performance.now()
  const crew = new Set(
    await Promise.all(Array.from({ length: options.workers }, () => options.startWorker())),
  )
  const all = requestSends(options)
  const kills = await killAtRandom(options, crew, random)
  const asked = await all
  await waitForJobs(options)
  const seconds = (performance.now() - startedAt) / 1000
  for (const worker of crew) await worker.kill()
  return { tallies: await countOutcomes(options, asked), kills, seconds }
}

async function requestSends({ perChannel, url }: StormOptions): Promise<readonly RequestedSend[]> {
  const waiting = Array.from({ length: perChannel }, (_, n) =>
    CHANNELS.map((channel) => ({ channel, n })),
  ).flat()
  const asked: RequestedSend[] = []
  const sendNext = async (): Promise<void> => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const { path, body } = createRequest(next.channel, next.n)
      const response = await fetch(`${url}/api/v1/comms${path}?background=true`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      if (response.status !== 202) throw new Error(`${path}: ${response.status} ${await response.text()}`)
      asked.push({ ...next, jobId: ((await response.json()) as { job_id: string }).job_id })
    }
  }
  await Promise.all(Array.from({ length: 12 }, sendNext))
  return asked
}

// Returns the number for message `n`. Every fifth message shares its number with others.
const numberOf = (n: number): string => `+1415555${String(n % 5 === 0 ? n % 50 : n).padStart(4, '0')}`
const contentOf = (n: number): string => `https://example.com/number-${n}`

function createRequest(channel: Channel, n: number): { path: string; body: object } {
  if (channel === 'email')
    return { path: '/email/send', body: { to: [`a${n}@example.com`], subject: `Number ${n}`, text: 'x' } }
  if (channel === 'sms') return { path: '/sms/send', body: { to: numberOf(n), body: contentOf(n) } }
  return { path: '/call', body: { to: numberOf(n), script_url: contentOf(n) } }
}

/** Kills a worker each time the providers' request count passes a random threshold. Returns the number of kills. */
async function killAtRandom(
  { kills, perChannel, twilio, mail, startWorker, replaced, deadlineMs }: StormOptions,
  crew: Set<{ kill(): Promise<void> }>,
  random: () => number,
): Promise<number> {
  const end = Date.now() + deadlineMs
  const moments = Array.from({ length: kills }, () => Math.floor(random() * perChannel * 3 * 0.7)).sort(
    (a, b) => a - b,
  )
  for (const moment of moments) {
    while (twilio.requests + mail.requests < moment) {
      if (Date.now() > end) throw new Error(`Only ${twilio.requests + mail.requests} requests in time`)
      await delay(2)
    }
    const [victim] = crew
    crew.delete(victim!)
    const [next] = await Promise.all([replaced ? startWorker() : null, victim!.kill()])
    if (next !== null) crew.add(next)
  }
  return moments.length
}

async function waitForJobs({ ask, deadlineMs }: StormOptions): Promise<void> {
  const end = Date.now() + deadlineMs
  for (;;) {
    const [row] = await ask(
      `select count(*)::int as left from job where name in ('comms.email', 'comms.sms', 'comms.call') and finished_at is null`,
    )
    if (row!.left === 0) return
    if (Date.now() > end) throw new Error(`${row!.left} jobs have not ended in time`)
    await delay(100)
  }
}

async function countOutcomes(
  { ask, twilio, mail, perChannel }: StormOptions,
  asked: readonly RequestedSend[],
) {
  const rows = await ask('select id, job_id, status, provider_id from comms_send')
  const byJob = new Map(rows.map((row) => [row.job_id, row]))
  const mails = countsOf(mail.taken)
  const messages = countsOf(
    twilio.taken.filter(({ kind }) => kind === 'Messages').map(({ content }) => content),
  )
  const calls = countsOf(twilio.taken.filter(({ kind }) => kind === 'Calls').map(({ content }) => content))
  const contents = new Map(twilio.taken.map(({ sid, content }) => [sid, content]))
  const tally = (): Tally => ({
    asked: perChannel,
    doubled: 0,
    untrue: 0,
    mistaken: 0,
    sent: 0,
    unknown: 0,
    unknownTaken: 0,
    failed: 0,
    open: 0,
  })
  const tallies: Record<Channel, Tally> = { email: tally(), sms: tally(), call: tally() }
  for (const { channel, n, jobId } of asked) {
    const row = byJob.get(jobId) ?? {}
    const counts = { email: mails, sms: messages, call: calls }[channel]
    const key = channel === 'email' ? `<${row.id}@example.com>` : contentOf(n)
    const mine = contents.get(row.provider_id as string)
    tallySend(tallies[channel], counts.get(key) ?? 0, row.status, mine !== undefined && mine !== contentOf(n))
  }
  return tallies
}

function tallySend(tally: Tally, taken: number, status: unknown, mistaken: boolean): void {
  if (taken > 1) tally.doubled++
  if (mistaken) tally.mistaken++
  if (status === 'sent') tally.sent++
  else if (status === 'unknown') {
    tally.unknown++
    tally.unknownTaken += taken
  } else if (status === 'failed') tally.failed++
  else if (status !== undefined) tally.open++
  const isTrue =
    status === 'sent' ? taken === 1 : status === 'failed' || status === 'queued' ? taken === 0 : true
  if (status === undefined || !isTrue) tally.untrue++
}

function countsOf(keys: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1)
  return counts
}

function pickFault({ faults }: StormOptions, random: () => number): Fault | null {
  let left = random()
  for (const [name, chance] of Object.entries(faults) as [Fault, number][]) {
    left -= chance
    if (left < 0) return name
  }
  return null
}

function toHttpMode(fault: Fault | null): Mode {
  if (fault === 'busy') return { status: 429, headers: { 'retry-after': '1' } }
  return fault ?? 'take'
}

function toMailMode(fault: Fault | null): MailMode {
  if (fault === 'busy' || fault === 'error before' || fault === 'error after')
    return { status: 451, at: 'data' }
  return fault ?? 'take'
}
