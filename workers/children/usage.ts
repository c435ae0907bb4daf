import { readFileSync } from 'node:fs'

/** What a process has used, as far as the platform tells. */
export interface Usage {
  /** CPU time of all its threads, in ms. */
  readonly cpuMs: number
  /** Memory that is resident, in bytes. */
  readonly rssBytes: number
}

// sysconf(_SC_CLK_TCK) and the page size of every platform that Node is built for on Linux x64 and arm64.
const TICKS_PER_SECOND = 100
const PAGE_BYTES = 4096

/** Reads /proc (proc(5)); null where there is none, or no such process any more: then only time and heap are limited. */
export function usageOf(pid: number): Usage | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name of the program, the second field, may hold spaces and brackets: what is counted begins behind its last one.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // It has ended, and whoever started it has not asked how yet.
    if (fields[0] === 'Z') return null
    const ticks = Number(fields[11]) + Number(fields[12])
    return { cpuMs: (ticks * 1000) / TICKS_PER_SECOND, rssBytes: Number(fields[21]) * PAGE_BYTES }
  } catch {
    return null
  }
}
