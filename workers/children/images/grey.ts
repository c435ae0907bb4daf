/** Converts pixels to grey levels: print of any colour becomes dark, paper of any colour light. */

/** One byte per pixel, row by row, 0 black to 255 white. */
export interface GreyImage {
  readonly data: Uint8Array
  readonly width: number
  readonly height: number
}

// Cells of 16 x 16 pixels. At 250 dpi no stroke of ordinary print fills a cell, but highlighter and shaded table cells
// do.
const CELL_BITS = 4
const CELL_SIZE = 2 ** CELL_BITS
// A pixel is coloured if its channels differ by more than this. JPEG noise stays below it.
const COLOUR_THRESHOLD = 48
const MAX_COLOURED_PIXELS = 0.7 * CELL_SIZE * CELL_SIZE
// Coloured print on a darker ground is light by its brightness, and dark by its darkest channel.
const DARK_BRIGHTNESS = 96
const MAX_DARK_PIXELS = 0.5 * CELL_SIZE * CELL_SIZE

/**
 * Collects the pixels of an image from the top. A coloured pixel gets the level of its darkest channel, because light blue
 * print almost vanishes by brightness. Areas covered by colour are paper and use brightness: black on yellow stays black.
 * Mostly dark areas also use brightness: yellow on black stays light.
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

  /** Adds whole rows of RGBA pixels. Alpha is ignored. */
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
        // Rec. 601 weights.
        const brightness = (red * 77 + green * 150 + blue * 29) >> 8
        bright[at] = brightness
        const isColoured = high - low > COLOUR_THRESHOLD
        // The darkest channel of a near-grey pixel is mostly noise, which OCR would read as dots.
        dark[at] = isColoured ? low : brightness
        if (isColoured) cells[row + (x >> CELL_BITS)]!++
      }
    }
    this.#at = at
  }

  /** Returns the levels of the whole image. Call it after the last row. */
  grey(): GreyImage {
    const [data, across] = [this.#dark, this.#across]
    const down = this.#coloured.length / across
    for (const [cell, count] of this.#coloured.entries()) {
      if (count < MAX_COLOURED_PIXELS && (count === 0 || !this.#isDarkCell(cell))) continue
      // Also brighten the adjacent cells: they contain the edge of the area.
      const [left, top] = [(cell % across) - 1, Math.floor(cell / across) - 1]
      for (let y = Math.max(0, top); y < Math.min(down, top + 3); y++)
        for (let x = Math.max(0, left); x < Math.min(across, left + 3); x++) this.#brighten(x, y)
    }
    return { data, width: this.#width, height: this.#height }
  }

  #isDarkCell(cell: number): boolean {
    const [left, top] = [(cell % this.#across) << CELL_BITS, Math.floor(cell / this.#across) << CELL_BITS]
    const [right, bottom] = [Math.min(this.#width, left + CELL_SIZE), Math.min(this.#height, top + CELL_SIZE)]
    let dark = 0
    for (let y = top; y < bottom; y++)
      for (let x = left; x < right; x++) if (this.#bright[y * this.#width + x]! < DARK_BRIGHTNESS) dark++
    return dark > MAX_DARK_PIXELS
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
