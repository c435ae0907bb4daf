import { findPoolerProblem } from '../../sql/connections/pooler.ts'
import { type DatabaseFacts, inspectDatabase } from '../../sql/server/doctor.ts'
import { describeError } from '../../tasks/platform/outage.ts'
import type { DatabaseUrls } from '../../tasks/platform/process.ts'
import type { Settings } from '../../tasks/platform/settings/settings.ts'
import { type Finding, note, ok, problem } from './findings.ts'

// The oldest PostgreSQL that the tests run on.
const OLDEST_MAJOR = 15
// A larger offset becomes visible when users compare times.
const MAX_CLOCK_OFFSET_MS = 1_000
// Maximum connections of each edge, worker and thread of one busy queue, see "Connections" in deploy/database.md.
const EDGE_CONNECTIONS = 14
const WORKER_CONNECTIONS = 14
const THREAD_CONNECTIONS = 6

/**
 * Checks that the database suits the service and is migrated. `isMigrated` is also false if the database can't be
 * reached.
 */
export async function checkDatabase(
  settings: Settings,
  urls: DatabaseUrls,
): Promise<{ findings: Finding[]; isMigrated: boolean }> {
  const { databaseUrl: url, directUrl } = urls
  const applicationName = `${settings.projectName}-doctor`
  try {
    const pooler = await findPoolerProblem({ url, directUrl, applicationName })
    if (pooler !== null) return { findings: [problem('database', pooler)], isMigrated: false }
    const facts = await inspectDatabase(directUrl, settings.projectName)
    return { findings: judgeFacts(settings, facts), isMigrated: facts.pendingMigrations.length === 0 }
  } catch (error) {
    const unusable = problem('database', `can't use DATABASE_URL: ${describeError(error)}`)
    return { findings: [unusable], isMigrated: false }
  }
}

/** Turns the facts about the database into findings. */
export const judgeFacts = (settings: Settings, facts: DatabaseFacts): Finding[] => [
  ...judgeServer(settings, facts),
  judgeMigrations(settings, facts),
  judgeVectors(facts),
  judgeClock(facts),
  judgeConnections(settings, facts),
  ...judgeWorkers(facts),
]

function judgeServer({ databaseUrl }: Settings, facts: DatabaseFacts): Finding[] {
  const { version, address, readOnly, isSuperuser, fsync, autovacuum } = facts
  const name = 'database'
  const server = `PostgreSQL ${Math.floor(version / 10_000)}.${version % 10_000} at ${address}`
  return [
    version < OLDEST_MAJOR * 10_000
      ? problem(name, `${server}: version ${OLDEST_MAJOR} or newer is required`)
      : ok(name, server),
    ...(readOnly ? [problem(name, 'it is read-only: use the URL of the primary, not of a standby')] : []),
    ...(isSuperuser && databaseUrl !== undefined
      ? [
          note(
            name,
            'the role is a superuser, which the service does not need: see "Roles" in deploy/database.md',
          ),
        ]
      : []),
    ...(fsync ? [] : [problem(name, 'a crash of the server machine can corrupt it: set fsync = on')]),
    ...(autovacuum ? [] : [problem(name, 'its tables grow without limit: set autovacuum = on')]),
  ]
}

function judgeMigrations(
  { databaseUrl }: Settings,
  { pendingMigrations: pending, changedFunctions }: DatabaseFacts,
): Finding {
  const name = 'migrations'
  if (pending.length === 0 && changedFunctions.length === 0) return ok(name, 'all are applied')
  if (databaseUrl === undefined) return note(name, 'npm start applies them')
  if (pending.length > 0) return problem(name, `${pending.join(', ')} not applied: run npm run migrate`)
  // Only a note: processes of the previous version work with the functions of a newer one.
  const areas = changedFunctions.join(', ')
  return note(
    name,
    `the SQL functions of ${areas} have another version: run npm run migrate, unless that version is newer`,
  )
}

function judgeVectors({ vector, isVectorInstalled }: DatabaseFacts): Finding {
  if (vector !== null) return ok('pgvector', vector)
  const fallback = 'every edge keeps the vectors of its collections in memory'
  return isVectorInstalled
    ? note('pgvector', `${fallback} until a superuser runs: create extension vector`)
    : note('pgvector', `not installed: ${fallback}`)
}

function judgeClock({ clockOffsetMs }: DatabaseFacts): Finding {
  if (Math.abs(clockOffsetMs) <= MAX_CLOCK_OFFSET_MS) return ok('clock', 'matches the database')
  const seconds = Math.round(Math.abs(clockOffsetMs) / 1000)
  const where = clockOffsetMs > 0 ? 'ahead of' : 'behind'
  return problem('clock', `the database is ${seconds} s ${where} this machine: synchronize both (NTP)`)
}

function judgeConnections(settings: Settings, { connections: { max, ofOthers } }: DatabaseFacts): Finding {
  const { webConcurrency: edges, workerProcesses: workers, workerThreads: threads } = settings
  const needed = edges * EDGE_CONNECTIONS + workers * (WORKER_CONNECTIONS + threads * THREAD_CONNECTIONS)
  const usage = `WEB_CONCURRENCY=${edges}, WORKER_PROCESSES=${workers} and WORKER_THREADS=${threads} use up to ${needed} of ${max}, others use ${ofOthers}`
  if (needed + ofOthers <= max) return ok('connections', usage)
  return problem('connections', `${usage}: lower WORKER_THREADS, raise max_connections, or use PgBouncer`)
}

function judgeWorkers({ workers: alive, unservedQueues }: DatabaseFacts): Finding[] {
  if (alive === null) return []
  if (unservedQueues.length > 0)
    return [problem('workers', `jobs wait in queues without a worker: ${unservedQueues.join(', ')}`)]
  return [
    alive === 0
      ? note('workers', 'none runs')
      : ok('workers', `${alive} running; they serve all waiting jobs`),
  ]
}
