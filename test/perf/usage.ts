import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { listChildPids, readStatFields } from '../child-pids.ts'

// Linux fixes USER_HZ at 100 in its interface to user space.
const MS_PER_TICK = 10

/**
 * Starts a measurement. The returned function returns the CPU ms that each group and all other processes have used
 * since. Groups are listed again at the end, and a process that joined meanwhile counts from its start.
 */
export function startCpuMeter<G extends string>(
  groups: Readonly<Record<G, () => readonly number[]>>,
): () => { used: Record<G, number>; foreign: number } {
  const names = Object.keys(groups) as G[]
  const before = new Map(names.flatMap((name) => groups[name]()).map((pid) => [pid, readTicks(pid)]))
  const busyBefore = readBusyTicks()
  return () => {
    const busy = (readBusyTicks() - busyBefore) * MS_PER_TICK
    const used = {} as Record<G, number>
    // A process that has exited can't be read, and counts as zero.
    for (const name of names)
      used[name] =
        groups[name]().reduce((sum, pid) => sum + Math.max(0, readTicks(pid) - (before.get(pid) ?? 0)), 0) *
        MS_PER_TICK
    const ours = names.reduce((sum, name) => sum + used[name], 0)
    return { used, foreign: Math.max(0, busy - ours) }
  }
}

/** Returns the busy CPU time of the whole machine in ticks (proc_stat(5)). */
function readBusyTicks(): number {
  const [user, nice, system, , , irq, softirq, steal] = readFileSync('/proc/stat', 'utf8')
    .split('\n', 1)[0]!
    .split(/ +/)
    .slice(1)
    .map(Number)
  return user! + nice! + system! + irq! + softirq! + steal!
}

/** Returns the ids of a process and its current children. For PostgreSQL, these are the server and all backends. */
export const listFamilyPids = (pid: number): number[] => [pid, ...listChildPids(pid)]

/** Returns the resident memory of a process in bytes. */
export const readResidentBytes = (pid: number): number => readStatusBytes(pid, 'VmRSS')

/**
 * Returns the resident memory of a process and its current children, in bytes. A process that has just exited counts as
 * zero.
 */
export const readFamilyBytes = (pid: number): number =>
  listFamilyPids(pid).reduce((sum, one) => {
    try {
      return sum + readResidentBytes(one)
    } catch {
      return sum
    }
  }, 0)

/** Returns the peak resident memory of a process since its start or the last `resetPeak`, in bytes. */
export const readPeakBytes = (pid: number): number => readStatusBytes(pid, 'VmHWM')

/** Resets the peak of the resident memory (proc_pid_clear_refs(5)). */
export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
}

function readStatusBytes(pid: number, name: string): number {
  const line = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(line?.[1] ?? 0) * 1024
}

function readTicks(pid: number): number {
  const stat = readStatFields(pid)
  return stat === null ? 0 : Number(stat[11]) + Number(stat[12])
}

// Ratios are too noisy if other processes use more cores than this.
const MAX_QUIET_CORES = 0.1
const POLL_INTERVAL_MS = 400

/**
 * Waits for up to BENCH_PATIENCE_SECONDS until no other process keeps the machine busy. The measured processes must be
 * idle.
 */
export async function waitUntilQuiet(): Promise<void> {
  const end = Date.now() + Number(process.env.BENCH_PATIENCE_SECONDS ?? 45) * 1000
  for (let quiet = 0; quiet < 2 && Date.now() < end; ) {
    const meter = startCpuMeter({})
    await delay(POLL_INTERVAL_MS)
    quiet = meter().foreign / POLL_INTERVAL_MS < MAX_QUIET_CORES ? quiet + 1 : 0
  }
}

const DISTURBED_CORES = 0.15
const MAX_RETRIES = Number(process.env.BENCH_RETRIES ?? 2)

/** Measures on a quiet machine, and retries if other processes disturb it. Returns the least disturbed result. */
export async function measureUndisturbed<T extends { readonly foreignCores: number }>(
  measure: () => Promise<T>,
): Promise<T> {
  await waitUntilQuiet()
  let best = await measure()
  for (let again = 0; again < MAX_RETRIES && best.foreignCores > DISTURBED_CORES; again++) {
    await waitUntilQuiet()
    const next = await measure()
    if (next.foreignCores < best.foreignCores) best = next
  }
  return best
}
