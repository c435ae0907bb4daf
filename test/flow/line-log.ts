import pino from 'pino'
import type { Log } from '../../tasks/log.ts'

/** A log for an edge in this process, and its lines so far, as a process of its own would write them. */
export function lineLog(): { readonly log: Log; readonly lines: readonly string[] } {
  const lines: string[] = []
  return { log: pino({ level: 'info' }, { write: (text: string) => lines.push(text.trim()) }), lines }
}
