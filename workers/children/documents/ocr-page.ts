/** Words from the pixels of a page: by the engine of this process, or by a model that the caller has to ask. */
import type { PageResult } from '../../../tasks/context.ts'
import type { OpenOptions, ReadPage } from '../work.ts'
import type { Grey } from './grey.ts'
import { type Canvas, isBlank, release, toGrey, toPng, Unreadable } from './images.ts'
import { type Read, recognizeUpright } from './orientation.ts'
import { tidy } from './texts.ts'
import { modelOf, recognize } from './vision.ts'

// A model that is less confident of its words than this has looked at a photograph.
const LEAST_CONFIDENCE = 30

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
  if (!/[\p{L}\p{N}]/u.test(text) || confidence < LEAST_CONFIDENCE) {
    throw new Unreadable('No words were found in the image of the page')
  }
  return { status: 'read', method: 'vision', model: modelOf(languages), ...tidy(text.trimEnd()) }
}
