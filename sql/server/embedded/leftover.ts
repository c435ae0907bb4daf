import { readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { StartError } from '../start-error.ts'
import { endProcess, isPostgresOf, listPostgresProcesses } from './processes.ts'

/** First lines of postmaster.pid (src/include/utils/pidfile.h in PostgreSQL's source). */
export interface PidFile {
  readonly pid: number
  /** TCP port, which is also in the name of the socket. */
  readonly port: number
  /** Folder of the socket. */
  readonly sockets: string
  readonly status: string
}

/** Reads `postmaster.pid`. Returns undefined if it is missing. A file cut short by a crash gives the pid NaN. */
export function readPidFile(data: string): PidFile | undefined {
  try {
    const lines = readFileSync(path.join(data, 'postmaster.pid'), 'utf8').split('\n')
    const number = (line: number): number => Number.parseInt(lines[line] ?? '', 10)
    return { pid: number(0), port: number(3), sockets: lines[4] ?? '', status: lines[7]?.trim() ?? '' }
  } catch {
    return undefined
  }
}

/**
 * Cleans up after a server whose owner died. Stops a live server and processes that outlived their postmaster, and
 * removes the pid file. The caller must hold the lock.
 */
export async function clearLeftovers(data: string, log: (line: string) => void): Promise<void> {
  const found = readPidFile(data)
  if (!found) return
  if (isPostgresOf(found.pid, data)) {
    log(`Stopping the database server ${found.pid}, whose owner is gone`)
    await stopServer(found.pid, 5_000)
  }
  for (const pid of listPostgresProcesses(data)) {
    await endProcess(pid, [
      { signal: 'SIGQUIT', ms: 500 },
      { signal: 'SIGKILL', ms: 2_000 },
    ])
  }
  // PostgreSQL removes the file of a dead server itself, but mistakes a reused pid or an empty file for a live server.
  rmSync(path.join(data, 'postmaster.pid'), { force: true })
}

/**
 * Stops a server by fast shutdown (disconnects clients, flushes data), after `ms` by immediate shutdown (the next start
 * replays the log), then by SIGKILL.
 * Throws a StartError if the server survives all of them.
 */
export async function stopServer(pid: number, ms: number): Promise<void> {
  const steps = [
    { signal: 'SIGINT', ms },
    { signal: 'SIGQUIT', ms: 2_000 },
    { signal: 'SIGKILL', ms: 2_000 },
  ] as const
  if (!(await endProcess(pid, steps)))
    throw new StartError(`The database server ${pid} can't be stopped: end that process, then start again`)
}
