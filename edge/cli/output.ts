import { styleText } from 'node:util'
import type { Io, TextStream } from './io.ts'

/** Texts for people and JSON for programs. */

export type Colour = 'green' | 'red' | 'yellow' | 'cyan' | 'gray'

export interface Output {
  /** True if the command writes JSON for programs. */
  readonly isJson: boolean
  /** Writes a line of the result. */
  line(text: string): void
  /** Writes a line about the command itself, to the standard error. */
  note(text: string): void
  /** Writes an object as one line. */
  json(value: unknown): void
  /** Shows a state that replaces the last one on a terminal, and has a line of its own elsewhere. */
  state(text: string): void
  /** Colours a text of the result if the standard output is a terminal. */
  paint(colour: Colour | null, text: string): string
  /** Writes aligned columns under their titles, cut at the width of the terminal. */
  table(titles: readonly string[], rows: readonly (readonly Cell[])[]): void
}

/** A text of a table, or one with its colour. */
export type Cell = string | readonly [Colour | null, string]

// Width of a terminal that does not say its own.
const DEFAULT_COLUMNS = 80

export function createOutput({ stdout, stderr, env }: Io, isJson: boolean): Output {
  const hasColour = (stream: TextStream) => stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb'
  // True while the last line of the terminal is a state, which the next text replaces.
  let isOpen = false
  let lastState = ''
  const clear = () => {
    if (isOpen) stderr.write('\r\u001b[K')
    isOpen = false
  }
  const write = (stream: TextStream, text: string) => {
    clear()
    stream.write(`${text}\n`)
  }
  const paint = (colour: Colour | null, text: string) =>
    colour !== null && hasColour(stdout) ? styleText(colour, text, { validateStream: false }) : text
  return {
    isJson,
    line: (text) => write(stdout, text),
    note: (text) => write(stderr, text),
    json: (value) => write(stdout, JSON.stringify(value)),
    state: (text) => {
      if (text === lastState) return
      lastState = text
      if (stderr.isTTY !== true) return write(stderr, text)
      clear()
      stderr.write(cut(text, (stderr.columns || DEFAULT_COLUMNS) - 1))
      isOpen = true
    },
    paint,
    table: (titles, rows) => {
      const cells = rows.map((row) =>
        row.map((cell) => (typeof cell === 'string' ? ([null, cell] as const) : cell)),
      )
      const widths = titles.map((title, n) =>
        Math.max(title.length, ...cells.map((row) => row[n]![1].length)),
      )
      const most = stdout.isTTY === true ? stdout.columns || DEFAULT_COLUMNS : Number.POSITIVE_INFINITY
      for (const row of [titles.map((title) => ['gray', title] as const), ...cells])
        write(stdout, formatRow(row, widths, most, paint))
    },
  }
}

function formatRow(
  row: readonly (readonly [Colour | null, string])[],
  widths: readonly number[],
  most: number,
  paint: Output['paint'],
): string {
  let left = most
  return row
    .map(([colour, text], n) => {
      const padded = n === row.length - 1 ? text : `${text.padEnd(widths[n]!)}  `
      const shown = cut(padded, left)
      left -= shown.length
      return paint(colour, shown)
    })
    .join('')
    .trimEnd()
}

const cut = (text: string, most: number): string =>
  text.length <= most ? text : most <= 0 ? '' : `${text.slice(0, most - 1)}…`

/** Replaces control characters, with which a text of a job could command the terminal. */
export const clean = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to replace
  text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ')

/** Returns a duration in ms as people write it, such as `850ms`, `12s`, `3m`, `2h` or `4d`. */
export function formatDuration(ms: number): string {
  const seconds = ms / 1000
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}ms`
  if (seconds < 10) return `${seconds.toFixed(1)}s`
  if (seconds < 120) return `${Math.round(seconds)}s`
  if (seconds < 7200) return `${Math.round(seconds / 60)}m`
  return seconds < 172_800 ? `${Math.round(seconds / 3600)}h` : `${Math.round(seconds / 86_400)}d`
}

/** Returns the local time of day of a time, such as `15:04:05`. */
export const formatTime = (time: string | number): string => new Date(time).toTimeString().slice(0, 8)
