import { spawn, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import path from 'node:path'
import type { Account } from './account.ts'

/**
 * Identifies the process behind a pid, so that a later process with the same pid is not mistaken for it. Uses the start
 * time and boot id on Linux (proc_pid_stat(5), field 22), and the start time from `ps` elsewhere. Returns undefined if
 * the process is gone or a zombie.
 */
export function identifyProcess(pid: number): string | undefined {
  if (process.platform !== 'linux') {
    const { stdout } = spawnSync('ps', ['-p', String(pid), '-o', 'lstart='], { encoding: 'utf8' })
    return stdout?.trim() || undefined
  }
  try {
    // Field 2, the name, may contain spaces and parentheses, so count fields from the last closing parenthesis.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined
    return `${fields[19]}@${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}`
  } catch {
    return undefined
  }
}

/** True if `pid` is a live PostgreSQL process with the data folder `data` (an absolute path without symlinks). */
export function isPostgresOf(pid: number, data: string): boolean {
  if (identifyProcess(pid) === undefined) return false
  if (process.platform === 'linux') return isPostgresIn(pid, data)
  const { stdout } = spawnSync('ps', ['-p', String(pid), '-o', 'command='], { encoding: 'utf8' })
  return !!stdout?.includes('postgres') && stdout.includes(data)
}

/**
 * Returns all PostgreSQL processes whose working directory is `data`: the server and its children. Returns none on
 * systems other than Linux.
 */
export function listPostgresProcesses(data: string): number[] {
  if (process.platform !== 'linux') return []
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => isPostgresIn(pid, data))
}

function isPostgresIn(pid: number, data: string): boolean {
  try {
    const program = path.basename(readlinkSync(`/proc/${pid}/exe`).replace(/ \(deleted\)$/, ''))
    return program === 'postgres' && readlinkSync(`/proc/${pid}/cwd`) === data
  } catch {
    return false
  }
}

/** Sends each signal in turn, and waits up to its `ms` for the process to end. Returns true if the process is gone. */
export async function endProcess(
  pid: number,
  steps: readonly { signal: NodeJS.Signals; ms: number }[],
): Promise<boolean> {
  const before = identifyProcess(pid)
  const gone = () => before === undefined || identifyProcess(pid) !== before
  for (const { signal, ms } of steps) {
    if (gone()) return true
    try {
      process.kill(pid, signal)
    } catch {
      return gone()
    }
    await waitUntil(gone, ms)
  }
  return gone()
}

/** Polls `condition` until it holds or `ms` have passed. Returns true if it held. */
export async function waitUntil(condition: () => boolean, ms: number, every = 10): Promise<boolean> {
  const deadline = performance.now() + ms
  while (!condition()) {
    if (performance.now() > deadline) return false
    await new Promise((resolve) => setTimeout(resolve, every))
  }
  return true
}

/**
 * Runs a program as `account` until it exits. @throws an error with the last 4,000 characters of its output if it
 * fails.
 */
export function runProgram(
  file: string,
  args: readonly string[],
  options: { account: Account | undefined; env: Record<string, string>; input?: string },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { cwd: '/', env: options.env, detached: true, ...options.account })
    let output = ''
    const collect = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-4_000)
    }
    child.stdout.on('data', collect)
    child.stderr.on('data', collect)
    child.stdin.on('error', () => {}) // The program may exit before it reads everything. Its exit code decides.
    child.stdin.end(options.input ?? '')
    child.on('error', reject)
    child.on('close', (code, signal) => {
      if (code === 0) resolve()
      else reject(new Error(`${path.basename(file)} failed (${signal ?? code}):\n${output.trim()}`))
    })
  })
}
