import { readFileSync } from 'node:fs'

/** Resource usage of a process. */
export interface Usage {
  /** CPU time of all threads of the process, in ms. */
  readonly cpuMs: number
  /** Resident memory, in bytes. */
  readonly rssBytes: number
}

// sysconf(_SC_CLK_TCK) on Linux, the same on every architecture that Node supports.
const TICKS_PER_SECOND = 100

/** Reads /proc (proc(5)); null if it or the process does not exist. Without it, only wall time and heap are limited. */
export function readUsage(pid: number): Usage | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // Skips the second field, the program name, which may contain spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const ticks = Number(fields[11]) + Number(fields[12])
    // A zombie process has no VmRSS.
    const resident = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))
    if (resident === null) return null
    return { cpuMs: (ticks * 1000) / TICKS_PER_SECOND, rssBytes: Number(resident[1]) * 1024 }
  } catch {
    return null
  }
}

/** Returns the CPU time of this process, in ms. */
export function readCpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
