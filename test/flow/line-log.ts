import pino from 'pino'
import type { Log } from '../../tasks/platform/log.ts'

/** Creates a log for an edge in this process, and collects the lines that a separate process would print. */
export function createLineLog(): { readonly log: Log; readonly lines: readonly string[] } {
  const lines: string[] = []
  return { log: pino({ level: 'info' }, { write: (text: string) => lines.push(text.trim()) }), lines }
}
