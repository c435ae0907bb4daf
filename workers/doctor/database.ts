import { type Facts, inspect } from '../../sql/doctor.ts'
import { poolerProblem } from '../../sql/pooler.ts'
import { reasonOf } from '../../tasks/outage.ts'
import type { DatabaseUrls } from '../../tasks/process.ts'
import type { Settings } from '../../tasks/settings.ts'
import { type Finding, note, ok, problem } from './findings.ts'

// The oldest one that the tests have run on.
const OLDEST_MAJOR = 15
// Beyond this, times that people compare look wrong.
const CLOCK_MS = 1_000
// How many connections each opens at most, see "Connections" in deploy/database.md.
const OF_EDGE = 9
const OF_WORKER = 14
const OF_THREAD = 6

/** Whether the database suits the service, and these processes, and whether it is migrated. */
export async function checkDatabase(
  settings: Settings,
  urls: DatabaseUrls,
): Promise<{ findings: Finding[]; isMigrated: boolean }> {
  const { databaseUrl: url, directUrl } = urls
  const applicationName = `${settings.projectName}-doctor`
  try {
    const pooler = await poolerProblem({ url, directUrl, applicationName })
    if (pooler !== null) return { findings: [problem('database', pooler)], isMigrated: false }
    const facts = await inspect(directUrl, settings.projectName)
    return { findings: judge(settings, facts), isMigrated: facts.pendingMigrations.length === 0 }
  } catch (error) {
    const unusable = problem('database', `DATABASE_URL can't be used: ${reasonOf(error)}`)
    return { findings: [unusable], isMigrated: false }
  }
}

/** What the facts mean. */
export const judge = (settings: Settings, facts: Facts): Finding[] => [
  ...server(settings, facts),
  migrations(settings, facts),
  vectors(facts),
  clock(facts),
  connections(settings, facts),
  ...workers(facts),
]

function server({ databaseUrl }: Settings, facts: Facts): Finding[] {
  const { version, address, readOnly, isSuperuser, fsync, autovacuum } = facts
  const what = 'database'
  const name = `PostgreSQL ${Math.floor(version / 10_000)}.${version % 10_000} at ${address}`
  return [
    version < OLDEST_MAJOR * 10_000
      ? problem(what, `${name}: it has to be ${OLDEST_MAJOR} or newer`)
      : ok(what, name),
    ...(readOnly ? [problem(what, 'it takes no writes: name the primary, not a standby')] : []),
    ...(isSuperuser && databaseUrl !== undefined
      ? [
          note(
            what,
            'its role is a superuser, which the service need not be: see "Roles" in deploy/database.md',
          ),
        ]
      : []),
    ...(fsync ? [] : [problem(what, 'a crash of its machine can destroy it: set fsync = on')]),
    ...(autovacuum ? [] : [problem(what, 'its tables grow for ever: set autovacuum = on')]),
  ]
}

function migrations(
  { databaseUrl }: Settings,
  { pendingMigrations: pending, otherFunctions }: Facts,
): Finding {
  const what = 'migrations'
  if (pending.length === 0 && otherFunctions.length === 0) return ok(what, 'all are applied')
  if (databaseUrl === undefined) return note(what, 'npm start applies them')
  if (pending.length > 0) return problem(what, `${pending.join(', ')} to be applied: npm run migrate`)
  // Processes of the version before run on the functions of a newer one.
  const areas = otherFunctions.join(', ')
  return note(
    what,
    `the functions of ${areas} are another version's: npm run migrate, unless it is a newer one`,
  )
}

function vectors({ vector, isVectorInstalled }: Facts): Finding {
  if (vector !== null) return ok('pgvector', vector)
  const instead = 'every edge keeps the vectors of its collections in memory'
  return isVectorInstalled
    ? note('pgvector', `${instead}, until a superuser says: create extension vector`)
    : note('pgvector', `not installed: ${instead}`)
}

function clock({ clockOffsetMs }: Facts): Finding {
  if (Math.abs(clockOffsetMs) <= CLOCK_MS) return ok('clock', 'it agrees with the database')
  const seconds = Math.round(Math.abs(clockOffsetMs) / 1000)
  const where = clockOffsetMs > 0 ? 'ahead of' : 'behind'
  return problem('clock', `the database is ${seconds} s ${where} this machine: synchronize both (NTP)`)
}

function connections(settings: Settings, { connections: { max, ofOthers } }: Facts): Finding {
  const { webConcurrency: edges, workerProcesses: workers, workerThreads: threads } = settings
  const need = edges * OF_EDGE + workers * (OF_WORKER + threads * OF_THREAD)
  const sum = `WEB_CONCURRENCY=${edges}, WORKER_PROCESSES=${workers} and WORKER_THREADS=${threads} take ${need} at most, others ${ofOthers}, of ${max}`
  if (need + ofOthers <= max) return ok('connections', sum)
  return problem('connections', `${sum}: lower WORKER_THREADS, raise max_connections, or use PgBouncer`)
}

function workers({ workers: alive, unserved }: Facts): Finding[] {
  if (alive === null) return []
  if (unserved.length > 0) return [problem('workers', `none serves ${unserved.join(', ')}, where jobs wait`)]
  return [
    alive === 0 ? note('workers', 'none runs') : ok('workers', `${alive} run, and serve all that waits`),
  ]
}
