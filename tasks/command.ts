import { resolve } from 'node:path'
import { createDatabase, type Database } from '../sql/db.ts'
import { reasonOf } from './outage.ts'
import type { Settings } from './settings.ts'

/** What the operator commands share. */

/** Where a command finds the database. */
export interface CommandDatabase {
  readonly url: string
  /** A direct connection, when the other one goes through a pooler. */
  readonly directUrl: string
}

/**
 * Runs `work` with the configured database. The embedded one is shared with a running service, or else started just for
 * the work.
 */
export async function withDatabase<T>(
  settings: Settings,
  work: (database: CommandDatabase) => Promise<T>,
): Promise<T> {
  const { databaseUrl, databaseUrlUnpooled, dataDir } = settings
  if (databaseUrl !== undefined)
    return work({ url: databaseUrl, directUrl: databaseUrlUnpooled ?? databaseUrl })
  const { findRunning, startEmbedded } = await import('../sql/embedded.ts')
  const running = findRunning(dataDir)
  if (running !== null) return work({ url: running, directUrl: running })
  const started = await startEmbedded({ dataDir: resolve(dataDir) })
  try {
    return await work({ url: started.url, directUrl: started.url })
  } finally {
    await started.stop()
  }
}

/** The same with a pool of two connections. */
export function withQueries<T>(
  settings: Settings,
  name: string,
  work: (db: Database) => Promise<T>,
): Promise<T> {
  return withDatabase(settings, ({ url }) => withPool(settings, url, name, work))
}

/** The same where the database is known already. */
export async function withPool<T>(
  settings: Settings,
  url: string,
  name: string,
  work: (db: Database) => Promise<T>,
): Promise<T> {
  const applicationName = `${settings.projectName}-${name}`
  const { checked: validateRows, databasePooled: pooled } = settings
  const db = createDatabase({ url, applicationName, size: 2, validateRows, pooled })
  return work(db).finally(() => db.close())
}

/** A command was called wrongly; the message is its usage. */
export class UsageError extends Error {}

/** Runs a command to its end: status 2 for a wrong call, 1 for any other failure, with a line that says why. */
export async function runCommand(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    process.exitCode = error instanceof UsageError ? 2 : 1
    process.stderr.write(`${reasonOf(error)}\n`)
  }
}

export function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
