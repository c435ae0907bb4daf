/** Grey levels in which print of any colour is dark, and paper of any colour light. */

/** One byte per pixel, row by row, 0 black to 255 white. */
export interface Grey {
  readonly data: Uint8Array
  readonly width: number
  readonly height: number
}

// The side of a cell in pixels. At 250 dpi no stroke of ordinary print fills one, while a marker and a cell of a table do.
const CELL_BITS = 4
const CELL = 2 ** CELL_BITS
// From this difference between its channels on, a pixel is coloured; the noise of JPEG stays below.
const COLOURED = 48
const MAX_COLOURED = 0.7 * CELL * CELL

/**
 * Takes the pixels of a picture from the top. A coloured pixel is as dark as the darkest of its channels: by brightness, print in
 * light blue is hardly there. Where colour covers an area it is paper, and brightness counts: black on yellow is black.
 */
export class GreyLevels {
  readonly #width: number
  readonly #height: number
  readonly #dark: Uint8Array
  readonly #bright: Uint8Array
  readonly #across: number
  readonly #coloured: Uint16Array
  #at = 0

  constructor(width: number, height: number) {
    this.#width = width
    this.#height = height
    this.#dark = new Uint8Array(width * height)
    this.#bright = new Uint8Array(width * height)
    this.#across = (width >> CELL_BITS) + 1
    this.#coloured = new Uint16Array(this.#across * ((height >> CELL_BITS) + 1))
  }

  /** Adds whole rows: red, green, blue, and a fourth byte that doesn't matter. */
  add(rgba: Uint8Array | Uint8ClampedArray): void {
    const [dark, bright, cells, width] = [this.#dark, this.#bright, this.#coloured, this.#width]
    let at = this.#at
    for (let i = 0; i < rgba.length; ) {
      const row = ((at / width) >> CELL_BITS) * this.#across
      for (let x = 0; x < width; x++, i += 4, at++) {
        const red = rgba[i]!
        const green = rgba[i + 1]!
        const blue = rgba[i + 2]!
        if (red === green && green === blue) {
          dark[at] = red
          bright[at] = red
          continue
        }
        const low = red < green ? (red < blue ? red : blue) : green < blue ? green : blue
        const high = red > green ? (red > blue ? red : blue) : green > blue ? green : blue
        // By the Rec. 601 weights.
        const brightness = (red * 77 + green * 150 + blue * 29) >> 8
        bright[at] = brightness
        const isColoured = high - low > COLOURED
        // The darkest channel of a grey pixel is its noise: dots that are read as such.
        dark[at] = isColoured ? low : brightness
        if (isColoured) cells[row + (x >> CELL_BITS)]!++
      }
    }
    this.#at = at
  }

  /** The whole picture. */
  grey(): Grey {
    const [data, across] = [this.#dark, this.#across]
    const down = this.#coloured.length / across
    for (const [cell, count] of this.#coloured.entries()) {
      if (count < MAX_COLOURED) continue
      // With those around it, which have the edge of the area.
      const [left, top] = [(cell % across) - 1, Math.floor(cell / across) - 1]
      for (let y = Math.max(0, top); y < Math.min(down, top + 3); y++)
        for (let x = Math.max(0, left); x < Math.min(across, left + 3); x++) this.#brighten(x, y)
    }
    return { data, width: this.#width, height: this.#height }
  }

  #brighten(cellX: number, cellY: number): void {
    const [from, to] = [cellX << CELL_BITS, Math.min(this.#width, (cellX + 1) << CELL_BITS)]
    const bottom = Math.min(this.#height, (cellY + 1) << CELL_BITS)
    for (let y = cellY << CELL_BITS; y < bottom; y++) {
      const row = y * this.#width
      this.#dark.set(this.#bright.subarray(row + from, row + to), row + from)
    }
  }
}
