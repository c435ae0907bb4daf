import { resolve } from 'node:path'
import { createDatabase, type Database } from '../../sql/db.ts'
import { describeError } from './outage.ts'
import type { Settings } from './settings/settings.ts'

/** Helpers for operator commands. */

/** Connection strings of a command's database. */
export interface CommandDatabase {
  readonly url: string
  /** Bypasses the pooler if `url` goes through one. */
  readonly directUrl: string
}

/**
 * Runs a callback with the connection strings of the configured database. With an embedded database, uses that of a
 * running service, or starts it for the duration of the call.
 */
export async function withDatabase<T>(
  settings: Settings,
  callback: (database: CommandDatabase) => Promise<T>,
): Promise<T> {
  const { databaseUrl, databaseUrlUnpooled, dataDir } = settings
  if (databaseUrl !== undefined)
    return callback({ url: databaseUrl, directUrl: databaseUrlUnpooled ?? databaseUrl })
  const { findRunningUrl, startEmbedded } = await import('../../sql/server/embedded/embedded.ts')
  const running = findRunningUrl(dataDir)
  if (running !== null) return callback({ url: running, directUrl: running })
  const started = await startEmbedded({ dataDir: resolve(dataDir) })
  try {
    return await callback({ url: started.url, directUrl: started.url })
  } finally {
    await started.stop()
  }
}

/** Like `withDatabase`, but passes the callback a pool of two connections. */
export function withQueries<T>(
  settings: Settings,
  name: string,
  callback: (db: Database) => Promise<T>,
): Promise<T> {
  return withDatabase(settings, ({ url }) => withPool(settings, url, name, callback))
}

/** Like `withQueries`, but takes the connection string of the database. */
export async function withPool<T>(
  settings: Settings,
  url: string,
  name: string,
  callback: (db: Database) => Promise<T>,
): Promise<T> {
  const applicationName = `${settings.projectName}-${name}`
  const { validateSchemas: validateRows, databasePooled: pooled } = settings
  const db = createDatabase({ url, applicationName, size: 2, validateRows, pooled })
  return callback(db).finally(() => db.close())
}

/** Thrown for wrong arguments, with the command's usage line as the message. */
export class UsageError extends Error {}

/** Runs a command and prints one line if it fails. Sets exit status 2 for wrong usage, 1 for other failures. */
export async function runCommand(command: () => Promise<void>): Promise<void> {
  try {
    await command()
  } catch (error) {
    process.exitCode = error instanceof UsageError ? 2 : 1
    process.stderr.write(`${describeError(error)}\n`)
  }
}

export function printLine(line: string): void {
  process.stdout.write(`${line}\n`)
}
