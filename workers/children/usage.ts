import { readFileSync } from 'node:fs'

/** What a process has used, as far as the platform reports it. */
export interface Usage {
  /** CPU time of all its threads, in ms. */
  readonly cpuMs: number
  /** Memory that is resident, in bytes. */
  readonly rssBytes: number
}

// sysconf(_SC_CLK_TCK) of Linux on every architecture that Node is built for.
const TICKS_PER_SECOND = 100

/** Reads /proc (proc(5)); null if that, or the process, does not exist: then only time and heap are limited. */
export function usageOf(pid: number): Usage | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The second field, the program's name, may contain spaces and brackets: fields are counted after its last bracket.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const ticks = Number(fields[11]) + Number(fields[12])
    // A zombie, which has ended but has not been waited for, has none.
    const resident = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))
    if (resident === null) return null
    return { cpuMs: (ticks * 1000) / TICKS_PER_SECOND, rssBytes: Number(resident[1]) * 1024 }
  } catch {
    return null
  }
}
