/** Finds dark bands and panels with light print, and inverts them for OCR. */
import type { GreyImage } from './grey.ts'

// Cells of 8 x 8 pixels. A panel of one line of print has even cells next to the words.
const CELL_SIZE = 8
// White print on a lighter ground is illegible.
const MAX_PANEL_LEVEL = 200
// Maximum range of the levels in an even cell. Scanner noise stays below it.
const MAX_CELL_RANGE = 48
// Minimum difference between the levels of panel and paper.
const MIN_CONTRAST = 48
// Sizes in pixels. A smaller panel has no legible line of print.
const MIN_PANEL_WIDTH = 40
const MIN_PANEL_HEIGHT = 14
const MIN_GLYPH_PIXELS = 8
// A large bold letter has up to two holes, but fills at most 0.9 of its bounds. A drawn panel is a whole rectangle.
const MIN_GLYPHS = 3
const MIN_RECTANGLE_DENSITY = 0.96
// A denser dark region with larger holes is a frame or a drawing.
const MAX_GLYPH_SHARE = 0.6
// A light area within a panel from this size and density on is a box, whose own print is dark.
const MIN_BOX_SIDE = 48
const MIN_BOX_DENSITY = 0.65
// A longer light run at the edge of the image is paper. A shorter one may be a glyph that the edge cuts.
const MAX_CUT_GLYPH = 48

/** Returns a copy of the image with dark print on white in place of panels with light print; null without a panel. */
export function invertPanels(grey: GreyImage): GreyImage | null {
  const seeds = findSeeds(grey)
  if (seeds.length === 0) return null
  const paper = findPaperLevel(grey)
  const regions = new Uint16Array(grey.data.length)
  let inverted: Uint8Array | null = null
  let count = 0
  let budget = MAX_AREAS * grey.data.length
  for (const { at, level } of seeds) {
    if (regions[at] !== 0 || paper - level < MIN_CONTRAST || count === MAX_REGIONS) continue
    const panel = floodPanel(grey, regions, { at, level, paper, label: ++count })
    const { left, right, top, bottom } = panel
    if (right - left + 1 < MIN_PANEL_WIDTH || bottom - top + 1 < MIN_PANEL_HEIGHT) continue
    budget -= (right - left + 1) * (bottom - top + 1)
    if (budget < 0) break
    const kinds = classifyHoles(grey, regions, panel)
    if (kinds === null) continue
    inverted ??= grey.data.slice()
    invertPanel(grey, inverted, panel, kinds)
  }
  return inverted && { ...grey, data: inverted }
}

// Limits the total area of all panels, in areas of the image: the bounds of stripes and rings overlap.
const MAX_AREAS = 6
// Labels of regions have 16 bits.
const MAX_REGIONS = 65_535

interface Seed {
  readonly at: number
  readonly level: number
}

/** Returns the even dark cells next to another one. Reads a quarter of the pixels of a dark page, and few of a light one. */
function findSeeds({ data, width, height }: GreyImage): Seed[] {
  const across = Math.floor(width / CELL_SIZE)
  const seeds: Seed[] = []
  let above = new Uint8Array(across)
  for (let top = 0; top + CELL_SIZE <= height; top += CELL_SIZE) {
    const row = new Uint8Array(across)
    for (let cell = 0; cell < across; cell++) {
      const from = top * width + cell * CELL_SIZE
      const isLight =
        data[from + 2 * width + 2]! > MAX_PANEL_LEVEL || data[from + 6 * width + 6]! > MAX_PANEL_LEVEL
      const level = isLight ? null : measureCell(data, from, width)
      if (level === null) continue
      row[cell] = 1
      if (row[cell - 1] === 1 || above[cell] === 1) seeds.push({ at: from + 2 * width + 2, level })
    }
    above = row
  }
  return seeds
}

/** Returns the mean level of a cell; null if it is light or uneven. */
function measureCell(data: Uint8Array, from: number, width: number): number | null {
  let [low, high, sum] = [255, 0, 0]
  for (let y = 0; y < CELL_SIZE; y += 2)
    for (let x = 0, at = from + y * width; x < CELL_SIZE; x += 2, at += 2) {
      const level = data[at]!
      if (level < low) low = level
      if (level > high) high = level
      sum += level
    }
  const mean = Math.round(sum / (CELL_SIZE / 2) ** 2)
  return mean <= MAX_PANEL_LEVEL && high - low <= MAX_CELL_RANGE ? mean : null
}

const LIGHT_THRESHOLD = 160

/** Returns the most common light level: that of the paper, or of the print on a page that is dark. */
function findPaperLevel({ data }: GreyImage): number {
  const counts = new Uint32Array(256)
  for (let i = 0; i < data.length; i += 7) counts[data[i]!]!++
  const light = counts.subarray(LIGHT_THRESHOLD)
  return LIGHT_THRESHOLD + light.indexOf(light.reduce((a, b) => Math.max(a, b), 0))
}

/** A connected dark region: its bounds, inclusive, and its levels. */
interface Panel {
  readonly left: number
  readonly right: number
  readonly top: number
  readonly bottom: number
  readonly pixelCount: number
  readonly label: number
  readonly level: number
  readonly paper: number
  /** Lighter pixels are print or paper. */
  readonly threshold: number
}

/** Labels all pixels that connect to `at` and are no lighter than the middle between panel and paper. */
function floodPanel(
  { data, width, height }: GreyImage,
  regions: Uint16Array,
  { at, level, paper, label }: Seed & { readonly paper: number; readonly label: number },
): Panel {
  const threshold = (level + paper) >> 1
  const waiting = [at]
  regions[at] = label
  let [left, right, top, bottom, pixelCount] = [width, 0, height, 0, 0]
  const visit = (next: number): void => {
    if (regions[next] !== 0 || data[next]! > threshold) return
    regions[next] = label
    waiting.push(next)
  }
  for (let pixel = waiting.pop(); pixel !== undefined; pixel = waiting.pop()) {
    const y = Math.floor(pixel / width)
    const x = pixel - y * width
    pixelCount++
    if (x < left) left = x
    if (x > right) right = x
    if (y < top) top = y
    if (y > bottom) bottom = y
    if (x > 0) visit(pixel - 1)
    if (x < width - 1) visit(pixel + 1)
    if (y > 0) visit(pixel - width)
    if (y < height - 1) visit(pixel + width)
  }
  return { left, right, top, bottom, pixelCount, label, level, paper, threshold }
}

/** Kinds of pixels within the bounds of a panel. */
const Kind = { unknown: 0, panel: 1, glyph: 2, other: 3 } as const

/**
 * Returns the kind of each pixel within a panel's bounds; null if the region is no panel with light print.
 * A dark spot within a glyph, such as the inside of an O, is of the glyph's kind.
 */
function classifyHoles(grey: GreyImage, regions: Uint16Array, panel: Panel): Uint8Array | null {
  const { left, right, top, bottom, label, threshold } = panel
  const across = right - left + 1
  const kinds = new Uint8Array(across * (bottom - top + 1))
  let [glyphs, glyphPixels, darkPixels] = [0, 0, 0]
  // Dark print on a panel of medium level. On a dark panel there can be none.
  const darkThreshold = panel.level - Math.max(MIN_CONTRAST, panel.paper - panel.threshold)
  for (let y = top, cell = 0; y <= bottom; y++)
    for (let x = left, at = y * grey.width + left; x <= right; x++, at++, cell++) {
      if (kinds[cell] !== Kind.unknown) continue
      if (regions[at] === label) {
        kinds[cell] = Kind.panel
        if (grey.data[at]! < darkThreshold) darkPixels++
      } else if (grey.data[at]! > threshold) {
        // A light spot behind a dark one, such as the inside of an O in a box, is of the same kind.
        const around = x === left ? Kind.other : kinds[cell - 1]!
        const hole = fillHole(grey, panel, kinds, cell, around)
        if (hole.isGlyph && hole.pixelCount >= MIN_GLYPH_PIXELS) glyphs++
        if (hole.isGlyph) glyphPixels += hole.pixelCount
      } else kinds[cell] = x === left ? Kind.other : kinds[cell - 1]!
    }
  const isRectangle = panel.pixelCount + glyphPixels > MIN_RECTANGLE_DENSITY * kinds.length
  const isPrint = glyphs >= (isRectangle ? 1 : MIN_GLYPHS) && glyphPixels > darkPixels
  return isPrint && glyphPixels < MAX_GLYPH_SHARE * (panel.pixelCount + glyphPixels) ? kinds : null
}

/** Sets the kind of all light pixels that connect to the one at `cell`. */
function fillHole(
  { data, width, height }: GreyImage,
  panel: Panel,
  kinds: Uint8Array,
  cell: number,
  around: number,
): { isGlyph: boolean; pixelCount: number } {
  const { left, right, top, bottom, threshold } = panel
  const across = right - left + 1
  const down = bottom - top + 1
  const found = [cell]
  kinds[cell] = Kind.other
  let [minX, maxX, minY, maxY, isOutside, cut] = [across, 0, down, 0, false, 0]
  for (let n = 0; n < found.length; n++) {
    const y = Math.floor(found[n]! / across)
    const x = found[n]! - y * across
    if (x < minX) minX = x
    if (x > maxX) maxX = x
    if (y < minY) minY = y
    if (y > maxY) maxY = y
    if (x === 0 || y === 0 || x === across - 1 || y === down - 1) {
      const [ofX, ofY] = [x + left, y + top]
      const isCut = ofX === 0 || ofY === 0 || ofX === width - 1 || ofY === height - 1
      if (isCut) cut++
      else isOutside = true
    }
    for (let nearY = Math.max(0, y - 1); nearY <= Math.min(down - 1, y + 1); nearY++)
      for (let nearX = Math.max(0, x - 1); nearX <= Math.min(across - 1, x + 1); nearX++) {
        const near = nearY * across + nearX
        if (kinds[near] !== Kind.unknown || data[(nearY + top) * width + nearX + left]! <= threshold) continue
        kinds[near] = Kind.other
        found.push(near)
      }
  }
  const [wide, high] = [maxX - minX + 1, maxY - minY + 1]
  const isBox = Math.min(wide, high) >= MIN_BOX_SIDE && found.length >= MIN_BOX_DENSITY * wide * high
  const isGlyph = around !== Kind.other && !isOutside && !isBox && cut <= MAX_CUT_GLYPH
  if (isGlyph) for (const one of found) kinds[one] = Kind.glyph
  return { isGlyph, pixelCount: found.length }
}

/** Inverts the glyphs with their smooth edges, and whitens the rest of the panel. */
function invertPanel(
  { data, width }: GreyImage,
  inverted: Uint8Array,
  panel: Panel,
  kinds: Uint8Array,
): void {
  const { left, right, top, bottom, level, paper } = panel
  const across = right - left + 1
  const isAtGlyph = (cell: number): boolean =>
    kinds[cell - 1] === Kind.glyph ||
    kinds[cell + 1] === Kind.glyph ||
    kinds[cell - across] === Kind.glyph ||
    kinds[cell + across] === Kind.glyph
  for (let y = top, cell = 0; y <= bottom; y++)
    for (let x = left, at = y * width + left; x <= right; x++, at++, cell++) {
      if (kinds[cell] === Kind.other) continue
      const isInk = kinds[cell] === Kind.glyph || isAtGlyph(cell)
      const ink = isInk ? (255 * (data[at]! - level)) / (paper - level) : 0
      inverted[at] = 255 - Math.max(0, Math.min(255, ink))
    }
}
