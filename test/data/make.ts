/** Writes the files of this folder, with the same bytes on each run (`node --import tsx test/data/make.ts`). */
/**
 * The encoder of `@jsquash/jxl` wrote `words.jxl`, the picture of `scanner-images.test.ts`, and `white.jxl`, of 2960 x 2960
 * white pixels.
 */
import { writeFile } from 'node:fs/promises'
import { buildMixedPdf } from '../pdfs.ts'

const titles = [
  'Annual report of the harbour office',
  'Letters received in the first quarter',
  'Statement of the northern branch, as signed',
  'Supplies for the coming winter',
]

/** Four pages, of which the third is a scan. */
const sample = await buildMixedPdf(4, [3], { line: n => titles[n - 1]!, sentences: 8 })
await writeFile(new URL('sample.pdf', import.meta.url), sample)
