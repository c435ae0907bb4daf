import { linkSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { identifyProcess } from './embedded/processes.ts'
import { StartError } from './start-error.ts'

/**
 * Acquires a lock file, which names its owner process, and returns a function that releases it. Replaces a lock whose
 * owner is gone, and one that was copied from another path. Excludes only processes on the same machine.
 * Throws a StartError if the lock can't be read.
 * @param refusal creates the error for a live owner with this process id.
 */
export function acquireLock(file: string, refusal: (pid: number) => Error): () => void {
  const ownFile = `${file}.${process.pid}`
  writeFileSync(ownFile, '', { mode: 0o600 })
  const path = resolvePath(file)
  const record = JSON.stringify({ pid: process.pid, started: identifyProcess(process.pid), path })
  writeFileSync(ownFile, record)
  try {
    // Linking creates the lock together with its content, or not at all.
    while (!succeeds(() => linkSync(ownFile, file), 'EEXIST')) removeStaleLock(file, refusal)
  } finally {
    rmSync(ownFile, { force: true })
  }
  let held = true
  return () => {
    if (held && readLockRecord(file) === record) rmSync(file, { force: true })
    held = false // A second call must not release a lock that this process acquired later.
  }
}

function removeStaleLock(file: string, refusal: (pid: number) => Error): void {
  const seen = readLockRecord(file)
  if (seen === undefined) return
  const owner = findLiveOwner(seen, resolvePath(file))
  if (owner !== undefined) throw refusal(owner)
  // Two processes may find the same stale lock. The slower one then moves away the new lock of the faster one, and must
  // restore it.
  const aside = `${file}.stale.${process.pid}`
  if (!succeeds(() => renameSync(file, aside), 'ENOENT')) return
  if (readLockRecord(aside) !== seen) succeeds(() => linkSync(aside, file), 'EEXIST')
  rmSync(aside, { force: true })
}

const resolvePath = (file: string): string => join(realpathSync(dirname(file)), basename(file))

function findLiveOwner(record: string, ownPath: string): number | undefined {
  try {
    const { pid, started, path } = JSON.parse(record) as { pid: number; started: string; path: string }
    return path === ownPath && identifyProcess(pid) === started ? pid : undefined
  } catch {
    return undefined // A lock appears with its content, so this record is not one that is being written.
  }
}

function readLockRecord(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    throw new StartError(`${file} can't be read (${code}): start as the user that owns it`)
  }
}

function succeeds(action: () => void, unlessCode: string): boolean {
  try {
    action()
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === unlessCode) return false
    throw error
  }
}
