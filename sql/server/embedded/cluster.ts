import { randomBytes } from 'node:crypto'
import {
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { StartError } from '../start-error.ts'
import type { Account } from './account.ts'
import type { Binaries } from './binaries.ts'
import { runProgram } from './processes.ts'

export interface ClusterOptions {
  readonly data: string
  readonly passwordFile: string
  readonly account: Account | undefined
  readonly binaries: Binaries
  readonly ephemeral: boolean
  readonly log: (line: string) => void
}

/**
 * Creates the cluster in `data` if missing, and returns the superuser's password. Sets a new password if the password
 * file is lost. Never overwrites existing data.
 * Throws a StartError if `data` holds anything but a cluster of our major version.
 */
export async function prepareCluster(options: ClusterOptions): Promise<string> {
  const exists = hasCluster(options)
  const kept = readPassword(options.passwordFile)
  const password = kept ?? randomBytes(24).toString('base64url')
  if (!exists) await initialise(options, password)
  else if (!kept) await resetPassword(options, password)
  // Written last, so that the file only ever holds a password that was set.
  if (!kept) writeFileSync(options.passwordFile, `${password}\n`, { mode: 0o600 })
  return password
}

function hasCluster({ data, account, binaries }: ClusterOptions): boolean {
  const advice = 'Move the folder away to start with an empty database, or set DATABASE_URL.'
  const names = listFolder(data, account)
  if (names.length === 0) return false
  if (!names.includes('PG_VERSION')) {
    throw new StartError(
      `${data} is not empty and holds no PostgreSQL database; it was left unchanged. ${advice}`,
    )
  }
  const version = readFileSync(path.join(data, 'PG_VERSION'), 'utf8').trim()
  if (version !== binaries.major) {
    throw new StartError(
      `${data} was made by PostgreSQL ${version || '(empty PG_VERSION)'}, but this is ${binaries.major}: dump it with the old version and restore it into the new. ${advice}`,
    )
  }
  return true
}

function listFolder(data: string, account: Account | undefined): string[] {
  try {
    return readdirSync(data)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return []
    const who = account?.uid ?? process.getuid?.()
    throw new StartError(`${data} can't be read as the user ${who} (${code}): start as the user that owns it`)
  }
}

function readPassword(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim() || undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

// Creates the cluster. A crash halfway leaves only `postgres.new` and its password file, which the next start replaces.
// The caller must hold the lock.
async function initialise(options: ClusterOptions, password: string): Promise<void> {
  const { data, account, ephemeral } = options
  const unfinished = `${data}.new`
  const secret = `${data}.new.password`
  const started = performance.now()
  rmSync(unfinished, { recursive: true, force: true })
  mkdirSync(unfinished, { mode: 0o700 })
  writeFileSync(secret, password, { mode: 0o600 })
  if (account) for (const file of [unfinished, secret]) chownSync(file, account.uid, account.gid)
  try {
    await runInitdb(options, buildInitdbArguments(unfinished, secret, ephemeral))
    renameSync(unfinished, data)
    if (!ephemeral) fsyncFolder(path.dirname(data))
  } finally {
    rmSync(secret, { force: true })
    if (existsSync(unfinished)) rmSync(unfinished, { recursive: true, force: true })
  }
  options.log(`Created a database in ${data} (${Math.round(performance.now() - started)} ms)`)
}

async function runInitdb({ account, binaries }: ClusterOptions, args: readonly string[]): Promise<void> {
  try {
    await runProgram(binaries.initdb, args, { account, env: binaries.env })
  } catch (error) {
    // Containers often run under a uid without a user name.
    const nameless = (error as Error).message.includes('user does not exist')
    if (!nameless) throw error
    throw new StartError(`${(error as Error).message}\nAdd this user to /etc/passwd, or set DATABASE_URL.`)
  }
}

function buildInitdbArguments(data: string, passwordFile: string, ephemeral: boolean): string[] {
  return [
    `--pgdata=${data}`,
    '--username=postgres',
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    // The builtin C.UTF-8 of PostgreSQL has the same order and case rules on every system, without system locales.
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--locale=C',
    '--no-instructions',
    // Reduces the password hashing in tests. A slow hash adds no security, because the password is random.
    ...(ephemeral ? ['--no-sync', '--set=scram_iterations=1'] : []),
  ]
}

async function resetPassword(options: ClusterOptions, password: string): Promise<void> {
  const { account, binaries, data } = options
  const input = `ALTER ROLE postgres PASSWORD '${password}'\n`
  await runProgram(binaries.postgres, ['--single', '-D', data, 'postgres'], {
    account,
    env: binaries.env,
    input,
  })
  options.log(`The password file of ${data} was missing; a new password was set`)
}

function fsyncFolder(folder: string): void {
  const handle = openSync(folder, 'r')
  fsyncSync(handle)
  closeSync(handle)
}
