import { setTimeout as delay } from 'node:timers/promises'
import { migrate } from '../sql/server/migrate.ts'
import { Cluster, createMultiHostUrl } from './cluster.ts'
import { openUnownedLink } from './flow/link.ts'
import { Client, launchProcess } from './service.ts'
import { startMailServer } from './standins/smtp.ts'
import { until } from './until.ts'

/** Kind of failure: the primary's process dies, or its connections fall silent. */
export type FailureKind = 'killed' | 'silent'

export interface FailoverOptions {
  readonly failure: FailureKind
  /** Time in ms from the standby's disconnection to the primary's failure; null if commits wait for the standby. */
  readonly standbyLagMs?: number | null
}

export interface FailoverResult {
  /** Time in ms from the promotion until every edge has acknowledged a write. */
  readonly recoveryMs: number
  /** Time in ms from the promotion until every job has ended. */
  readonly jobsEndedMs: number
  readonly acknowledged: { readonly tags: number; readonly tasks: number; readonly mails: number }
  /** Names of acknowledged writes that are missing or not done. */
  readonly lost: readonly string[]
  /** Jobs that have not ended 90 s after the load stopped. */
  readonly unfinished: readonly Readonly<Record<string, unknown>>[]
  /** Names of rows or mails that exist more than once. */
  readonly duplicated: readonly string[]
}

// Pause between writes. Without it, the writes would saturate a small machine.
const WRITE_INTERVAL_MS = 40
const DETECTION_MS = 1_000
const RECOVERY_TIMEOUT_MS = 60_000
const JOBS_TIMEOUT_MS = 90_000

/** Writes through two edges, lets the primary fail, promotes its standby and measures the recovery. */
export async function failOver({ failure, standbyLagMs = null }: FailoverOptions): Promise<FailoverResult> {
  const cleanups: (() => Promise<unknown>)[] = []
  try {
    const mail = await startMailServer()
    cleanups.push(mail.stop)
    const cluster = await Cluster.start()
    cleanups.push(() => cluster.stop())
    await cluster.attachStandby(standbyLagMs === null)
    const links = await Promise.all(cluster.urls.map(openUnownedLink))
    cleanups.push(...links.map((link) => link.close))
    const url = createMultiHostUrl(links.map((link) => link.url))
    await migrate(url)
    const env = {
      AUTH_LEVEL: 'basic',
      EMAIL_SMTP_URL: mail.url,
      EMAIL_PROVIDER_FROM_EMAIL: 'service@example.com',
      LEASE_SECONDS: '1',
      WORKER_QUEUES: 'accounts,comms,load_test',
      WORKER_THREADS: '1',
    }
    const children = await Promise.all(
      (['edge', 'edge', 'worker'] as const).map((kind) => launchProcess(kind, url, env)),
    )
    cleanups.push(() => Promise.all(children.map((child) => child.kill())))
    const clients = children.flatMap(({ ready }) =>
      ready.port === undefined ? [] : [new Client(ready.port)],
    )
    await clients[0]!.register('writer@example.com')
    for (const client of clients) client.token = clients[0]!.token
    const load = new WriteLoad(clients)
    await until('the load is running', () => load.tasks.length > 20, RECOVERY_TIMEOUT_MS)

    if (standbyLagMs !== null) {
      await cluster.disconnectStandby()
      await delay(standbyLagMs)
    }
    if (failure === 'killed') await cluster.primary.kill('SIGKILL')
    else links[0]!.silence()
    await delay(DETECTION_MS)
    await cluster.promote()
    const promotedAt = performance.now()
    const since = (): number => Math.round(performance.now() - promotedAt)
    const writes = load.writes()
    await until(
      'every edge writes again',
      () => load.writesSince(writes).every((n) => n > 0),
      RECOVERY_TIMEOUT_MS,
    )
    const backMs = since()
    await load.stop()
    const { primary } = cluster
    const unended = () =>
      primary.query(
        `select id, name, mailbox, status, attempt, lease_id, run_at, created_at from job
         where status in ('scheduled', 'available', 'running') and queue <> 'schedules'`,
      )
    await until('every job ends', async () => (await unended()).length === 0, JOBS_TIMEOUT_MS).catch(() => {})
    return {
      recoveryMs: backMs,
      jobsEndedMs: since(),
      unfinished: await unended(),
      ...(await load.judge(cluster, mail.raw)),
    }
  } finally {
    for (const end of cleanups.reverse()) await end()
  }
}

/** Sends writes of all kinds to every edge and retries each with its idempotency key until it is acknowledged. */
class WriteLoad {
  readonly tags: string[] = []
  readonly tasks: string[] = []
  readonly mails: string[] = []
  readonly #counts: number[]
  readonly #running: Promise<void>[]
  #stopped = false
  #last = 0

  constructor(clients: readonly Client[]) {
    this.#counts = clients.map(() => 0)
    this.#running = clients.flatMap((client, n) => [
      this.#repeat(n, async () => {
        const name = `tag ${++this.#last}`
        await this.#post(client, '/api/v1/blog/tags', { name })
        this.tags.push(name)
      }),
      this.#repeat(n, async () => {
        const task = { task_name: 'io_simulation_task', queue_type: 'load_test', args: { duration_ms: 20 } }
        const { task_id } = await this.#post(client, '/api/v1/tasks/enqueue', task)
        this.tasks.push(task_id as string)
      }),
      this.#repeat(n, async () => {
        const subject = `mail ${++this.#last}`
        await this.#post(client, '/api/v1/comms/email/send?background=true', {
          to: ['reader@example.com'],
          subject,
          text: 'Hello',
        })
        this.mails.push(subject)
        await delay(100)
      }),
    ])
  }

  /** Returns the number of acknowledged writes of each client. */
  writes(): number[] {
    return [...this.#counts]
  }

  writesSince(before: readonly number[]): number[] {
    return this.#counts.map((count, n) => count - before[n]!)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#running)
  }

  async judge(
    { primary }: Cluster,
    mails: readonly string[],
  ): Promise<Pick<FailoverResult, 'acknowledged' | 'lost' | 'duplicated'>> {
    const names = (await primary.query('select name from blog_tag')).map(({ name }) => String(name))
    const done = (await primary.query(`select id from job where status = 'done'`)).map(({ id }) => String(id))
    const subjects = mails.map((text) => /^Subject: (.*)$/m.exec(text)?.[1] ?? '')
    const pairs = [
      [this.tags, names],
      [this.tasks, done],
      [this.mails, subjects],
    ] as const
    const which = (isIt: (count: number) => boolean): string[] =>
      pairs.flatMap(([wanted, found]) => {
        const counts = Map.groupBy(found, (one) => one)
        return wanted.filter((one) => isIt(counts.get(one)?.length ?? 0))
      })
    const { tags, tasks } = this
    return {
      acknowledged: { tags: tags.length, tasks: tasks.length, mails: this.mails.length },
      lost: which((count) => count === 0),
      duplicated: which((count) => count > 1),
    }
  }

  async #repeat(n: number, write: () => Promise<void>): Promise<void> {
    while (!this.#stopped) {
      await write()
      this.#counts[n]!++
      await delay(WRITE_INTERVAL_MS)
    }
  }

  async #post(client: Client, path: string, body: unknown): Promise<Record<string, unknown>> {
    const key = `key-${++this.#last}`
    for (;;) {
      const answer = await client.post(path, body, { 'idempotency-key': key }).catch(() => null)
      if (answer !== null && answer.status < 300) return (await answer.json()) as Record<string, unknown>
      const text = await answer?.text()
      if (answer !== null && ![409, 503].includes(answer.status))
        throw new Error(`${path}: ${answer.status} ${text}`)
      await delay(50)
    }
  }
}
