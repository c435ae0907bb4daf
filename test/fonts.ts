import { fileURLToPath } from 'node:url'
import { GlobalFonts } from '@napi-rs/canvas'

/** The font of drawn texts. It comes with a package, because a fresh machine has no fonts. */
export const TEST_FONT = 'ScanSans'

const home = import.meta.resolve('pdfjs-dist/package.json')
GlobalFonts.registerFromPath(
  fileURLToPath(new URL('standard_fonts/LiberationSans-Regular.ttf', home)),
  TEST_FONT,
)
