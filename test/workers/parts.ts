import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createPublisher } from '../../sql/connections/notify.ts'
import type { Database, Query } from '../../sql/db.ts'
import type { ProgressEntry } from '../../sql/jobs/jobs.ts'
import { createTaskFinder, loadTasks } from '../../tasks/index.ts'
import { createLog, type Log } from '../../tasks/platform/log.ts'
import { parseSettings, type Settings } from '../../tasks/platform/settings/settings.ts'
import { createExecutor, type Executor } from '../../workers/attempts/executor.ts'
import { createLedger, type Ledger } from '../../workers/attempts/ledger.ts'
import { createChildPool } from '../../workers/children/pool.ts'
import { createIsolatedRunner } from '../../workers/processes/isolated-runner.ts'
import { createPools, type Pools } from '../../workers/threads/pools.ts'
import { startWorker, type Worker, type WorkerOptions } from '../../workers/worker.ts'
import type { TestDatabase } from '../database.ts'

/** Assembles parts of a worker in the test's own process. */

export const log: Log = await createLog(process.env.TEST_LOG_LEVEL ?? 'silent', 'test')
export const TASKS_MODULE = new URL('./fixtures/tasks.ts', import.meta.url).href

export function createSettings(url: string, more: Readonly<Record<string, string>> = {}): Settings {
  return parseSettings({
    DATABASE_URL: url,
    WORKER_THREADS: '2',
    NODE_ENV: 'test',
    DATA_DIR: fileURLToPath(new URL('./', import.meta.url)),
    ...more,
  })
}

/** Database whose statements fail on demand, before or after they take effect. */
export interface FaultyDatabase extends Database {
  /** Statements so far, with names such as `job_finish` or `job_progress`. */
  readonly calls: { readonly name: string; readonly values: readonly unknown[] }[]
  fault: ((name: string) => 'before' | 'after' | null) | null
  error: () => Error
}

export function createFaultyDatabase(db: Database, error: () => Error): FaultyDatabase {
  const nameOf = (query: Query<unknown>): string =>
    (query as { name?: string }).name ?? /(\w+)\(/.exec(query.sql)?.[1] ?? ''
  const wrap =
    <T>(run: (query: Query<T>) => Promise<unknown>) =>
    async (query: Query<T>): Promise<unknown> => {
      const name = nameOf(query)
      wrapped.calls.push({ name, values: query.values })
      const fault = wrapped.fault?.(name) ?? null
      if (fault === 'before') throw wrapped.error()
      const result = await run(query)
      if (fault === 'after') throw wrapped.error()
      return result
    }
  const wrapped: FaultyDatabase = {
    ...db,
    any: wrap((query) => db.any(query)) as Database['any'],
    one: wrap((query) => db.one(query)) as Database['one'],
    run: wrap((query) => db.run(query)) as Database['run'],
    maybeOne: wrap((query) => db.maybeOne(query)) as Database['maybeOne'],
    calls: [],
    fault: null,
    error,
  }
  return wrapped
}

export interface Parts {
  readonly ledger: Ledger
  readonly pools: Pools
  readonly executor: Executor
}

/** Starts executor, pools and ledger under a lease, with the fixture's tasks. Closes them after the file. */
export async function startParts(
  base: TestDatabase,
  lease: string,
  options: { killGraceMs?: number; settings?: Record<string, string> } = {},
): Promise<Parts> {
  let executor: Executor | null = null
  const publisher = createPublisher(base.db, () => {})
  const ledger = createLedger({
    db: base.db,
    publisher,
    log,
    leaseId: () => lease,
    logFields: (id) => ({ jobId: id }),
    onSuperseded: (id, attempt) => executor?.supersede(id, attempt),
  })
  const settings = createSettings(base.url, options.settings)
  const onEvent = (event: ProgressEntry): void => {
    executor?.touch(event)
    ledger.progress(event)
  }
  const pools = createPools({
    settings,
    databaseUrl: base.url,
    children: createChildPool({ log }),
    log,
    // Uses a getter, so that a test can extend the period before each abort.
    get killGraceMs() {
      return options.killGraceMs ?? 300
    },
    taskModules: [TASKS_MODULE],
    onEvent,
  })
  const isolated = createIsolatedRunner({
    settings,
    databaseUrl: base.url,
    taskModules: [TASKS_MODULE],
    log,
    onEvent,
  })
  executor = createExecutor({
    ledger,
    pools,
    isolatedRunner: isolated,
    log,
    findTask: createTaskFinder(await loadTasks([TASKS_MODULE])),
    tallies: { countAttempt: () => {}, count: () => {} },
  })
  after(async () => {
    isolated.close()
    await pools.close()
  })
  return { ledger, pools, executor }
}

/** Starts a worker with the fixture's tasks in this process, and collects its warnings. Stops it after the test. */
export async function startTestWorker(
  url: string,
  queues: string,
  more: Partial<WorkerOptions> = {},
): Promise<{ worker: Worker; warnings: string[] }> {
  const warnings: string[] = []
  const listening = Object.assign(Object.create(log) as Log, {
    warn: (_data: object, message: string) => void warnings.push(message),
  })
  const worker = await startWorker({
    settings: createSettings(url, { WORKER_QUEUES: queues }),
    databaseUrl: url,
    directUrl: url,
    log: listening,
    taskModules: [TASKS_MODULE],
    ...more,
  })
  let stopping: Promise<void> | null = null
  const stop = (): Promise<void> => {
    stopping ??= worker.stop()
    return stopping
  }
  after(stop)
  return { worker: { lease: worker.lease, executor: worker.executor, stop }, warnings }
}
