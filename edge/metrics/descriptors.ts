import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { type Periodic, runPeriodically } from '../../tasks/platform/periodic.ts'

/**
 * Warns of a process that runs out of file descriptors. The HTTP core then accepts no connection and reports nothing:
 * clients wait until others disconnect.
 */

const INTERVAL_MS = 10_000
const WARN_ABOVE = 0.9
const CALM_BELOW = 0.8

/** Open descriptors of this process, and the most that it may open (`ulimit -n`). */
export interface DescriptorUse {
  readonly open: number
  readonly max: number
}

/**
 * Checks every 10 s how many descriptors are open. Logs once when nine tenths of them are used, and when fewer than
 * eight tenths are used again.
 */
export function watchDescriptors(
  log: { warn(data: object, line: string): void; info(data: object, line: string): void },
  readUse: () => Promise<DescriptorUse | null> = createUseReader(),
  everyMs = INTERVAL_MS,
): Periodic {
  let isShort = false
  const check = async (): Promise<void> => {
    const use = await readUse()
    if (use === null) return
    const share = use.open / use.max
    if (!isShort && share >= WARN_ABOVE) {
      isShort = true
      log.warn(
        use,
        'File descriptors run out: new connections will wait; raise the limit (ulimit -n) or add edges',
      )
    } else if (isShort && share < CALM_BELOW) {
      isShort = false
      log.info(use, 'File descriptors are free again')
    }
  }
  return runPeriodically(everyMs, check, (error) =>
    log.warn({ err: error }, 'Counting file descriptors failed'),
  )
}

/** Reads the use from /proc; null where there is none, such as on macOS. */
function createUseReader(): () => Promise<DescriptorUse | null> {
  const max = readLimit()
  return async () => {
    if (max === null) return null
    try {
      return { open: (await readdir('/proc/self/fd')).length, max }
    } catch (error) {
      // Reading the folder takes a descriptor itself.
      if ((error as NodeJS.ErrnoException).code === 'EMFILE') return { open: max, max }
      throw error
    }
  }
}

/** Reads the limit, which a process keeps; null if there is none. */
function readLimit(): number | null {
  try {
    const found = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))
    return found === null ? null : Number(found[1])
  } catch {
    return null
  }
}
