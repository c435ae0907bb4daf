import { readdirSync, readFileSync } from 'node:fs'

/** Returns the ids of a process's current children whose command line contains a text. */
export const listChildPids = (parent: number, part = ''): number[] =>
  readdirSync('/proc')
    .filter((name) => {
      if (!/^\d+$/.test(name)) return false
      try {
        // The program's name may contain anything, so the fields are counted from its last bracket.
        const stat = readFileSync(`/proc/${name}/stat`, 'latin1')
        const isChild = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === parent
        return isChild && readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(part)
      } catch {
        // The process has exited meanwhile.
        return false
      }
    })
    .map(Number)
