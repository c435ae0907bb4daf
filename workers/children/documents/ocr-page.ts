/** Words from the pixels of a page: by the engine of this process, or by a model that the caller has to ask. */
import type { PageResult } from '../../../tasks/context.ts'
import type { OpenOptions, ReadPage } from '../work.ts'
import type { Grey } from './grey.ts'
import { type Canvas, isBlank, release, toGrey, toPng, Unreadable } from './images.ts'
import { type Read, recognizeUpright } from './orientation.ts'
import { lettersIn, tidy } from './texts.ts'
import { modelOf, recognize } from './vision.ts'

// A model of English has a confidence of 24 to 37 on a clear page of Greek, Arabic or Russian, of 13 to 19 on noise, and of 74
// on German. The worst receipts of which it reads a few words have about 40.
const LEAST_CONFIDENCE = 40
// Fewer letters than this are found in any photograph.
const FEW_LETTERS = 20

/** Turns an error that is the document's own fault into an unread page; rethrows any other. */
export function unread(error: unknown): PageResult {
  if (!(error instanceof Unreadable)) throw error
  return { status: 'unread', method: 'none', model: null, detail: error.message, text: '', image: null }
}

/**
 * Reads `large`; `kept` is stored: a canvas (which may be `large`), or the size of an image to be drawn on demand.
 * Encoding and reading run concurrently, on other threads.
 */
export async function readPixels(
  large: Canvas,
  kept: Canvas | PageResult['image'],
  options: OpenOptions,
  isIncomplete = async () => false,
): Promise<ReadPage> {
  const encoding = kept !== null && 'getContext' in kept ? toPng(kept).finally(() => release(kept)) : null
  const looking = look(large, options, isIncomplete).catch(unread)
  const [seen, encoded] = await Promise.allSettled([looking, encoding])
  release(large)
  if (seen.status === 'rejected') throw seen.reason
  if (encoded.status === 'rejected') throw encoded.reason
  return { ...seen.value, image: encoded.value ?? (kept as PageResult['image']) }
}

async function look(
  canvas: Canvas,
  options: OpenOptions,
  isIncomplete: () => Promise<boolean>,
): Promise<Omit<ReadPage, 'image'>> {
  const { sight } = options
  if (sight === 'none') {
    throw new Unreadable('There is no text layer, and no vision provider is set up to read the image')
  }
  const grey = toGrey(canvas)
  if (isBlank(grey)) {
    if (await isIncomplete())
      throw new Unreadable('The content of the page is damaged or too large to be drawn')
    return { status: 'read', method: 'vision', model: null, detail: null, text: '' }
  }
  if (sight === 'model') return FOR_MODEL
  return readGrey(grey, options)
}

const FOR_MODEL = {
  status: 'unread',
  method: 'none',
  model: null,
  detail: null,
  text: '',
  forModel: true,
} as const

/** What the engine reads on a page that is not blank. Throws `Unreadable`. */
export async function readGrey(
  grey: Grey,
  { languages = 'eng' }: OpenOptions,
): Promise<Omit<PageResult, 'image'>> {
  const read: Read = (picture, limitMs) => recognize(picture, languages, limitMs)
  const { text, confidence } = await recognizeUpright(grey, read)
  const letters = lettersIn(text)
  const isSure = confidence >= LEAST_CONFIDENCE
  if (letters === 0 || (!isSure && letters < FEW_LETTERS))
    throw new Unreadable('No words were found in the image of the page')
  if (!isSure)
    throw new Unreadable(
      `What was read in the image of the page makes no sense (confidence ${Math.round(confidence)} of 100): it is too poor, or not in ${languages}`,
    )
  return { status: 'read', method: 'vision', model: modelOf(languages), ...tidy(text.trimEnd()) }
}
