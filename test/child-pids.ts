import { readdirSync, readFileSync } from 'node:fs'

/**
 * Returns the fields of /proc/PID/stat after the command, which may contain spaces: state, parent, …
 * (proc_pid_stat(5)). Returns null if the process has exited.
 */
export function readStatFields(pid: number): string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return null
  }
}

/** Returns the ids of a process's current children whose command line contains a text. */
export const listChildPids = (parent: number, part = ''): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && readStatFields(Number(name))?.[1] === String(parent))
    .map(Number)
    .filter((pid) => readCommandLine(pid).includes(part))

function readCommandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    // The process has exited meanwhile.
    return ''
  }
}
