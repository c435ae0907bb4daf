/** Leaves out text that is outside of the part of a page that viewers show. */
import type { Piece } from './layout.ts'
import type { Native } from './pdfium-native.ts'

/** Returns the pieces of which any part is within the page's crop box. */
export function keepShown(native: Native, page: number, pieces: readonly Piece[]): readonly Piece[] {
  const at = native.wasmExports.malloc(16)
  if (at === 0) return pieces
  try {
    if (native._FPDF_GetPageBoundingBox(page, at) === 0) return pieces
    const [left, top, right, bottom] = native.HEAPF32.slice(at >> 2, (at >> 2) + 4) as never as number[]
    // A crop box outside of the page hides nothing.
    if (right! <= left! || top! <= bottom!) return pieces
    const isOutside = (x: number, y: number, endX: number, endY: number): boolean =>
      Math.max(x, endX) < left! ||
      Math.min(x, endX) > right! ||
      Math.max(y, endY) < bottom! ||
      Math.min(y, endY) > top!
    return dropPieces(pieces, ({ angle, start, end, base, size }) => {
      // Half the size reaches to the middle of the letters.
      const upper = base + size / 2
      if (angle === 0) return isOutside(start, base, end, upper)
      const [cos, sin] = [Math.cos(angle), Math.sin(angle)]
      return isOutside(
        start * cos - base * sin,
        start * sin + base * cos,
        end * cos - upper * sin,
        end * sin + upper * cos,
      )
    })
  } finally {
    native.wasmExports.free(at)
  }
}

/** Drops pieces. The piece before them then ends the line, if any of them did. */
function dropPieces(pieces: readonly Piece[], isDropped: (piece: Piece) => boolean): readonly Piece[] {
  if (!pieces.some(isDropped)) return pieces
  const kept: Piece[] = []
  for (const piece of pieces) {
    if (!isDropped(piece)) kept.push(piece)
    else if (piece.endsLine && kept.length > 0) kept.push({ ...kept.pop()!, endsLine: true })
  }
  return kept
}
