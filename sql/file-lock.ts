import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { identifyProcess } from './embedded/processes.ts'
import { StartError } from './start-error.ts'

/**
 * Acquires a lock file, which names its owner process, and returns a function that releases it. Replaces a lock whose
 * owner is gone. Excludes only processes on the same machine.
 * Throws a StartError if the lock can't be read.
 * @param refusal creates the error for a live owner with this process id.
 */
export function acquireLock(file: string, refusal: (pid: number) => Error): () => void {
  const ownFile = `${file}.${process.pid}`
  const record = JSON.stringify({ pid: process.pid, started: identifyProcess(process.pid) })
  writeFileSync(ownFile, record, { mode: 0o600 })
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
  const owner = findLiveOwner(seen)
  if (owner !== undefined) throw refusal(owner)
  // Two processes may find the same stale lock. The slower one then moves away the new lock of the faster one, and must
  // restore it.
  const aside = `${file}.stale.${process.pid}`
  if (!succeeds(() => renameSync(file, aside), 'ENOENT')) return
  if (readLockRecord(aside) !== seen) succeeds(() => linkSync(aside, file), 'EEXIST')
  rmSync(aside, { force: true })
}

function findLiveOwner(record: string): number | undefined {
  try {
    const { pid, started } = JSON.parse(record) as { pid: number; started: string }
    return identifyProcess(pid) === started ? pid : undefined
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
