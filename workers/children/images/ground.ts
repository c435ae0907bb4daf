/** Puts images with transparent parts on a ground that shows their print. */

// Pixels with at least this alpha count as print, the others as ground.
const MIN_VISIBLE_ALPHA = 128
// Print lighter than this is invisible on white.
const MAX_LIGHT_ON_WHITE = 150

const WHITE = 255
const BLACK = 0

/**
 * Composes RGBA pixels on white, or on black if the print on the transparent ground is light. Changes the pixels in
 * place. Returns false if no pixel is visible.
 */
export function composeOnGround(rgba: Uint8Array): boolean {
  const { visible, edges, light } = measureEdges(rgba)
  const ground = edges > 0 && light / edges > MAX_LIGHT_ON_WHITE ? BLACK : WHITE
  for (let i = 0; i < rgba.length; i += 4) {
    const alpha = rgba[i + 3]!
    if (alpha === 255) continue
    const rest = ((255 - alpha) * ground) / 255
    rgba[i] = (rgba[i]! * alpha) / 255 + rest
    rgba[i + 1] = (rgba[i + 1]! * alpha) / 255 + rest
    rgba[i + 2] = (rgba[i + 2]! * alpha) / 255 + rest
    rgba[i + 3] = 255
  }
  return visible
}

/** Sums the brightness of the visible pixels next to transparent ones: that of the print, whatever else the image shows. */
function measureEdges(rgba: Uint8Array): { visible: boolean; edges: number; light: number } {
  let [visible, edges, light] = [false, 0, 0]
  let wasVisible = (rgba[3] ?? 0) >= MIN_VISIBLE_ALPHA
  for (let i = 0; i < rgba.length; i += 4) {
    const isVisible = rgba[i + 3]! >= MIN_VISIBLE_ALPHA
    if (rgba[i + 3]! > 0) visible = true
    if (isVisible !== wasVisible) {
      const at = isVisible ? i : i - 4
      edges++
      light += (rgba[at]! * 77 + rgba[at + 1]! * 150 + rgba[at + 2]! * 29) >> 8
    }
    wasVisible = isVisible
  }
  return { visible, edges, light }
}
