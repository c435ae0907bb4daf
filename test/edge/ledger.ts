import { randomUUID } from 'node:crypto'
import { uuidv7 } from '../../sql/ids.ts'
import type { TestDatabase } from '../database.ts'
import { buildJobSpec } from '../sql/ledger-help.ts'
import { until } from '../until.ts'

/** Performs a worker's steps on the job ledger one at a time. */
export interface Ledger {
  /** Adds a job and returns its id. */
  add(ownerId: number | null, more?: Readonly<Record<string, unknown>>): Promise<string>
  /** Adds many jobs in one statement, without a notification. */
  addMany(ownerId: number, count: number): Promise<readonly string[]>
  /** Claims a job like a worker and returns the attempt number. */
  claim(id: string): Promise<number>
  /** Reports progress; the ledger numbers the entries. */
  progress(id: string, label: string, current?: number, total?: number): Promise<void>
  /** Stores many progress labels in one statement. */
  progressMany(id: string, labels: readonly string[]): Promise<void>
  finish(id: string, outcome: string, more?: Readonly<Record<string, unknown>>): Promise<void>
  /** Sends a notification. Every other method except `addMany` does so for its job unless `isQuiet`. */
  notify(...ids: readonly string[]): Promise<void>
  /** Notifies of more jobs than a payload lists. */
  notifyAll(): Promise<void>
  /** Adds, claims and finishes a job, and returns its id. */
  addFinished(
    ownerId: number | null,
    outcome?: string,
    more?: Readonly<Record<string, unknown>>,
  ): Promise<string>
  isQuiet: boolean
}

export function createLedger({ query }: TestDatabase): Ledger {
  const attempts = new Map<string, { attempt: number; n: number }>()
  const changed = async (id: string): Promise<void> => {
    if (!ledger.isQuiet) await ledger.notify(id)
  }
  const report = async (id: string, entries: readonly Readonly<Record<string, unknown>>[]): Promise<void> => {
    const running = attempts.get(id)!
    const rows = entries.map((data) => ({
      id,
      attempt: running.attempt,
      n: ++running.n,
      kind: 'status',
      data: { status: 'running', ...data },
    }))
    await query('select job_progress($1::jsonb)', [JSON.stringify(rows)])
    await changed(id)
  }
  const enqueue = async (
    ownerId: number | null,
    ids: readonly string[],
    more: Readonly<Record<string, unknown>> = {},
  ): Promise<void> => {
    const specs = ids.map((id) =>
      buildJobSpec({ id, name: 'documents.extract', queue: 'documents', owner_id: ownerId, ...more }),
    )
    await query('select job_enqueue($1::jsonb)', [JSON.stringify(specs)])
  }
  const ledger: Ledger = {
    isQuiet: false,
    add: async (ownerId, more = {}) => {
      const id = uuidv7()
      await enqueue(ownerId, [id], more)
      await changed(id)
      return id
    },
    addMany: async (ownerId, count) => {
      const ids = Array.from({ length: count }, () => uuidv7())
      await enqueue(ownerId, ids)
      return ids
    },
    claim: async (id) => {
      const lease = randomUUID()
      await query(
        `insert into worker_lease (id, name, queues, expires_at) values ($1, 'test', '{}', now() + interval '1 hour')`,
        [lease],
      )
      // Retry the claim: a job becomes visible a moment before its transaction releases the mailbox lock.
      const attempt = await until('the job is claimed', async () => {
        const [claimed] = await query(
          `select (claimed.claims::json -> 0 ->> 2)::int as attempt
           from job cross join lateral job_claim($1, array[name], array[mailbox], array[mailbox_limit], array[ordinal], array[1]) claimed
           where job.id = $2`,
          [lease, id],
        )
        return claimed!.attempt as number | null
      })
      attempts.set(id, { attempt, n: 0 })
      await changed(id)
      return attempt
    },
    progress: (id, label, current, total) => report(id, [{ label, current, total }]),
    progressMany: (id, labels) =>
      report(
        id,
        labels.map((label) => ({ label })),
      ),
    finish: async (id, outcome, more = {}) => {
      const entry = { id, attempt: attempts.get(id)!.attempt, outcome, ...more }
      await query('select job_finish($1::jsonb, 2, 5)', [JSON.stringify([entry])])
      await changed(id)
    },
    notify: async (...ids) => {
      await query('select job_notify($1)', [ids])
    },
    notifyAll: async () => {
      await query(`select pg_notify('job_events', '*')`)
    },
    addFinished: async (ownerId, outcome = 'done', more = { result: { read: 1, unread: 0, skipped: 0 } }) => {
      const id = await ledger.add(ownerId)
      await ledger.claim(id)
      await ledger.finish(id, outcome, more)
      return id
    },
  }
  return ledger
}
