import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, readFileSync, statSync } from 'node:fs'
import { StartError } from '../start-error.ts'

/** The user and group that PostgreSQL runs as. Everywhere below, undefined means our own. */
export interface Account {
  readonly uid: number
  readonly gid: number
}

const NOBODY: Account = { uid: 65_534, gid: 65_534 }

/**
 * PostgreSQL refuses to run as root, so root runs it as someone else: the owner of the existing data folder, else the
 * user `postgres`, created if the system has none and can do so, else `nobody`.
 */
export function chooseAccount(owner: Account | undefined): Account | undefined {
  if (process.getuid?.() !== 0) return undefined
  if (owner && owner.uid !== 0) return owner
  return lookUp('postgres') ?? createUser('postgres') ?? lookUp('nobody') ?? NOBODY
}

/** Who owns `file`; undefined when there is no such file or it can't be seen. */
export function ownerOf(file: string): Account | undefined {
  try {
    const { uid, gid } = statSync(file)
    return { uid, gid }
  } catch {
    return undefined
  }
}

function lookUp(name: string): Account | undefined {
  try {
    const line = readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .find((entry) => entry.startsWith(`${name}:`))
    const [, , uid, gid] = line?.split(':') ?? []
    return uid && gid ? { uid: Number(uid), gid: Number(gid) } : undefined
  } catch {
    return undefined
  }
}

function createUser(name: string): Account | undefined {
  spawnSync('groupadd', ['--system', name])
  spawnSync('useradd', ['--system', '--gid', name, '--no-create-home', '--shell', '/usr/sbin/nologin', name])
  return lookUp(name)
}

/** Whether `account` can really enter `folder`, through all its parents. */
function canEnter(account: Account, folder: string): boolean {
  return asAccount(account, 'cd "$1"', folder)
}

/** Whether `account` can really read `file`. */
export function canRead(account: Account, file: string): boolean {
  return asAccount(account, 'test -r "$1"', file)
}

// File modes alone are not enough: access lists, mount options and security modules decide too.
function asAccount(account: Account, script: string, file: string): boolean {
  const options = { cwd: '/', stdio: 'ignore', ...account } as const
  const { status, error } = spawnSync('/bin/sh', ['-c', script, 'sh', file], options)
  const { code } = (error ?? {}) as NodeJS.ErrnoException
  if (code === 'EPERM' || code === 'EINVAL') {
    throw new StartError(
      `PostgreSQL can't run as root, and this root may not switch to the user ${account.uid}: start as an ordinary user, or set DATABASE_URL`,
    )
  }
  return status === 0
}

/**
 * Lets `account` pass through `folder`, if root owns it and no group may enter it: its group becomes the account's and
 * may enter, but not list. Returns whether the account can enter afterwards.
 */
export function openTo(account: Account, folder: string): boolean {
  if (canEnter(account, folder)) return true
  const { uid, gid, mode } = statSync(folder)
  if (uid !== 0 || (mode & 0o070) !== 0) return false
  chownSync(folder, uid, account.gid)
  chmodSync(folder, (mode & 0o707) | 0o010)
  if (canEnter(account, folder)) return true
  chmodSync(folder, mode & 0o777)
  chownSync(folder, uid, gid)
  return false
}
