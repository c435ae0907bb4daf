import { type Canvas, createCanvas } from '@napi-rs/canvas'

/** Draws print of 5 x 7 dots, as receipt printers and displays show it. */

// Five columns for each character; the lowest bit is the top dot.
const FONT: Readonly<Record<string, readonly number[]>> = {
  '.': [0, 0x60, 0x60, 0, 0],
  ',': [0, 0x50, 0x30, 0, 0],
  0: [0x3e, 0x51, 0x49, 0x45, 0x3e],
  1: [0, 0x42, 0x7f, 0x40, 0],
  2: [0x42, 0x61, 0x51, 0x49, 0x46],
  4: [0x18, 0x14, 0x12, 0x7f, 0x10],
  5: [0x27, 0x45, 0x45, 0x45, 0x39],
  8: [0x36, 0x49, 0x49, 0x49, 0x36],
  A: [0x7e, 0x11, 0x11, 0x11, 0x7e],
  C: [0x3e, 0x41, 0x41, 0x41, 0x22],
  D: [0x7f, 0x41, 0x41, 0x22, 0x1c],
  E: [0x7f, 0x49, 0x49, 0x49, 0x41],
  H: [0x7f, 8, 8, 8, 0x7f],
  L: [0x7f, 0x40, 0x40, 0x40, 0x40],
  M: [0x7f, 2, 4, 2, 0x7f],
  O: [0x3e, 0x41, 0x41, 0x41, 0x3e],
  R: [0x7f, 9, 0x19, 0x29, 0x46],
  T: [1, 1, 0x7f, 1, 1],
  U: [0x3f, 0x40, 0x40, 0x40, 0x3f],
}
const COLUMNS = 6
const ROWS = 12
const MARGIN = 30

/** Size of the dots and their distance, in pixels, and the colours. */
export interface DotPrint {
  readonly pitch: number
  readonly dot: number
  readonly ink?: string
  readonly paper?: string
}

export function drawDotPrint(lines: readonly string[], style: DotPrint): Canvas {
  const { pitch, dot, ink = '#000', paper = '#fff' } = style
  const width = 2 * MARGIN + Math.max(...lines.map(({ length }) => length)) * COLUMNS * pitch
  const canvas = createCanvas(width, 2 * MARGIN + lines.length * ROWS * pitch)
  const context = canvas.getContext('2d')
  context.fillStyle = paper
  context.fillRect(0, 0, canvas.width, canvas.height)
  context.fillStyle = ink
  for (const [row, line] of lines.entries())
    for (const [at, letter] of [...line].entries())
      for (const [column, dots] of (FONT[letter] ?? []).entries())
        for (let y = 0; y < 7; y++)
          if ((dots >> y) & 1)
            context.fillRect(
              MARGIN + (at * COLUMNS + column) * pitch,
              MARGIN + (row * ROWS + y) * pitch,
              dot,
              dot,
            )
  return canvas
}
