import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { migrate } from '../../sql/migrate.ts'
import { Cluster, severalHosts } from '../cluster.ts'
import { LONG } from '../runs.ts'
import { Client, startProcess } from '../service.ts'
import { mailServer } from '../standins/smtp.ts'
import { until } from '../until.ts'
import { openLink } from './link.ts'

/** The primary goes, its synchronous standby is promoted, and every process goes on: nothing acknowledged is lost or done twice. */

// What it takes on a quiet machine is 3 s and less; the limit is 5 s.
const BACK_MS = 15_000

for (const death of LONG ? (['killed', 'silent'] as const) : (['killed'] as const))
  test(`a primary that is ${death}: its standby takes over`, async (t) => {
    const [cluster, mail] = await Promise.all([Cluster.start(), mailServer()])
    after(() => Promise.all([cluster.stop(), mail.stop()]))
    await cluster.attachStandby()
    const links = await Promise.all(cluster.urls.map((url) => openLink(url)))
    const url = severalHosts(links.map((link) => link.url))
    await migrate(url)
    const env = {
      AUTH_LEVEL: 'basic',
      EMAIL_SMTP_URL: mail.url,
      EMAIL_PROVIDER_FROM_EMAIL: 'service@example.com',
      LEASE_SECONDS: '1',
    }
    const [first, second] = await Promise.all([
      startProcess('edge', url, env),
      startProcess('edge', url, env),
      startProcess('worker', url, env),
    ])
    const clients = [first, second].map(({ ready }) => new Client(ready.port!))
    await clients[0]!.register('writer@example.com')
    for (const client of clients) client.token = clients[0]!.token
    const load = new Load(clients)
    await until('the load runs', () => load.acknowledged.tasks.length > 20)

    if (death === 'killed') await cluster.primary.kill('SIGKILL')
    else links[0]!.silence()
    await delay(1_000)
    await cluster.promote()
    const promotedAt = performance.now()
    const writes = load.writes()
    await until('every edge writes again', () => load.writesSince(writes).every((n) => n > 0), BACK_MS)
    t.diagnostic(`written again ${Math.round(performance.now() - promotedAt)} ms after the promotion`)
    await load.stop()

    const { tags, tasks, sends } = load.acknowledged
    t.diagnostic(`${tags.length} tags, ${tasks.length} tasks, ${sends.length} mails`)
    const rows = (text: string) => cluster.primary.query(text)
    const names = (await rows('select name from blog_tag')).map(({ name }) => name as string)
    assert.deepEqual(
      tags.filter((name) => names.filter((one) => one === name).length !== 1),
      [],
    )
    const unended = async () => {
      const open = await rows(`select id from job where status in ('queued', 'running')`)
      return open.length === 0
    }
    await until('every job ends', unended, 60_000)
    const done = new Set(
      (await rows(`select id from job where status = 'done'`)).map(({ id }) => id as string),
    )
    assert.deepEqual(
      tasks.filter((id) => !done.has(id)),
      [],
    )
    const subjects = mail.raw.map((text) => /^Subject: (.*)$/m.exec(text)?.[1] ?? '')
    for (const subject of sends)
      assert.equal(subjects.filter((one) => one === subject).length, 1, `${subject} was sent once`)
  })

/** Writes of all kinds to every edge, each repeated under its key until it is acknowledged. */
class Load {
  readonly acknowledged = { tags: [] as string[], tasks: [] as string[], sends: [] as string[] }
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
        this.acknowledged.tags.push(name)
      }),
      this.#repeat(n, async () => {
        const task = { task_name: 'io_simulation_task', queue_type: 'load_test', args: { duration_ms: 20 } }
        const { task_id } = await this.#post(client, '/api/v1/tasks/enqueue', task)
        this.acknowledged.tasks.push(task_id as string)
      }),
      this.#repeat(n, async () => {
        const subject = `mail ${++this.#last}`
        await this.#post(client, '/api/v1/comms/email/send?background=true', {
          to: ['reader@example.com'],
          subject,
          text: 'Hello',
        })
        this.acknowledged.sends.push(subject)
        await delay(100)
      }),
    ])
  }

  /** How many each client's edge has acknowledged. */
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

  async #repeat(n: number, write: () => Promise<void>): Promise<void> {
    while (!this.#stopped) {
      await write()
      this.#counts[n]!++
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
