/** Words from the pixels of a page: by the engine of this process, or by a model that the caller has to ask. */
import type { PageResult } from '../../../tasks/context.ts'
import { cpuMs } from '../serve.ts'
import type { OpenOptions, ReadPage } from '../work.ts'
import type { Grey } from './grey.ts'
import { type Canvas, isBlank, isDark, release, toPng, Unreadable } from './images.ts'
import { type Read, recognizeUpright, SURE } from './orientation.ts'
import { lettersIn, tidy } from './texts.ts'
import { modelOf, PAGE_CPU_MS, recognize, type Seen } from './vision.ts'

// A model of English has a confidence of 24 to 37 on a clear page of Greek, Arabic or Russian, of 13 to 19 on noise, and of 74
// on German. The worst receipts of which it reads a few words have about 40.
const MIN_CONFIDENCE = 40
// Pixels. Of ten-pixel type 81 % of the words are right, and doubled all; from 13 pixels on doubling changes little, and takes
// half as long again.
const SMALL_TYPE = 12
// Fewer letters than this are found in any photograph, with a confidence of up to 64. Of a sign it is 90.
const FEW_LETTERS = 20
const MIN_OF_FEW = 70

/** Turns an error that is the document's own fault into an unread page; rethrows any other. */
export function unread(error: unknown): PageResult {
  if (!(error instanceof Unreadable)) throw error
  return { status: 'unread', method: 'none', model: null, detail: error.message, text: '', image: null }
}

/** What else can be found out about a picture. */
interface Further {
  /** Whether something of it is missing. */
  readonly isIncomplete?: () => Promise<boolean>
  /** The same enlarged, for small type. */
  readonly enlarged?: (() => Promise<Grey>) | undefined
}

/**
 * Reads a picture; `kept` is stored: a canvas, or the size of an image to be drawn on demand. Encoding and reading run
 * concurrently, on other threads.
 */
export async function readPixels(
  grey: Grey,
  kept: Canvas | PageResult['image'],
  options: OpenOptions,
  further: Further = {},
): Promise<ReadPage> {
  const encoding = kept !== null && 'getContext' in kept ? toPng(kept).finally(() => release(kept)) : null
  const looking = look(grey, options, further).catch(unread)
  const [seen, encoded] = await Promise.allSettled([looking, encoding])
  if (seen.status === 'rejected') throw seen.reason
  if (encoded.status === 'rejected') throw encoded.reason
  return { ...seen.value, image: encoded.value ?? (kept as PageResult['image']) }
}

async function look(
  grey: Grey,
  options: OpenOptions,
  { isIncomplete = async () => false, enlarged }: Further,
): Promise<Omit<ReadPage, 'image'>> {
  const { ocrMode: sight } = options
  if (sight === 'none') {
    throw new Unreadable('There is no text layer, and no vision provider is set up to read the image')
  }
  if (isBlank(grey)) {
    if (await isIncomplete())
      throw new Unreadable('The content of the page is damaged or too large to be drawn')
    return { status: 'read', method: 'vision', model: null, detail: null, text: '' }
  }
  if (sight === 'model') return FOR_MODEL
  return readGrey(grey, options, enlarged)
}

const FOR_MODEL = {
  status: 'unread',
  method: 'none',
  model: null,
  detail: null,
  text: '',
  forModel: true,
} as const

/** What makes sense where light text is on a dark page; null for any other page. */
async function readLight(grey: Grey, read: Read): Promise<Seen | null> {
  if (!isDark(grey)) return null
  const inverted = { ...grey, data: grey.data.map((level) => 255 - level) }
  const seen = await read(inverted, PAGE_CPU_MS / 2).catch(() => null)
  return seen !== null && seen.confidence >= SURE ? seen : null
}

/** What is read of dark text on a light page: enlarged, if it is small. */
async function readDark(grey: Grey, read: Read, end: number, enlarged: Further['enlarged']): Promise<Seen> {
  const seen = await recognizeUpright(grey, read, end)
  if (enlarged === undefined || seen.wordHeight >= SMALL_TYPE) return seen
  const larger = await recognizeUpright(await enlarged(), read, end).catch(() => seen)
  return larger.confidence >= Math.min(seen.confidence, MIN_CONFIDENCE) ? larger : seen
}

/** What the engine reads on a page that is not blank. Throws `Unreadable`. */
export async function readGrey(
  grey: Grey,
  { languages = 'eng' }: OpenOptions,
  enlarged?: Further['enlarged'],
): Promise<Omit<PageResult, 'image'>> {
  const read: Read = (picture, limitMs) => recognize(picture, languages, limitMs)
  const end = cpuMs() + PAGE_CPU_MS
  const { text, confidence } = (await readLight(grey, read)) ?? (await readDark(grey, read, end, enlarged))
  const letters = lettersIn(text)
  if (letters === 0 || (letters < FEW_LETTERS && confidence < MIN_OF_FEW))
    throw new Unreadable('No words were found in the image of the page')
  if (confidence < MIN_CONFIDENCE)
    throw new Unreadable(
      `What was read in the image of the page makes no sense (confidence ${Math.round(confidence)} of 100): it is too poor, or not in ${languages}`,
    )
  return { status: 'read', method: 'vision', model: modelOf(languages), ...tidy(text.trimEnd()) }
}
