import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, readFileSync, statSync } from 'node:fs'
import { StartError } from '../start-error.ts'

/** User and group that PostgreSQL runs as. In this folder, undefined means those of this process. */
export interface Account {
  readonly uid: number
  readonly gid: number
}

const NOBODY: Account = { uid: 65_534, gid: 65_534 }

/**
 * Chooses another user if this process runs as root, because PostgreSQL refuses to. Chooses the owner of the existing
 * data folder, else the user `postgres`, which it creates if possible, else `nobody`.
 */
export function chooseAccount(owner: Account | undefined): Account | undefined {
  if (process.getuid?.() !== 0) return undefined
  if (owner && owner.uid !== 0) return owner
  return lookUpUser('postgres') ?? createUser('postgres') ?? lookUpUser('nobody') ?? NOBODY
}

/** Returns the owner of `file`, or undefined if the file does not exist or is inaccessible. */
export function readOwner(file: string): Account | undefined {
  try {
    const { uid, gid } = statSync(file)
    return { uid, gid }
  } catch {
    return undefined
  }
}

function lookUpUser(name: string): Account | undefined {
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
  return lookUpUser(name)
}

/** True if `account` can enter `folder` through all its parents. */
function canEnter(account: Account, folder: string): boolean {
  return runAs(account, 'cd "$1"', folder)
}

/** True if `account` can read `file`. */
export function canRead(account: Account, file: string): boolean {
  return runAs(account, 'test -r "$1"', file)
}

// Tests access in a process of the account. File modes alone are not enough, because access lists, mount options and
// security modules also decide.
function runAs(account: Account, script: string, file: string): boolean {
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
 * Lets `account` enter `folder`, if root owns the folder and its group has no rights. The folder gets the group of the
 * account, which may enter but not list it. Returns true if the account can then enter.
 */
export function letEnter(account: Account, folder: string): boolean {
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
