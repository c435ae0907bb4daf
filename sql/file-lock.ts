import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { identify } from './embedded/processes.ts'
import { StartError } from './start-error.ts'

/**
 * Takes a lock, which is a file that names the process that has it. A lock whose owner is gone is taken over. It only
 * excludes processes on the same machine.
 *
 * @param refusal what to throw when its owner, a process with this id, is alive.
 * @returns a function that releases the lock.
 * @throws StartError when the lock can't be read.
 */
export function takeLock(file: string, refusal: (pid: number) => Error): () => void {
  const mine = `${file}.${process.pid}`
  const record = JSON.stringify({ pid: process.pid, started: identify(process.pid) })
  writeFileSync(mine, record, { mode: 0o600 })
  try {
    // Linking makes the lock appear together with its content, or not at all.
    while (!succeeds(() => linkSync(mine, file), 'EEXIST')) removeStale(file, refusal)
  } finally {
    rmSync(mine, { force: true })
  }
  let held = true
  return () => {
    if (held && read(file) === record) rmSync(file, { force: true })
    held = false // A second call must not release a lock that this process has taken since.
  }
}

function removeStale(file: string, refusal: (pid: number) => Error): void {
  const seen = read(file)
  if (seen === undefined) return
  const owner = liveOwner(seen)
  if (owner !== undefined) throw refusal(owner)
  // Two processes may find the same stale lock: the one that moved the winner's new lock away puts it back.
  const aside = `${file}.stale.${process.pid}`
  if (!succeeds(() => renameSync(file, aside), 'ENOENT')) return
  if (read(aside) !== seen) succeeds(() => linkSync(aside, file), 'EEXIST')
  rmSync(aside, { force: true })
}

function liveOwner(record: string): number | undefined {
  try {
    const { pid, started } = JSON.parse(record) as { pid: number; started: string }
    return identify(pid) === started ? pid : undefined
  } catch {
    return undefined // A link appears with its content, so this is not a lock of ours being written.
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    throw new StartError(`${file} can't be read (${code}): start as the user it belongs to`)
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
